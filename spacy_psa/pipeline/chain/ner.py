"""`crf_ner`: named entities by a linear-chain CRF."""

from collections.abc import Callable, Iterable

import numpy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.iob_utils import tags_to_entities
from spacy.vocab import Vocab
from thinc.api import Model
from torch import Tensor

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.decoders import Decode
from spacy_psa.pipeline.chain.default_model import DEFAULT_MODEL
from spacy_psa.pipeline.chain.incorrect_spans import without_spans
from spacy_psa.pipeline.chain.sequence_labeler import Allowed, Reduction
from spacy_psa.pipeline.chain.span_labeler import SpanLabeler, labels_of, same_tokens
from spacy_psa.pipeline.chain.span_tags import Spans, TagFormat
from spacy_psa.pipeline.factory import component_factory
from spacy_psa.sentences import sentence_bounds
from spacy_psa.structs.chain import LinearChain

BEGIN, UNKNOWN = 3, 0  # Token.ent_iob


class CRFEntityRecognizer(SpanLabeler):
    """Writes doc.ents: the most probable legal analysis of each sentence (Wei2020 section 3).

    incorrect_spans_key: the key of reference.spans with spans that are known to be wrong,
    as of spaCy's `ner`: training lowers the probability of the analyses that have one.
    Other settings: see `SpanLabeler` and `SequenceLabeler`. `labels` are entity types,
    `tags` the tag set. With confidence = true, doc._.ner_uncertainty is the entropy of the
    distribution over the doc's analyses, in nats.

    Entities that stand on a doc before the component runs are kept, as is what is marked
    as blocked, and the rest of the analysis is the best that agrees with them; with
    overwrite = true they are not looked at. decode = "threshold" leaves doc.ents alone.
    """

    uncertainty = "ner_uncertainty"

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "ner",
        *,
        scheme: TagFormat = "BIOES",
        max_grad_norm: float = 5.0,
        reduction: Reduction = "mean",
        batch_tokens: int = 4000,
        confidence: bool = False,
        decode: Decode = "viterbi",
        threshold: float = 0.5,
        overwrite: bool = False,
        incorrect_spans_key: str | None = None,
        scorer: Callable | None = None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            scheme=scheme,
            max_grad_norm=max_grad_norm,
            reduction=reduction,
            batch_tokens=batch_tokens,
            confidence=confidence,
            decode=decode,
            threshold=threshold,
            overwrite=overwrite,
            scorer=scorer,
        )
        self.incorrect_spans_key = incorrect_spans_key

    def find_labels(self, examples: Iterable[Example]) -> list[str]:
        found: set[str] = set()
        for example in examples:
            found |= labels_of(example.reference.ents)
            if self.incorrect_spans_key in example.reference.spans:
                found |= labels_of(example.reference.spans[self.incorrect_spans_key])
        return sorted(found)

    def gold_spans(self, example: Example) -> tuple[Spans, Allowed]:
        if same_tokens(example):
            reference = example.reference
            spans = [(ent.start, ent.end, ent.label_) for ent in reference.ents]
            return spans, reference.to_array(["ENT_IOB"]) == UNKNOWN
        tags = example.get_aligned_ner()
        missing = numpy.array([tag in (None, "-") for tag in tags], dtype=bool)
        spans = [(start, end + 1, label) for label, start, end in tags_to_entities(tags)]
        return [span for span in spans if span[2]], missing

    def evidence(self, doc: Doc) -> tuple[list[Span], Allowed]:
        iob, kind = doc.to_array(["ENT_IOB", "ENT_TYPE"]).T
        begins = iob == BEGIN
        spans = list(doc.ents) if begins.any() else []
        return spans, begins & (kind == 0)

    def write(self, doc: Doc, spans: list[Span], outside: Allowed) -> None:
        blocked = [doc[i : i + 1] for i in numpy.flatnonzero(outside).tolist()]
        doc.set_ents(spans, blocked=blocked)

    def reference_spans(self, reference: Doc) -> Iterable[Span] | None:
        return reference.ents if reference.has_annotation("ENT_IOB") else None

    # Spans known to be wrong

    def log_likelihood(self, chain: LinearChain, gold: Tensor, examples: list[Example]) -> Tensor:
        wrong = [spans for example in examples for spans in self.wrong_spans(example)]
        rows = [row for row, spans in enumerate(wrong) if spans]
        if not rows:
            return super().log_likelihood(chain, gold, examples)
        known = chain.constrain(self.gold_allowed(gold))
        some = LinearChain(known.potentials[rows], known.lengths[rows])
        left = without_spans(some, self.scheme, [wrong[row] for row in rows]).log_partition
        if (left == -torch.inf).any():
            raise InputError(
                f"{self.name}: in some sentence every analysis that agrees with its entities has "
                f'a span of spans["{self.incorrect_spans_key}"], which are wrong: does an entity '
                "cross the bounds of a sentence?"
            )
        at = torch.tensor(rows, device=left.device)
        return known.log_partition.index_copy(0, at, left) - chain.log_partition

    def wrong_spans(self, example: Example) -> list[Spans]:
        """For each sentence of the predicted doc that has tokens, the spans that the
        reference says are wrong.

        Errors: InputError for one that is also a gold entity, or whose label is unknown."""
        bounds = [bound for bound in sentence_bounds(example.predicted) if bound[0] < bound[1]]
        found: list[Spans] = [[] for _ in bounds]
        group = example.reference.spans.get(self.incorrect_spans_key or "") or []
        if not len(group):
            return found
        gold = set(self.gold_spans(example)[0])
        for span in example.get_aligned_spans_y2x(group, allow_overlap=True):
            self.check_label(span.label_)
            if (span.start, span.end, span.label_) in gold:
                raise InputError(
                    f"{self.name}: {span.text!r} ({span.label_}) is an entity of the reference, "
                    f'and among its spans["{self.incorrect_spans_key}"], which are wrong, in '
                    f"{example.reference.text!r}: remove it from one of them"
                )
            for (start, end), spans in zip(bounds, found):
                if start <= span.start and span.end <= end:
                    spans.append((span.start - start, span.end - start, span.label_))
        return found


make_crf_ner = component_factory(
    "crf_ner",
    CRFEntityRecognizer,
    model=DEFAULT_MODEL,
    scorer="spacy.ner_scorer.v1",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "doc.spans"],
    score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
