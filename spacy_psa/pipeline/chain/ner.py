"""`crf_ner`: named entities by a linear-chain CRF (Wei2020 section 3)."""

from operator import attrgetter

import numpy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.iob_utils import tags_to_entities

from spacy_psa.pipeline.chain.labeler import Allowed
from spacy_psa.pipeline.chain.span_tags import Spans
from spacy_psa.pipeline.chain.spans import SpanLabeler, SpanStore, same_tokens
from spacy_psa.pipeline.default_models import CHAIN
from spacy_psa.pipeline.settings import component_factory

BEGIN, UNKNOWN = 3, 0  # values of Token.ent_iob


class EntityStore(SpanStore):
    """Finds named entities and writes them to `doc.ents`, as the component `crf_ner`.

    The component is a `SpanLabeler`. Entities and blocked tokens that are on a doc before it runs
    are evidence; tokens that are O or have no annotation tell nothing. In training, the loss
    marginalises over tokens without annotation (`-` in spaCy's scheme).

    With `confidence`, `doc.spans[name]` also gets the predicted entities, with the probability of
    each given the doc in `attrs["scores"]`, which `span._.confidence` reads, and
    `doc._.ner_uncertainty` gets the entropy of the distribution over the doc's analyses, in nats.

    Scores: `ents_p`, `ents_r`, `ents_f` and `ents_per_type`; with `decode = "threshold"` also the
    scores of `doc.spans[name]`.

    Args:
        incorrect_spans_key: the key of `reference.spans` with spans that are known to be wrong,
            as in spaCy's `ner`; training lowers the probability of the analyses that have one of
            them. None for no such spans.

    Examples:
        >>> import spacy
        >>> from spacy.training import Example
        >>> nlp = spacy.blank("en")
        >>> ner = nlp.add_pipe(
        ...     "crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> doc = nlp.make_doc("Ada met Bob")
        >>> gold = {"entities": [(0, 3, "PER"), (8, 11, "PER")]}
        >>> example = Example.from_dict(doc, gold)
        >>> optimizer = nlp.initialize(lambda: [example])
        >>> optimizer.learn_rate = 0.03
        >>> for _ in range(6):
        ...     losses = nlp.update([example], sgd=optimizer)
        >>> doc = nlp("Ada met Bob")
        >>> [(ent.text, ent.label_) for ent in doc.ents]
        [('Ada', 'PER'), ('Bob', 'PER')]
        >>> bool((ner.posterior(doc.ents) > 0.5).all())
        True
        >>> (analyses,) = ner.analyses([nlp.make_doc("Ada met Bob")])
        >>> (log_prob, best), *others = analyses.kbest(3)
        >>> best
        [Ada, Bob]
        >>> analyses.given(require=[(0, 3, "PER")]).best
        [Ada met Bob]
    """

    uncertainty = "ner_uncertainty"

    def __init__(self, *, incorrect_spans_key: str | None = None):
        self.incorrect_spans_key = incorrect_spans_key

    def gold(self, name: str, example: Example) -> tuple[Spans, Allowed]:
        if same_tokens(example):
            reference = example.reference
            spans = list(map(attrgetter("start", "end", "label_"), reference.ents))
            return spans, reference.to_array(["ENT_IOB"]) == UNKNOWN
        tags = example.get_aligned_ner()
        missing = numpy.array([tag in (None, "-") for tag in tags], dtype=bool)
        spans = [(start, end + 1, label) for label, start, end in tags_to_entities(tags)]
        return [span for span in spans if span[2]], missing

    def reference(self, name: str, doc: Doc) -> list[Span] | None:
        return list(doc.ents) if doc.has_annotation("ENT_IOB") else None

    def read(self, doc: Doc) -> tuple[list[Span], Allowed | None]:
        if not doc.has_annotation("ENT_IOB"):
            return [], None
        iob, kind = doc.to_array(["ENT_IOB", "ENT_TYPE"]).T
        begins = iob == BEGIN
        blocked = begins & (kind == 0)
        return list(doc.ents) if begins.any() else [], blocked if blocked.any() else None

    def write(self, doc: Doc, spans: list[Span], outside: Allowed | None) -> None:
        known = [] if outside is None else numpy.flatnonzero(outside).tolist()
        doc.set_ents(spans, blocked=[doc[i : i + 1] for i in known])


make_crf_ner = component_factory(
    "crf_ner",
    SpanLabeler,
    store=EntityStore,
    model=CHAIN,
    scorer="spacy.ner_scorer.v1",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "doc.spans"],
    score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
