"""The base class of the chain components: from docs to distributions over their tag sequences."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import count, islice
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model, xp2torch
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.crf import find_heads, score_legal_pairs
from spacy_psa.architectures.more_labels import add_tags
from spacy_psa.architectures.sentencewise import listens, sentence_scores
from spacy_psa.bridge.layers import differentiate, join_rows
from spacy_psa.errors import InputError, check_choice, check_rates, check_sizes, naming
from spacy_psa.pipeline.analyses import DocAnalyses
from spacy_psa.pipeline.chain.chain_analyses import (
    ChainBatch,
    ChainSentence,
    Known,
    Scored,
    exact,
)
from spacy_psa.pipeline.chain.distillation import rehearse
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.chain.refined_chain import without_spans
from spacy_psa.pipeline.chain.span_posteriors import Posterior
from spacy_psa.pipeline.chain.span_tags import MISSING
from spacy_psa.pipeline.component import StructuredPipe, sentence_count
from spacy_psa.pipeline.coverage import (
    CALIBRATED,
    Calibrated,
    Coverage,
    checked_counts,
    checked_coverage,
    checked_temperature,
)
from spacy_psa.pipeline.evidence import Evidence
from spacy_psa.pipeline.not_finite import check_scores
from spacy_psa.pipeline.upstream import check_upstream
from spacy_psa.ragged import batches_by_size, mask, pad, unpad
from spacy_psa.sentences import Bounds, SplitDocs, sentence_bounds
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.cross_entropy import cross_entropy
from spacy_psa.structs.pair_chain import PairChain, TagPairs

Tags = NDArray[numpy.int64]
Allowed = NDArray[numpy.bool_]
Answer = TypeVar("Answer")
Reduction = Literal["mean", "sum"]
POTENTIALS = 32_000_000  # numbers (K * K for each token) that a batch has at most in prediction
MOST_PAIRS = 1_500_000  # pairs of tags with a weight vector each; these need gigabytes
NO_TAGS: Tags = numpy.zeros(0, dtype="int64")


class Batch(NamedTuple):
    """Sentences that go through the model together."""

    numbers: list[int]
    """Their numbers among the sentences of all docs."""
    scores: list[Floats2d]
    known: list[Known]
    chain: LinearChain
    """The distributions over their legal analyses, given what is known."""


class ChainLabeler(StructuredPipe):
    """Base class of the components that label the tokens of a sentence by a linear chain.

    A subclass has the meaning of the tags (`scheme`), reads gold tags (`_gold_tags`) and the
    evidence on a doc (`_on_doc`), and translates evidence (`_translated`) and tags (`_named`).

    Args:
        vocab: the vocabulary of the pipeline.
        model: Model[List[Doc], List[Floats2d]] with one array of potentials for each sentence, as
            `spacy-psa.CRF.v1` and `spacy-psa.Softmax.v1` make them: for each token K * K log
            potentials, those of the legal pairs of tags, or K log probabilities. The default is
            PSA-BiLSTM-CRF.
        name: the name of the component in the pipeline.
        reduction: whether an update follows the "mean" or the "sum" of its sentences' negative
            log likelihoods (Wei2020 Eq. 3 has the sum).
        label_smoothing: the share of the loss that is the cross entropy with the uniform
            distribution over the legal analyses, from 0 to 1 (Szegedy et al. 2016 section 7, for
            analyses in the place of classes); 0 for none.
        batch_tokens: number of tokens, padding included, that go through the model together in
            prediction. With more than 89 tags (22 labels in BIOES) there are fewer, so that a batch
            of several sentences needs no more memory than with 89.

    Raises:
        InputError: if a setting has a value that is not possible.
    """

    _derived: ClassVar[tuple[str, ...]] = ("scheme", "_outputs", "_rules", "_pairs")
    _rehearsal_model: Model | None = None  # the copy that nlp.resume_training keeps

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
        batch_tokens: int = 4000,
        **settings: Any,
    ):
        super().__init__(vocab, model, name, **settings)
        with naming(name):
            check_choice("reduction", reduction, Reduction)
            check_rates(label_smoothing=label_smoothing)
            check_sizes(batch_tokens=batch_tokens)
        self.batch_tokens = batch_tokens
        self._reduction = reduction
        self._label_smoothing = label_smoothing
        if self.confidence:
            register()

    @cached_property
    @abstractmethod
    def scheme(self) -> Any:
        """The meaning of the tags: a `SpanScheme`, or the `TagScheme` of a tagger."""

    @property
    def tags(self) -> tuple[str, ...]:
        """The K tags of a token, in the order of the model's output."""
        tags: tuple[str, ...] = self.scheme.tags
        return tags

    @cached_property
    def _outputs(self) -> int:
        return len(self.tags)

    # Settings that are found after training

    @property
    def temperature(self) -> float:
        """The number that the log potentials are divided by before inference (Guo et al. 2017).

        A value above 1 makes the model less sure, a value below 1 makes it surer, and 1 leaves it
        as it was trained. The best analysis stays the same. Training does not use the temperature.
        Another temperature removes what was calibrated for other probabilities.

        Raises:
            InputError: if it is set to something that is not a number from 0.01 to 100.
        """
        return float(self.cfg.get("temperature", 1.0))

    @temperature.setter
    def temperature(self, value: float) -> None:
        checked = checked_temperature(self.name, value)
        if checked != self.temperature:
            for name in CALIBRATED:
                self.cfg.pop(name, None)
        self.cfg["temperature"] = checked

    coverage = Calibrated(checked_coverage)
    """The promise of `prediction_sets`; None before `spacy-psa calibrate --coverage`."""
    counts = Calibrated(checked_counts)
    """The corrections of counts by label; None before `spacy-psa calibrate --counts`."""

    def _promised(self) -> Coverage:
        if self.coverage is None:
            raise InputError(
                f"{self.name}: it has no coverage yet: run `spacy-psa calibrate MODEL DEV.spacy "
                "--coverage 0.9`"
            )
        return self.coverage

    def _check_loaded(self) -> None:
        super()._check_loaded()
        checked_temperature(self.name, self.temperature)
        for name in CALIBRATED:
            getattr(self, name)  # checks it

    # The model

    def _widen_model(self) -> None:
        add_tags(self.model, self.scheme.legal().transitions)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Any = None,
    ) -> None:
        """Fix the labels and make the weights; see `StructuredPipe.initialize`.

        Raises:
            InputError: if there is no label, or the model does not score tags.
            ValueError: if the examples have no token.
        """
        try:
            super().initialize(get_examples, nlp=nlp, labels=labels)
            if not listens(self.model):
                (doc,) = islice(self._samples(get_examples()), 1)
                self._check_shapes(self.model.predict([doc]), len(doc))
        except InputError:
            raise
        except Exception as error:
            if find_heads(self.model):
                raise
            raise InputError(
                f"{self.name}: its model ({self.model.name}) does not score tags: use "
                f"spacy-psa.CRF.v1 or spacy-psa.Softmax.v1 in [components.{self.name}.model], over "
                "any tok2vec"
            ) from error

    def _check_shapes(self, scores: list[Floats2d], tokens: int) -> None:
        """Check that there is a row for each token, with a number for each tag or pair of tags."""
        k, pairs = len(self.tags), int(self.scheme.legal().transitions.sum())
        widths = {array.shape[-1] for array in scores if len(array)}
        if sum(map(len, scores)) != tokens or not widths <= {k, k * k, pairs}:
            shapes = [array.shape for array in scores]
            raise ValueError(f"arrays of the shapes {shapes} for {tokens} tokens and {k} tags")

    def _prepare_model(self) -> None:
        legal = self.scheme.legal().transitions
        pairs = int(legal.sum())
        by_pair = any(node.name == "label_pair" for node in self.model.walk())
        if by_pair and pairs > MOST_PAIRS:
            raise InputError(
                f"{self.name}: {len(self.labels):,} labels make {pairs:,} pairs of tags, too many "
                'for a weight vector each: set potentials = "transition" in '
                f'[components.{self.name}.model] and, for less memory yet, scheme = "BIO" and '
                "small batches"
            )
        score_legal_pairs(self.model, legal)

    # From docs to distributions

    def distribution(self, docs: Iterable[Doc]) -> LinearChain:
        """Return the distribution over the legal tag sequences of the docs' sentences.

        The annotation that is already on the docs is evidence.

        Args:
            docs: the docs.

        Returns:
            A chain with one row for each sentence that has tokens.

        Raises:
            InputError: if the model listens to a component that has not seen a doc.
            ValueError: if the docs have no token, or the component has no weights.
        """
        split = SplitDocs(docs)
        if not any(split.sizes):
            raise ValueError(
                f"{self.name}: there are no tokens to make a distribution over: "
                "use docs with tokens"
            )
        check_upstream(self.name, self.model, split.docs)
        known = self._known(split)
        scores = self._scores(split.docs if listens(self.model) else split.sentences)
        filled = [i for i, array in enumerate(scores) if len(array)]
        return self._given([scores[i] for i in filled], [known[i] for i in filled])

    def analyses(self, docs: Iterable[Doc]) -> list[DocAnalyses]:
        docs = list(docs)

        def read(batch: Batch) -> list[ChainSentence]:
            answers = ChainBatch(self, exact(batch.chain))
            return [ChainSentence(answers, row, each) for row, each in enumerate(batch.scores)]

        analyses = []
        for doc, parts in zip(docs, self._infer(docs, read)):
            sentences = [sentence.at(start) for start, sentence in parts]
            evidence = self._evidence(doc, [(s.start, s.end) for s in sentences])
            analyses.append(DocAnalyses(self, doc, sentences, evidence))
        return analyses

    def _infer(
        self, docs: Iterable[Doc], read: Callable[[Batch], Iterable[Answer]]
    ) -> list[list[tuple[int, Answer]]]:
        """Read an answer for each sentence of some docs from its distribution.

        Sentences go through the model in order of length, `batch_tokens` at a time, so that a long
        sentence does not pad many short ones. Sentences without tokens are left out.

        Args:
            read: called with each batch; returns an answer for each of its sentences.

        Returns:
            For each doc, the first token of each sentence and the answer for it.

        Raises:
            InputError: if no legal analysis of a sentence agrees with the evidence, or the model
                listens to a component that has not seen a doc.
        """
        split = SplitDocs(docs)
        answers: dict[int, Answer] = {}
        for batch in self._batches(split):
            try:
                answers.update(zip(batch.numbers, read(batch), strict=True))
            except ValueError as error:
                impossible = self._impossible(batch, split)
                if impossible is None:
                    raise
                raise impossible from error
        numbers = count()
        return [
            [(start, answers[i]) for (start, _), i in zip(bounds, numbers) if i in answers]
            for bounds in split.bounds
        ]

    def _batches(self, split: SplitDocs) -> Iterator[Batch]:
        self._require_weights()
        whole = None
        if listens(self.model):
            check_upstream(self.name, self.model, split.docs)
        if not any(split.sizes):  # a transformer cannot run on docs without tokens
            return
        known = self._known(split)
        if listens(self.model):
            # Layers that must get whole docs are computed once, for all of them.
            whole = sentence_scores(self.model, split)
        most = max(len(each.forbidden) for each in known)
        # Sentences with forbidden spans have more tags, so they are in batches of their own.
        for tags, refined in ((self._outputs, False), (self._outputs + 4 * most, True)):
            sizes = [s * (bool(each.forbidden) == refined) for s, each in zip(split.sizes, known)]
            budget = min(self.batch_tokens, POTENTIALS // max(1, tags**2))
            for batch in batches_by_size(sizes, budget):
                own = [known[i] for i in batch]
                if whole is None:
                    arrays = self._scores(split.sentences.chosen(batch))
                else:
                    arrays = whole(batch)
                    check_scores(self.name, self.model, arrays, split.docs)
                yield Batch(batch, arrays, own, self._given(arrays, own))

    def _known(self, split: SplitDocs) -> list[Known]:
        """Read what the docs tell of each sentence."""
        known = []
        for doc, bounds in zip(split.docs, split.bounds):
            known += self._translated(doc, self._evidence(doc, bounds), bounds)
        return known

    def _impossible(self, batch: Batch, split: SplitDocs) -> InputError | None:
        """Name the first sentence of a batch without a legal analysis; None if there is none.

        Only then the sentences are needed as docs, which take longer to make than to find.
        """
        rows = (batch.chain.log_partition == -torch.inf).nonzero()[:, 0].tolist()
        if not rows:
            return None
        sentence = split.sentences[batch.numbers[rows[0]]]
        return InputError(
            f"{self.name}: no legal analysis of the sentence {sentence.text!r} "
            "agrees with the annotation on its doc: correct it, or set overwrite = true"
        )

    def _given(self, scores: Sequence[Floats2d], known: Sequence[Known]) -> LinearChain:
        """Make the distributions of sentences from their scores and what is known of them."""
        flat = xp2torch(join_rows(self.model.ops.xp, list(scores)))
        if self.temperature != 1.0:
            flat = flat / self.temperature
        lengths = torch.tensor([len(array) for array in scores])
        chain = self._chain(flat, lengths, legal=True)
        if any(each.allowed is not None for each in known):
            evidence = mask(lengths)[..., None].expand(-1, -1, self._outputs).clone()
            for row, each in enumerate(known):
                if each.allowed is not None:
                    evidence[row, : len(each.allowed)] = torch.from_numpy(each.allowed)
            chain = chain.constrain(evidence.to(flat.device))
        forbidden = [each.forbidden for each in known]
        return without_spans(chain, self.scheme, forbidden) if any(forbidden) else chain

    def _chain(self, flat: Tensor, lengths: Tensor, *, legal: bool) -> LinearChain:
        """Make the distributions of sentences.

        Args:
            flat: (N, K), (N, K * K) or (N, P) the scores of the tokens of all sentences.
            lengths: (B,) the number of tokens of each sentence.
            legal: whether only legal analyses are possible.
        """
        k = self._outputs
        if flat.shape[1] == k:
            chain = LinearChain.from_emissions(pad(flat, lengths), lengths)
        elif flat.shape[1] == k * k:
            chain = LinearChain(pad(flat.view(-1, k, k), lengths), lengths)
        else:
            chain = PairChain(flat, lengths, self._pairs)
        if not legal:
            return chain
        device, (transitions, start, end) = flat.device, self._rules
        return chain.constrain(
            transitions=transitions.to(device), start=start.to(device), end=end.to(device)
        )

    @cached_property
    def _rules(self) -> list[Tensor]:
        """The legal transitions, first and last tags."""
        return [torch.from_numpy(array) for array in self.scheme.legal()]

    @cached_property
    def _pairs(self) -> TagPairs:
        return TagPairs(self.scheme.legal().transitions)

    # Evidence

    @abstractmethod
    def _translated(self, doc: Doc, evidence: Evidence, bounds: Bounds) -> list[Known]:
        """Translate the evidence on a doc into what is known of each sentence."""

    # Answers; see `ChainSentence`

    @abstractmethod
    def _named(self, tags: list[int], start: int) -> list[Any]:
        """Translate the tags of a sentence that begins at a token into spans or names of tags."""

    @abstractmethod
    def _posteriors(self, chain: LinearChain) -> list[Posterior]:
        """Make a function for each sentence, from start, end and label to a probability."""

    @abstractmethod
    def _above(self, answers: ChainBatch, row: int, least: float) -> list[Scored]:
        """List the spans or tags of a sentence whose probability is at least `least`."""

    # Training

    @abstractmethod
    def _gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        """Read the gold tags of an example.

        Args:
            example: a predicted doc with its reference.
            bounds: the sentences of the predicted doc.

        Returns:
            (length,) the tags of each sentence, MISSING if a token has no annotation. A sequence
            without missing tags is legal.
        """

    def get_loss(
        self, examples: Iterable[Example], scores: list[Floats2d]
    ) -> tuple[float, list[Floats2d]]:
        """Compute the negative log likelihood of the annotation (Wei2020 Eq. 3), and its gradient.

        The loss marginalises over tokens without annotation. A CRF is normalised over the legal
        sequences, since it predicts no others. Independent tags are normalised for each token
        (Wei2020 Table 9, model 5). With `label_smoothing`, the loss of a sentence is the cross
        entropy with a mixture of its annotation and the uniform distribution over the analyses;
        sentences without any annotated token are left out of it. With a teacher, the cross
        entropy with its distribution is added; see `distillation.learn_from`.

        Args:
            examples: predicted docs with their references.
            scores: the output of the model for the predicted docs.

        Returns:
            The loss, and its gradient with respect to each array of `scores`.

        Raises:
            InputError: if the component does not know a gold label.
        """
        examples = list(examples)
        lengths = torch.tensor([len(array) for array in scores if len(array)])

        def loss(flat: Tensor) -> Tensor:
            chain = self._chain(flat, lengths, legal=flat.shape[1] != self._outputs)
            gold = self._padded_gold(examples, chain)
            losses = -self._log_prob_of_gold(self._with_costs(chain, gold), gold, examples)
            if self._label_smoothing:
                known = pad(unpad(gold, lengths) != MISSING, lengths).any(1)
                share = self._label_smoothing * known.to(losses)
                losses = torch.lerp(losses, cross_entropy(chain.uniform(), chain), share)
            if self._teacher is not None:
                docs = [eg.predicted for eg in examples if len(eg.predicted)]
                taught = self._taught(self._teacher, docs)
                if not torch.equal(taught.lengths, lengths):
                    raise InputError(
                        f"{self.name}: the teacher splits a text into other sentences than the "
                        "student: leave the component that sets them out of the teacher's pipeline"
                    )
                weight = self._teacher_weight
                losses = (1 - weight) * losses + weight * cross_entropy(taught, chain)
            total = losses.sum()
            if self._reduction == "sum":
                return total
            return total / (sentence_count(self._whole) if self._whole else len(lengths))

        return differentiate(self.model, scores, loss)

    def _potentials(self, docs: list[Doc]) -> list[list[Floats2d]]:
        scores = iter(self._scores(docs))
        return [[next(scores) for _ in sentence_bounds(doc)] for doc in docs]

    def _same_outputs(self, other: StructuredPipe) -> bool:
        return isinstance(other, ChainLabeler) and self.tags == other.tags

    def _taught(self, teacher: Any, docs: list[Doc]) -> LinearChain:
        """Return the distributions of a teacher over the sentences of docs that have tokens."""
        arrays = [array for own in teacher.potentials(docs) for array in own if len(array)]
        chain: LinearChain = teacher.pipe._given(arrays, [Known()] * len(arrays))
        return chain

    def log_likelihood(self, flat: Tensor, lengths: Tensor, examples: list[Example]) -> Tensor:
        """Compute the log probability of the annotation of examples, without costs of training.

        Args:
            flat: (N, K), (N, K * K) or (N, P) the scores of the tokens of all sentences.
            lengths: (B,) the number of tokens of each sentence that has tokens.
            examples: the examples that the sentences are from.

        Returns:
            (B,) nats.

        Raises:
            InputError: if the component does not know a gold label.
        """
        chain = self._chain(flat, lengths, legal=True)
        return self._log_prob_of_gold(chain, self._padded_gold(examples, chain), examples)

    def rehearse(
        self,
        examples: list[Example],
        *,
        drop: float = 0.0,
        sgd: Any = None,
        losses: dict[str, float] | None = None,
        **config: Any,
    ) -> dict[str, float]:
        """Learn to repeat what the model predicted when `nlp.resume_training` was called.

        The loss is the cross entropy with the distributions of the copy that
        `nlp.resume_training` keeps; before that, nothing is learned.

        Args:
            examples: the docs; their annotation is not used.
            drop: dropout rate of spaCy's own layers.
            sgd: the optimizer; None to add up gradients and keep the weights as they are.
            losses: the losses so far, by component.
            config: not used.

        Returns:
            The losses.

        Raises:
            InputError: if the model listens to another component, which is not trained with it.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        losses[self.name] += rehearse(self, examples, drop)
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def _loss_share(self, part: Sequence[Example], whole: Sequence[Example]) -> float:
        return 1.0 if self._reduction == "sum" else super()._loss_share(part, whole)

    def _padded_gold(self, examples: Iterable[Example], chain: LinearChain) -> Tensor:
        """Read the gold tags of the sentences of a chain: (B, n), MISSING without annotation."""
        gold = [
            tags for eg in examples for tags in self._gold_tags(eg, sentence_bounds(eg.predicted))
        ]
        flat = torch.from_numpy(numpy.concatenate([NO_TAGS, *gold]))
        return pad(flat.to(chain.device), chain.lengths)

    def _with_costs(self, chain: LinearChain, gold: Tensor) -> LinearChain:
        """Make the distribution whose likelihood is trained; here it is the chain itself."""
        return chain

    def _log_prob_of_gold(
        self, chain: LinearChain, gold: Tensor, examples: list[Example]
    ) -> Tensor:
        """Compute the log probability of (B, n) gold tags, (B,)."""
        if not (gold < 0).any():
            return chain.log_prob(gold)
        return chain.constrain(self._gold_allowed(gold)).log_partition - chain.log_partition

    def _gold_allowed(self, gold: Tensor) -> Tensor:
        """Find the tags that agree with (B, n) gold tags: (B, n, K) bool, all if it is missing."""
        known = torch.nn.functional.one_hot(gold.clamp(min=0), self._outputs).bool()
        return known | (gold == MISSING)[..., None]
