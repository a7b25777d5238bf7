"""`crf_ner`: named entities by a linear-chain CRF."""

from collections.abc import Callable, Iterable

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.iob_utils import tags_to_entities
from thinc.api import Config, Model

from spacy_psa.pipeline.labeler import Allowed, Bounds, Reduction, Tags
from spacy_psa.pipeline.schemes import Kind, Spans
from spacy_psa.pipeline.spans import SpanLabeler, clip, labels_of, same_tokens

# The embedders' block is thinc's: spaCy merges a user's block into a default block of the
# same function, which would leave the default's embedders beside the user's.
DEFAULT_MODEL = """
[model]
@architectures = "spacy-psa.CRF.v1"
potentials = "label_pair"

[model.tok2vec]
@architectures = "spacy.Tok2Vec.v2"

[model.tok2vec.embed]
@layers = "concatenate.v1"

[model.tok2vec.embed.*.words]
@architectures = "spacy-psa.WordEmbed.v1"
width = 100

[model.tok2vec.embed.*.characters]
@architectures = "spacy-psa.CharBiLSTM.v1"

[model.tok2vec.encode]
@architectures = "spacy-psa.PSABiLSTM.v1"
"""

BEGIN, INSIDE, UNKNOWN = 3, 1, 0  # Token.ent_iob


@Language.factory(
    "crf_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_config={
        "model": Config().from_str(DEFAULT_MODEL)["model"],
        "scheme": "BIOES",
        "max_grad_norm": 5.0,
        "reduction": "mean",
        "batch_tokens": 4000,
        "scorer": {"@scorers": "spacy.ner_scorer.v1"},
    },
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_crf_ner(
    nlp: Language,
    name: str,
    model: Model,
    scheme: Kind,
    max_grad_norm: float,
    reduction: Reduction,
    batch_tokens: int,
    scorer: Callable | None,
) -> "CRFEntityRecognizer":
    """The factory `crf_ner`; see `CRFEntityRecognizer` for its settings."""
    return CRFEntityRecognizer(
        nlp.vocab,
        model,
        name,
        scheme=scheme,
        max_grad_norm=max_grad_norm,
        reduction=reduction,
        batch_tokens=batch_tokens,
        scorer=scorer,
    )


class CRFEntityRecognizer(SpanLabeler):
    """Writes doc.ents: the most probable legal analysis of each sentence (J section 3).

    Settings: see `SpanLabeler` and `SequenceLabeler`. `labels` are entity types, `tags`
    the tag set.

    Entities that stand on a doc before the component runs are kept, as is what is marked
    as blocked, and the rest of the analysis is the best that agrees with them.
    """

    def find_labels(self, examples: Iterable[Example]) -> list[str]:
        return sorted(set().union(*(labels_of(eg.reference.ents) for eg in examples)))

    def gold_spans(self, example: Example) -> tuple[Spans, Allowed]:
        if same_tokens(example):
            reference = example.reference
            spans = [(ent.start, ent.end, ent.label_) for ent in reference.ents]
            return spans, reference.to_array(["ENT_IOB"]) == UNKNOWN
        tags = example.get_aligned_ner()
        missing = numpy.array([tag in (None, "-") for tag in tags], dtype=bool)
        spans = [(start, end + 1, label) for label, start, end in tags_to_entities(tags)]
        return [span for span in spans if span[2]], missing

    def known_tags(self, doc: Doc, bounds: Bounds) -> list[Allowed | None]:
        iob = doc.to_array(["ENT_IOB"])
        known = (iob == BEGIN) | (iob == INSIDE)
        if not known.any():
            return [None] * len(bounds)
        spans = [(e.start, e.end, e.label_) for e in doc.ents if e.label_ in self.labels]
        found: list[Allowed | None] = []
        for start, end in bounds:
            inside = clip(spans, start, end)
            tags = self.scheme.encode(end - start, inside)
            allowed = numpy.ones((end - start, len(self.tags)), dtype=bool)
            for _, after, label in inside:  # a known entity does not go on
                allowed[after : after + 1, self.scheme.tag("I", label)] = False
            fixed = known[start:end]
            # Types that the model does not know, and blocked tokens, are outside to it.
            allowed[fixed] = numpy.eye(len(self.tags), dtype=bool)[tags[fixed]]
            found.append(allowed)
        return found

    def set_annotations(self, docs: Iterable[Doc], scores: list[Tags]) -> None:
        """Write the entities of the tags that `predict` gave, beside those on the docs."""
        for doc, tags in zip(docs, scores, strict=True):
            held = list(doc.ents)
            taken = {i for ent in held for i in range(ent.start, ent.end)}
            found = [
                Span(doc, start, end, label)
                for start, end, label in self.scheme.decode(tags.tolist())
                if start not in taken
            ]
            iob, kind = doc.to_array(["ENT_IOB", "ENT_TYPE"]).T
            blocked = numpy.flatnonzero((iob == BEGIN) & (kind == 0)).tolist()
            doc.set_ents([*held, *found], blocked=[doc[i : i + 1] for i in blocked])
