"""`crf_ner`: named entities by a linear-chain CRF (Wei2020 section 3)."""

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
from spacy_psa.pipeline.chain.chain_predictor import Allowed
from spacy_psa.pipeline.chain.decoders import Decode
from spacy_psa.pipeline.chain.default_model import DEFAULT_MODEL
from spacy_psa.pipeline.chain.doc_spans import labels_of, same_tokens
from spacy_psa.pipeline.chain.refined_chain import without_spans
from spacy_psa.pipeline.chain.sequence_labeler import Reduction
from spacy_psa.pipeline.chain.span_labeler import SpanLabeler
from spacy_psa.pipeline.chain.span_tags import Spans, TagFormat
from spacy_psa.pipeline.factory import component_factory
from spacy_psa.sentences import sentence_bounds
from spacy_psa.structs.chain import LinearChain

BEGIN, UNKNOWN = 3, 0  # values of Token.ent_iob


class CRFEntityRecognizer(SpanLabeler):
    """Finds named entities and writes them to `doc.ents`.

    The component `crf_ner` predicts the most probable legal analysis of each sentence under a
    linear-chain CRF (Wei2020 section 3). A doc without sentence boundaries is one sentence.

    Entities and blocked tokens that are on a doc before the component runs are evidence: the
    component keeps them and predicts the best analysis that agrees with them. It also keeps
    entities whose labels the model does not know, and predicts nothing over them. Tokens that are
    O or have no annotation say nothing, and the component's own earlier predictions are not
    evidence.

    A predicted entity begins and ends with a word, and may have white space inside. With
    `scheme = "BIO"` it may end with white space. Entities on a doc stay as they are.

    In training, the loss marginalises over tokens without annotation (`-` in spaCy's scheme).

    Scores: `ents_p`, `ents_r`, `ents_f` and `ents_per_type`; with `decode = "threshold"` also the
    scores of `doc.spans[name]` (see `score`).

    Args:
        vocab: the vocabulary of the pipeline.
        model: Model[List[Doc], List[Floats2d]] that gives one array of potentials for each
            sentence, as `spacy-psa.CRF.v1` and `spacy-psa.Softmax.v1` do. The default is
            PSA-BiLSTM-CRF.
        name: the name of the component in the pipeline.
        scheme: "BIOES" tells the end of an entity and single tokens apart (Wei2020 section 5.1);
            "BIO" does not.
        max_grad_norm: largest joint L2 norm of the gradients of this component in an update
            (Wei2020 section 5.2: 5.0); 0 for no limit. Gradients of a shared tok2vec or transformer
            before it are not counted.
        reduction: whether an update follows the "mean" or the "sum" of its sentences' negative
            log likelihoods (Wei2020 Eq. 3 has the sum).
        label_smoothing: the share of the loss that is the cross entropy with the uniform
            distribution over the legal analyses, from 0 to 1 (Szegedy et al. 2016 section 7, for
            analyses in the place of classes); 0 for none.
        recall_cost: what training adds to the log potential of O at each token of a gold entity
            (softmax-margin, Gimpel, Smith 2010; for the recall of entities, Mohit et al. 2012); 0
            for nothing. The model learns to find an entity against these odds, so it misses fewer
            and finds more wrong ones. Probabilities lean towards entities, too.
        batch_tokens: number of tokens, padding included, that go through the model together in
            prediction.
        confidence: whether `doc.spans[name]` gets the predicted entities too, with the
            probability of each given the doc in `attrs["scores"]`, which `span._.confidence`
            reads. `doc._.ner_uncertainty` then gets the entropy of the distribution over the
            doc's analyses, in nats.
        decode: "viterbi" predicts the most probable analysis. "mbr" predicts the entities with the
            highest expected F1 over the doc (minimum Bayes risk), and writes them to
            `doc.spans[name]`, too, with their scores. "threshold" writes all spans whose
            probability is at least `threshold` to `doc.spans[name]` with their scores, overlapping
            ones too, and leaves `doc.ents` as it is.
        threshold: a probability from 0 to 1, for `decode = "threshold"`.
        overwrite: True to ignore and replace the entities that are on a doc; False to take them
            as evidence.
        required_spans_key: the key of `doc.spans` with spans that the entities must include; None
            for no such spans. A span without label may have any.
        forbidden_spans_key: the key of `doc.spans` with spans that the entities must not include;
            None for no such spans. A span without label is forbidden with all labels.
        incorrect_spans_key: the key of `reference.spans` with spans that are known to be wrong,
            as in spaCy's `ner`; training lowers the probability of the analyses that have one of
            them. None for no such spans.
        scorer: called with the examples in `score`; None for no scores.

    Raises:
        InputError: if a setting has a value that is not possible.

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
        >>> (log_prob, best), *others = ner.kbest(doc, 3)
        >>> best
        [Ada, Bob]
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
        label_smoothing: float = 0.0,
        recall_cost: float = 0.0,
        batch_tokens: int = 4000,
        confidence: bool = False,
        decode: Decode = "viterbi",
        threshold: float = 0.5,
        overwrite: bool = False,
        required_spans_key: str | None = None,
        forbidden_spans_key: str | None = None,
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
            label_smoothing=label_smoothing,
            recall_cost=recall_cost,
            batch_tokens=batch_tokens,
            confidence=confidence,
            decode=decode,
            threshold=threshold,
            overwrite=overwrite,
            required_spans_key=required_spans_key,
            forbidden_spans_key=forbidden_spans_key,
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
        if not doc.has_annotation("ENT_IOB"):
            return [], numpy.zeros(len(doc), dtype=bool)
        iob, kind = doc.to_array(["ENT_IOB", "ENT_TYPE"]).T
        begins = iob == BEGIN
        spans = list(doc.ents) if begins.any() else []
        return spans, begins & (kind == 0)

    def write(self, doc: Doc, spans: list[Span], outside: Allowed) -> None:
        known = numpy.flatnonzero(outside).tolist() if numpy.count_nonzero(outside) else []
        doc.set_ents(spans, blocked=[doc[i : i + 1] for i in known])

    def reference_spans(self, reference: Doc) -> Iterable[Span] | None:
        return reference.ents if reference.has_annotation("ENT_IOB") else None

    # Spans known to be wrong

    def log_likelihood(self, chain: LinearChain, gold: Tensor, examples: list[Example]) -> Tensor:
        """Compute the log probability of the annotation, without analyses that have a wrong span.

        Args:
            chain: the distributions of B sentences.
            gold: (B, n) tags, MISSING if a token has no annotation.
            examples: the examples that the sentences are from.

        Returns:
            (B,) log probabilities.

        Raises:
            InputError: if every analysis of a sentence that agrees with its gold entities has a
                wrong span.
        """
        wrong = [spans for example in examples for spans in self.wrong_spans(example)]
        rows = [row for row, spans in enumerate(wrong) if spans]
        if not rows:
            return super().log_likelihood(chain, gold, examples)
        known = chain.constrain(self.gold_allowed(gold))
        some = known.select(torch.tensor(rows))
        left = without_spans(some, self.scheme, [wrong[row] for row in rows]).log_partition
        if (left == -torch.inf).any():
            raise InputError(
                f"{self.name}: in a sentence of the batch, every analysis that agrees with the "
                f'gold entities has a span that spans["{self.incorrect_spans_key}"] lists as wrong:'
                " check whether an entity crosses the bounds of a sentence"
            )
        at = torch.tensor(rows, device=left.device)
        return known.log_partition.index_copy(0, at, left) - chain.log_partition

    def wrong_spans(self, example: Example) -> list[Spans]:
        """Read the spans that are known to be wrong.

        Returns:
            The spans (start, end, label) of each sentence of the predicted doc that has tokens.

        Raises:
            InputError: if a wrong span is also a gold entity, or if its label is not known.
        """
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
                    f"{self.name}: {span.text!r} ({span.label_}) is an entity of the reference "
                    f"{example.reference.text!r} and also a wrong span in its "
                    f'spans["{self.incorrect_spans_key}"]: remove one of the two'
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
