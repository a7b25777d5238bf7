"""The base class of the chain components: from docs to distributions over their tag sequences."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar

import numpy
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures import crf
from spacy_psa.architectures.more_labels import add_tags
from spacy_psa.bridge.layers import differentiate
from spacy_psa.bridge.shim import shim_of
from spacy_psa.errors import InputError, check_choice, check_rates, check_sizes, naming
from spacy_psa.pipeline.chain.chain_analyses import ChainBatch, Known, Scored
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.chain.refined_chain import with_weights
from spacy_psa.pipeline.chain.span_posteriors import Posterior
from spacy_psa.pipeline.chain.span_tags import MISSING
from spacy_psa.pipeline.component import Reduction, StructuredPipe
from spacy_psa.pipeline.coverage import Calibrated
from spacy_psa.pipeline.distillation import with_teacher
from spacy_psa.pipeline.inference import Temperature, tempered
from spacy_psa.pipeline.rehearsal import rehearse
from spacy_psa.ragged import batches_by_size, mask, pad, to_device, unpad
from spacy_psa.sentences import Bounds, sentence_bounds
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.cross_entropy import smoothed
from spacy_psa.structs.emission_chain import EmissionChain
from spacy_psa.structs.pair_chain import PairChain, TagPairs

Tags = NDArray[numpy.int64]
Allowed = NDArray[numpy.bool_]
POTENTIALS = 32_000_000  # numbers (one a token and pair) that a batch has at most in prediction
NUMBERS = 8  # such numbers a tag, where transitions are apart
MOST_PAIRS = 1_500_000  # pairs of tags with a weight vector each; these need gigabytes
NO_TAGS: Tags = numpy.zeros(0, dtype="int64")


class ChainLabeler(StructuredPipe):
    """Base class of the components that label the tokens of a sentence by a linear chain.

    A subclass has the meaning of the tags (`scheme`), reads gold tags (`_gold_tags`) and the
    evidence on a doc (`_on_doc`), and translates evidence (`_translated`) and tags (`_named`).

    Args:
        model: Model[List[Doc], List[Floats2d]] with one array of potentials for each sentence, as
            `spacy-psa.CRF.v1` and `spacy-psa.Softmax.v1` make them: for each token K * K log
            potentials, those of the legal pairs of tags, or K log probabilities. The default is
            PSA-BiLSTM-CRF.
        reduction: whether an update follows the "mean" or the "sum" of its sentences' negative
            log likelihoods (Wei2020 Eq. 3 has the sum).
        label_smoothing: the share of the loss that is the cross entropy with the uniform
            distribution over the legal analyses, from 0 to 1 (Szegedy et al. 2016 section 7, for
            analyses in the place of classes); 0 for none.
        batch_tokens: number of tokens, padding included, that go through the model together in
            prediction. With more than 89 tags (22 labels in BIOES) whose pairs have scores for each
            token there are fewer, so that a batch of several sentences needs no more memory than
            with 89.

    Raises:
        InputError: if a setting has a value that is not possible.
    """

    temperature = Temperature()
    """The number that log potentials are divided by before inference; see `Temperature`."""
    _analyses = ChainBatch
    _derived: ClassVar[tuple[str, ...]] = ("_listens", "scheme", "_outputs", "_rules", "_pairs")
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
        self.calibrated = Calibrated(self)
        """The results of `spacy-psa calibrate`, apart from the temperature."""
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
        except InputError:
            raise
        except Exception as error:
            if crf.find_heads(self.model):
                raise
            raise InputError(
                f"{self.name}: its model ({self.model.name}) does not score tags: use "
                f"spacy-psa.CRF.v1 or spacy-psa.Softmax.v1 in [components.{self.name}.model], over "
                "any tok2vec"
            ) from error

    def _check_model(self, doc: Doc) -> None:
        """Check that there is a row for each token, with a number for each tag or pair of tags."""
        if self._listens:
            return
        scores, tokens = self.model.predict([doc]), len(doc)
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
        crf.prepare_heads(self.model, legal)

    # From docs to distributions

    def _divided(self, sizes: list[int], known: list[Known]) -> list[list[int]]:
        budget = min(self.batch_tokens, POTENTIALS // max(1, self._outputs**2))
        if budget < self.batch_tokens:
            numbers = self._outputs**2
            if self._apart:
                numbers = NUMBERS * self._outputs
            elif self._scores_legal_pairs:
                numbers = len(self._pairs)
            budget = min(self.batch_tokens, POTENTIALS // numbers)
        weights = [len(each.weights) for each in known]
        if not any(weights):
            return list(batches_by_size(sizes, budget))
        # Sentences with weights of spans have more tags, so they are in batches of their own.
        less = min(budget, POTENTIALS // (self._outputs + 4 * max(weights)) ** 2)
        plain = [size * (count == 0) for size, count in zip(sizes, weights)]
        refined = [size * (count > 0) for size, count in zip(sizes, weights)]
        return [*batches_by_size(plain, budget), *batches_by_size(refined, less)]

    def _given(self, scores: Sequence[Floats2d], known: Sequence[Known]) -> LinearChain:
        flat = tempered(self, scores)
        lengths = torch.tensor([*map(len, scores)])
        between = [each.detach() / self.temperature for each in self._apart]
        chain = self._chain(flat, lengths, *between, legal=True)
        evidence = None
        for row, each in enumerate(known):
            if each.allowed is not None:
                if evidence is None:
                    evidence = mask(lengths)[..., None].expand(-1, -1, self._outputs).clone()
                evidence[row, : len(each.allowed)] = torch.from_numpy(each.allowed)
        if evidence is not None:
            chain = chain.constrain(evidence)
        weights = [*map(attrgetter("weights"), known)]
        return with_weights(chain, self.scheme, weights) if any(weights) else chain

    @property
    def _apart(self) -> list[Tensor]:
        """The transitions that the model keeps apart from its output; see `crf.apart`."""
        return crf.apart(self.model) if self._outputs > crf.MANY else []

    def _chain(
        self, flat: Tensor, lengths: Tensor, *transitions: Tensor, legal: bool
    ) -> LinearChain:
        """Make the distributions of sentences.

        Args:
            flat: (N, K), (N, K * K) or (N, P) the scores of the tokens of all sentences.
            lengths: (B,) the number of tokens of each sentence.
            transitions: (K, K), if `flat` lacks them.
            legal: whether only legal analyses are possible.
        """
        k = self._outputs
        chain: LinearChain
        if transitions:
            chain = EmissionChain(flat, transitions[0], lengths, self._pairs)
        elif flat.shape[1] == k:
            chain = LinearChain.from_emissions(pad(flat, lengths), lengths)
        elif flat.shape[1] == k * k:
            chain = LinearChain(pad(flat.view(-1, k, k), lengths), lengths)
        else:
            chain = PairChain(flat, lengths, self._pairs)
        if not legal:
            return chain
        between, start, end = self._rules
        if isinstance(chain, PairChain):  # it has no other pairs
            return chain.constrain(start=start, end=end)
        return chain.constrain(transitions=between, start=start, end=end)

    @cached_property
    def _rules(self) -> list[Tensor]:
        """The legal transitions, first and last tags."""
        return [torch.from_numpy(array) for array in self.scheme.legal()]

    @property
    def _scores_legal_pairs(self) -> bool:
        heads = crf.find_heads(self.model)
        return bool(heads) and all(shim_of(head).cfg.get("pairs") for head in heads)

    @cached_property
    def _pairs(self) -> TagPairs:
        return TagPairs(self.scheme.legal().transitions)

    # Answers; see `ChainSentence`

    @abstractmethod
    def _named(self, tags: list[int], start: int) -> list[Any]:
        """Translate the tags of a sentence that begins at a token into spans or names of tags."""

    @abstractmethod
    def _posteriors(self, chain: LinearChain) -> list[Posterior]:
        """Make a function for each sentence, from start, end and label to a probability."""

    @abstractmethod
    def _above(self, batch: ChainBatch, row: int, least: float) -> list[Scored]:
        """List the spans or tags of a sentence whose probability is at least `least`."""

    # Training

    @abstractmethod
    def _gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        """Read the gold tags of each sentence of an example, (length,), MISSING without annotation.

        A sequence without missing tags is legal.
        """

    def _trained(self, scores: list[Floats2d], flat: Tensor, *transitions: Tensor) -> LinearChain:
        """Make the distributions that training sees; `flat` has all rows of `scores`."""
        lengths = torch.tensor([len(array) for array in scores if len(array)])
        legal = bool(transitions) or flat.shape[1] != self._outputs
        return self._chain(flat, lengths, *transitions, legal=legal)

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
            The loss, and its gradient with respect to each array of `scores`, then to transitions
            that the model keeps apart from them.

        Raises:
            InputError: if the component does not know a gold label.
        """
        examples = examples if isinstance(examples, list) else list(examples)

        def loss(flat: Tensor, *transitions: Tensor) -> Tensor:
            chain = self._trained(scores, flat, *transitions)
            gold = self._padded_gold(examples, chain)
            losses = -self._log_prob_of_gold(self._with_costs(chain, gold), gold, examples)
            if self._label_smoothing:
                known = pad(unpad(gold, chain.lengths) != MISSING, chain.lengths).any(1)
                losses = smoothed(losses, chain, self._label_smoothing * known.to(losses))
            if self._teacher is not None:
                losses = with_teacher(self, losses, chain, examples)
            return self._reduced(losses)

        return differentiate(self.model, scores, loss, self._apart)

    def _same_outputs(self, other: StructuredPipe) -> bool:
        return isinstance(other, ChainLabeler) and self.tags == other.tags

    def _log_likelihood(
        self, flat: Tensor, lengths: Tensor, examples: list[Example], beta: Tensor
    ) -> Tensor:
        """Compute the log probability of the annotation, (B,), without costs of training.

        `flat` has the scores of all sentences, row after row, `lengths` their numbers of rows, and
        `beta` is a factor of the potentials.
        """
        between = [each.detach() * beta for each in self._apart]
        chain = self._chain(flat * beta, lengths, *between, legal=True)
        return self._log_prob_of_gold(chain, self._padded_gold(examples, chain), examples)

    rehearse = rehearse

    def _read_gold(self, examples: Sequence[Example]) -> Tags:
        gold = [
            tags for eg in examples for tags in self._gold_tags(eg, sentence_bounds(eg.predicted))
        ]
        return numpy.concatenate([NO_TAGS, *gold])

    def _padded_gold(self, examples: Sequence[Example], chain: LinearChain) -> Tensor:
        """Read the gold tags of the sentences of a chain: (B, n), MISSING without annotation."""
        flat = torch.from_numpy(self._gold(examples))
        return pad(to_device(flat, chain.device), chain.lengths)

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
