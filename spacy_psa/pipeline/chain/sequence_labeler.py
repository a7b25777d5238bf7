"""The base class of the chain components: labels, gold tags and learning."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Literal

import numpy
import torch
from spacy.language import Language
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.crf import score_legal_pairs
from spacy_psa.architectures.more_labels import add_tags
from spacy_psa.architectures.sentencewise import listens
from spacy_psa.bridge.layers import join_rows
from spacy_psa.errors import check_choice, check_rates, naming
from spacy_psa.pipeline.chain.chain_predictor import ChainPredictor, Tags
from spacy_psa.pipeline.chain.distillation import Distilling
from spacy_psa.pipeline.chain.fitting_model import (
    check_number_of_pairs,
    check_shapes,
    scores_no_tags_as_input_error,
)
from spacy_psa.pipeline.chain.rehearsal import Rehearsing
from spacy_psa.pipeline.chain.span_tags import MISSING
from spacy_psa.ragged import pad, unpad
from spacy_psa.sentences import Bounds, sentence_bounds
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.cross_entropy import cross_entropy

Reduction = Literal["mean", "sum"]
NO_TAGS: Tags = numpy.zeros(0, dtype="int64")


class SequenceLabeler(Distilling, Rehearsing, ChainPredictor):
    """Base class of the components that give each token one of K tags by a linear chain.

    A subclass has tags (`tags`) and says which sequences of them are legal (`legal`), finds labels
    in gold docs (`find_labels`), reads gold tags (`gold_tags`) and evidence (`known_tags`), and
    writes tags to docs (`set_annotations`).

    Args:
        vocab: the vocabulary of the pipeline.
        model: Model[List[Doc], List[Floats2d]] that gives one array of potentials for each
            sentence, with K * K log potentials, those of the legal pairs of tags, or K log
            probabilities for each token.
        name: the name of the component in the pipeline.
        scorer: called with the examples in `score`; None for no scores.
        max_grad_norm: largest joint L2 norm of the gradients of this component in an update
            (Wei2020 section 5.2: 5.0); 0 for no limit. Gradients of a shared tok2vec or transformer
            before it are not counted.
        reduction: whether an update follows the "mean" or the "sum" of its sentences' negative
            log likelihoods (Wei2020 Eq. 3 has the sum).
        label_smoothing: the share of the loss that is the cross entropy with the uniform
            distribution over the legal analyses, from 0 to 1 (Szegedy et al. 2016 section 7, for
            analyses in the place of classes); 0 for none.
        batch_tokens: number of tokens, padding included, that go through the model together in
            prediction. With more than 89 tags (22 labels in BIOES) there are fewer, so that a batch
            of several sentences takes no more memory than with 89.
        confidence: whether predictions are written with their probabilities.
        required_spans_key: the key of `doc.spans` with spans that predictions must have; None for
            no such spans.
        forbidden_spans_key: the key of `doc.spans` with spans that predictions must not have; None
            for no such spans.

    Raises:
        InputError: if there is no such `reduction`, or `label_smoothing` is not from 0 to 1.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> ner = nlp.add_pipe(
        ...     "crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> isinstance(ner, SequenceLabeler)
        True
        >>> ner.add_label("PER")
        1
        >>> optimizer = nlp.initialize()
        >>> chain = ner.distribution([nlp.make_doc("Ada met Bob")])
        >>> chain.marginals.shape  # sentences, tokens, tags
        torch.Size([1, 3, 5])
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        scorer: Callable | None,
        max_grad_norm: float,
        reduction: Reduction,
        label_smoothing: float,
        batch_tokens: int,
        confidence: bool,
        required_spans_key: str | None,
        forbidden_spans_key: str | None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            scorer=scorer,
            max_grad_norm=max_grad_norm,
            batch_tokens=batch_tokens,
            confidence=confidence,
            required_spans_key=required_spans_key,
            forbidden_spans_key=forbidden_spans_key,
        )
        with naming(name):
            check_choice("reduction", reduction, Reduction)
            check_rates(label_smoothing=label_smoothing)
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    @abstractmethod
    def gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        """Read the gold tags of an example.

        Args:
            example: a predicted doc with its reference.
            bounds: the sentences of the predicted doc.

        Returns:
            (length,) the tags of each sentence, MISSING if a token has no annotation. A sequence
            without missing tags is legal.
        """

    def widen_model(self) -> None:
        add_tags(self.model, self.legal()[0])

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
        with scores_no_tags_as_input_error(self.name, self.model):
            super().initialize(get_examples, nlp=nlp, labels=labels)
            if not listens(self.model):
                sample = list(islice(self.samples(get_examples()), 1))
                check_shapes(self.model.predict(sample), len(sample[0]), self.legal()[0])

    def prepare_model(self) -> None:
        legal = self.legal()[0]
        check_number_of_pairs(self.name, self.model, len(self.labels), int(legal.sum()))
        score_legal_pairs(self.model, legal)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        with super()._all_or_nothing():
            for setting in ("temperature", "coverage"):
                self.cfg.pop(setting, None)  # the saved settings may have none
            yield
            self._checked_temperature(self.cfg.get("temperature", 1.0))
            self._checked_coverage(self.cfg.get("coverage", (0.5, 0.0, 1)))

    # Training

    def get_loss(
        self, examples: Iterable[Example], scores: list[Floats2d]
    ) -> tuple[float, list[Floats2d]]:
        """Compute the negative log likelihood of the annotation (Wei2020 Eq. 3), and its gradient.

        The loss marginalises over tokens without annotation. A CRF is normalised over the legal
        sequences, since it predicts no others. Independent tags are normalised for each token
        (Wei2020 Table 9, model 5). With `label_smoothing`, the loss of a sentence is the cross
        entropy with a mixture of its annotation and the uniform distribution over the analyses. It
        leaves out sentences without any annotated token.

        Args:
            examples: predicted docs with their references.
            scores: the output of the model for the predicted docs.

        Returns:
            The loss, and its gradient with respect to each array of `scores`.

        Raises:
            InputError: if the component does not know a gold label.
        """
        examples = list(examples)
        flat = xp2torch(join_rows(self.model.ops.xp, scores)).requires_grad_()
        lengths = torch.tensor([len(array) for array in scores if len(array)])
        chain = self.scored_chain(flat, lengths)
        gold = self.padded_gold(examples, chain)
        losses = -self.log_likelihood(self.with_costs(chain, gold), gold, examples)
        if self.label_smoothing:
            known = pad(unpad(gold, chain.lengths) != MISSING, chain.lengths).any(1)
            share = self.label_smoothing * known.to(losses)
            losses = torch.lerp(losses, cross_entropy(chain.uniform(), chain), share)
        loss = losses.sum()
        if self.reduction == "mean":
            loss = loss / len(lengths)
        loss.backward()
        assert flat.grad is not None
        ends = numpy.cumsum([len(array) for array in scores])[:-1].tolist()
        return float(loss.detach()), self.model.ops.xp.split(torch2xp(flat.grad), ends)

    def scored_chain(self, flat: Tensor, lengths: Tensor) -> LinearChain:
        """Make the distribution that is trained: a CRF over the legal analyses, or free tags."""
        free = flat.shape[1] == len(self.tags)
        return self._chain(flat, lengths) if free else self.legal_chain(flat, lengths)

    def loss_share(self, part: Sequence[Example], whole: Sequence[Example]) -> float:
        return 1.0 if self.reduction == "sum" else super().loss_share(part, whole)

    def padded_gold(self, examples: Iterable[Example], chain: LinearChain) -> Tensor:
        """Read the gold tags of examples.

        Args:
            examples: the examples.
            chain: the distributions of their B sentences that have tokens.

        Returns:
            (B, n) tags, MISSING if a token has no annotation.

        Raises:
            InputError: if the component does not know a gold label.
        """
        gold = [
            tags for eg in examples for tags in self.gold_tags(eg, sentence_bounds(eg.predicted))
        ]
        flat = torch.from_numpy(numpy.concatenate([NO_TAGS, *gold]))
        return pad(flat.to(chain.device), chain.lengths)

    def with_costs(self, chain: LinearChain, gold: Tensor) -> LinearChain:
        """Make the distribution whose likelihood is trained; here it is the chain itself.

        Args:
            chain: the distributions of B sentences.
            gold: (B, n) tags, MISSING if a token has no annotation.
        """
        return chain

    def log_likelihood(self, chain: LinearChain, gold: Tensor, examples: list[Example]) -> Tensor:
        """Compute the log probability of the annotation.

        Args:
            chain: the distributions of B sentences.
            gold: (B, n) tags, MISSING if a token has no annotation.
            examples: the examples that the sentences are from.

        Returns:
            (B,) log probabilities.
        """
        if not (gold < 0).any():
            return chain.log_prob(gold)
        return chain.constrain(self.gold_allowed(gold)).log_partition - chain.log_partition

    def gold_allowed(self, gold: Tensor) -> Tensor:
        """Find the tags that agree with gold tags.

        Args:
            gold: (B, n) tags, MISSING if a token has no annotation.

        Returns:
            (B, n, K) bool, true for all tags of a token without annotation.
        """
        known = torch.nn.functional.one_hot(gold.clamp(min=0), len(self.tags)).bool()
        return known | (gold == MISSING)[..., None]
