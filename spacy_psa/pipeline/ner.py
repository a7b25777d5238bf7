"""`crf_ner`: named entities by a linear-chain CRF."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.iob_utils import tags_to_entities
from thinc.api import Config, Model

from spacy_psa.errors import InputError
from spacy_psa.pipeline.labeler import Allowed, Bounds, Reduction, SequenceLabeler, Tags
from spacy_psa.pipeline.schemes import MISSING, Kind, Moves, Scheme, Spans

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


class CRFEntityRecognizer(SequenceLabeler):
    """Writes doc.ents: the most probable legal analysis of each sentence (J section 3).

    scheme: how entities become tags, "BIOES" (J section 5.1) or "BIO".
    Other settings: see `SequenceLabeler`. `labels` are entity types, `tags` the tag set.

    Entities that stand on a doc before the component runs are kept, as is what is marked
    as blocked, and the rest of the analysis is the best that agrees with them.
    """

    def __init__(self, vocab: Any, model: Model, name: str, *, scheme: Kind, **settings: Any):
        super().__init__(vocab, model, name, **settings)
        if scheme not in ("BIOES", "BIO"):
            raise InputError(f"{name}: scheme is {scheme!r}: take 'BIOES' or 'BIO'")
        self.kind: Kind = scheme
        self._scheme = Scheme((), scheme)

    @property
    def scheme(self) -> Scheme:
        if self._scheme.labels != self.labels:
            self._scheme = Scheme(self.labels, self.kind)
        return self._scheme

    @property
    def tags(self) -> tuple[str, ...]:
        return self.scheme.tags

    def legal(self) -> Moves:
        return self.scheme.legal()

    def find_labels(self, examples: Iterable[Example]) -> list[str]:
        return sorted({ent.label_ for eg in examples for ent in eg.reference.ents} - {""})

    def gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        spans, missing = _gold_entities(example)
        for _, _, label in spans:
            if label not in self.labels:
                raise InputError(
                    f"{self.name}: the training data has an entity {label!r}, which is not among "
                    f"the labels {', '.join(self.labels)}: initialize with all labels"
                )
        gold = []
        for start, end in bounds:
            tags = self.scheme.encode(end - start, _clip(spans, start, end))
            tags[missing[start:end]] = MISSING
            gold.append(tags)
        return gold

    def known_tags(self, doc: Doc, bounds: Bounds) -> list[Allowed | None]:
        iob = doc.to_array(["ENT_IOB"])
        known = (iob == BEGIN) | (iob == INSIDE)
        if not known.any():
            return [None] * len(bounds)
        spans = [(e.start, e.end, e.label_) for e in doc.ents if e.label_ in self.labels]
        found: list[Allowed | None] = []
        for start, end in bounds:
            inside = _clip(spans, start, end)
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


def _gold_entities(example: Example) -> tuple[Spans, Allowed]:
    """Gold entities over the predicted doc's tokens, and where annotation is missing."""
    predicted, reference = example.predicted, example.reference
    same = len(predicted) == len(reference) and numpy.array_equal(
        predicted.to_array(["ORTH"]), reference.to_array(["ORTH"])
    )
    if same:
        spans = [(ent.start, ent.end, ent.label_) for ent in reference.ents]
        return spans, reference.to_array(["ENT_IOB"]) == UNKNOWN
    tags = example.get_aligned_ner()
    missing = numpy.array([tag in (None, "-") for tag in tags], dtype=bool)
    spans = [(start, end + 1, label) for label, start, end in tags_to_entities(tags)]
    return [span for span in spans if span[2]], missing


def _clip(spans: Spans, start: int, end: int) -> Spans:
    """The spans within a sentence, counted from its start; one that crosses its bounds
    is cut at them."""
    return [
        (max(s, start) - start, min(e, end) - start, label)
        for s, e, label in spans
        if s < end and e > start
    ]
