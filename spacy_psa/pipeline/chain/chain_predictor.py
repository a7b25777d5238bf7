"""Prediction with a linear chain: from docs, and what is known of them, to distributions."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Model, xp2torch
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.sentencewise import listens, sentence_scores
from spacy_psa.bridge.layers import join_rows
from spacy_psa.errors import InputError, check_sizes, naming
from spacy_psa.pipeline.asked_spans import Asked, check_groups
from spacy_psa.pipeline.chain.doc_analyses import Decoding, DocAnalyses, SentenceAnalyses
from spacy_psa.pipeline.chain.evidence import Known
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.chain.queries import ChainQueries, exact
from spacy_psa.pipeline.chain.span_tags import LegalTransitions, Spans
from spacy_psa.pipeline.chain.temperature import Tempered
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.pipeline.coverage import Covered
from spacy_psa.pipeline.not_finite import check_scores
from spacy_psa.pipeline.upstream import check_upstream
from spacy_psa.ragged import batches_by_size, mask, pad
from spacy_psa.sentences import Bounds, SplitDocs
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.pair_chain import PairChain, TagPairs

Tags = NDArray[numpy.int64]
Allowed = NDArray[numpy.bool_]
Answer = TypeVar("Answer")
POTENTIALS = 32_000_000  # numbers (K * K for each token) that a batch has at most in prediction


class ChainPredictor(StructuredPipe, ChainQueries, Tempered, Covered):
    """Predicts with a linear chain; `SequenceLabeler` also trains.

    A subclass has tags (`tags`), says which sequences of them are legal (`legal`), and reads
    evidence from docs (`known_tags`, `grouped`) and from users (`known_of`).

    Args:
        vocab: the vocabulary of the pipeline.
        model: see `SequenceLabeler`, as for all arguments below.
        name: the name of the component in the pipeline.
        scorer: called with the examples in `score`; None for no scores.
        max_grad_norm: the limit of the gradients; 0 for none.
        batch_tokens: the tokens that go through the model together.
        confidence: whether predictions are written with their probabilities.
        required_spans_key: the span group of spans that predictions must have.
        forbidden_spans_key: the span group of spans that predictions must not have.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> tagger = nlp.add_pipe(
        ...     "crf_tagger", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> isinstance(tagger, ChainPredictor)
        True
        >>> for tag in ("NOUN", "VERB"):
        ...     _ = tagger.add_label(tag)
        >>> optimizer = nlp.initialize()
        >>> len(tagger.analyses(nlp.make_doc("fish swim")).kbest(3))
        3
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        scorer: Callable | None,
        max_grad_norm: float,
        batch_tokens: int,
        confidence: bool,
        required_spans_key: str | None,
        forbidden_spans_key: str | None,
    ):
        super().__init__(vocab, model, name, scorer=scorer, max_grad_norm=max_grad_norm)
        with naming(name):
            check_sizes(batch_tokens=batch_tokens)
            check_groups(required_spans_key, forbidden_spans_key)
        self.batch_tokens = batch_tokens
        self.confidence = confidence
        self.required_spans_key = required_spans_key
        self.forbidden_spans_key = forbidden_spans_key

    @property
    def confidence(self) -> bool:
        """Whether predictions are written with their probabilities."""
        return self._confidence

    @confidence.setter
    def confidence(self, value: bool) -> None:
        self._check_switch("confidence", value)
        if value:
            register()
        self._confidence = value

    @property
    def overwrite(self) -> bool:
        """Whether annotation that is on a doc is ignored instead of taken as evidence."""
        return self._overwrite

    @overwrite.setter
    def overwrite(self, value: bool) -> None:
        self._check_switch("overwrite", value)
        self._overwrite = value

    def _check_switch(self, setting: str, value: bool) -> None:
        if not isinstance(value, bool):
            raise InputError(f"{self.name}: {setting} is {value!r}: take True or False")

    @abstractmethod
    def legal(self) -> LegalTransitions:
        """The legal transitions between tags, and the legal first and last tags."""

    @abstractmethod
    def known_tags(self, doc: Doc, bounds: Bounds) -> list[Allowed | None]:
        """Read the evidence in the annotation on a doc.

        Args:
            doc: the doc.
            bounds: its sentences.

        Returns:
            For each sentence, the tags that the annotation already on the doc allows, as a bool
            array (n, K); None if the doc has no such annotation.
        """

    @abstractmethod
    def known_of(self, doc: Doc, bounds: Bounds, **evidence: Any) -> list[Known]:
        """Translate evidence that a user gives into what is known of each sentence.

        Args:
            doc: the doc.
            bounds: its sentences.
            evidence: what the component's `decode` takes.

        Raises:
            InputError: if the evidence contradicts itself or the annotation on the doc.
        """

    @abstractmethod
    def of_spans(
        self, doc: Doc, require: Iterable[Asked] = (), forbid: Iterable[Asked] = ()
    ) -> dict[str, Any]:
        """Give the arguments of `known_of` and `decode` that say that spans are there or are not.

        Args:
            doc: the doc.
            require: the spans that the analysis has.
            forbid: the spans that it does not have.

        Raises:
            InputError: if no analysis agrees with the spans, or the doc has no such tokens.
        """

    def grouped(self, doc: Doc) -> dict[str, Any]:
        """Read the evidence in the span groups `required_spans_key` and `forbidden_spans_key`.

        Returns:
            Arguments of `known_of`; empty if the doc has no such spans.

        Raises:
            InputError: if no analysis agrees with the spans.
        """
        keys = (self.required_spans_key, self.forbidden_spans_key)
        groups = [list(doc.spans.get(key) or ()) if key else [] for key in keys]
        return self.of_spans(doc, *groups) if any(groups) else {}

    def excluded(self, chain: LinearChain, wrong: list[Spans]) -> LinearChain:
        """Leave out the analyses that have a span known to be wrong.

        Where a component has no spans, none is known to be wrong.

        Args:
            chain: the distributions of B sentences.
            wrong: the spans of each sentence.
        """
        return chain

    @property
    def outputs(self) -> int:
        return len(self.tags)

    def distribution(self, docs: Iterable[Doc]) -> LinearChain:
        """Give the distribution over the legal tag sequences of the docs' sentences.

        It takes account of the annotation that is already on the docs.

        Args:
            docs: the docs.

        Returns:
            A chain with one row for each sentence that has tokens.

        Raises:
            InputError: if the model listens to a component that has not seen a doc.
            ValueError: if the docs have no token, or the component has no weights.
        """
        split = SplitDocs(docs)
        if not any(len(doc) for doc in split.docs):
            raise ValueError(
                f"{self.name}: there are no tokens to give a distribution over: "
                "give docs with tokens"
            )
        check_upstream(self.name, self.model, split.docs)
        known = self.known(split)
        potentials = self._potentials(self._inputs(split))
        filled = [i for i, array in enumerate(potentials) if len(array)]
        return self._given([potentials[i] for i in filled], [known[i] for i in filled])

    def infer(
        self, docs: list[Doc], read: Callable[[LinearChain], Iterable[Answer]]
    ) -> list[list[tuple[int, Answer]]]:
        """Read an answer for each sentence of some docs from its distribution.

        Sentences go through the model in order of length, `batch_tokens` at a time, so that a long
        sentence does not pad many short ones. Sentences without tokens are left out.

        Args:
            docs: the docs.
            read: called with the distribution of a batch of sentences, given the evidence on their
                docs; gives an answer for each of them.

        Returns:
            For each doc, the first token of each sentence and the answer for it.

        Raises:
            InputError: if no legal analysis of a sentence agrees with the evidence, or the model
                listens to a component that has not seen a doc.
        """
        split = SplitDocs(docs)
        known = self.known(split)
        found: dict[int, Answer] = {}
        for batch, potentials in self._batches(split, known):
            chain = self._given(potentials, [known[i] for i in batch])
            with self._naming_the_impossible(chain, split, batch):
                found.update(zip(batch, read(chain), strict=True))
        numbers = iter(range(len(split.sizes)))
        return [
            [(start, found[i]) for (start, _), i in zip(bounds, numbers) if i in found]
            for bounds in split.bounds
        ]

    def analyses(self, doc: Doc) -> DocAnalyses:
        """Score a doc once, for many questions to its analyses.

        Args:
            doc: the doc; the evidence on it counts.

        Returns:
            The analyses, which take more evidence by `given`.

        Raises:
            InputError: if no legal analysis of a sentence agrees with the evidence on the doc, or
                the model listens to a component that has not seen it.
        """
        split = SplitDocs([doc])
        known = self.known(split)
        scores = {
            i: array
            for batch, potentials in self._batches(split, known)
            for i, array in zip(batch, potentials, strict=True)
        }
        filled = [i for i, size in enumerate(split.sizes) if size]

        def to_chain(place: int, known: Known) -> LinearChain:
            return self._given([scores[filled[place]]], [known]).double()

        sentences = []
        for place, i in enumerate(filled):
            sentences.append(SentenceAnalyses(to_chain(place, known[i]), known[i]))
            with self._naming_the_impossible(sentences[-1].chain, split, [i]):
                exact(sentences[-1].chain)
        starts = [split.bounds[0][i][0] for i in filled]
        return DocAnalyses(self, doc, starts, to_chain, sentences)

    def _decoded(self, doc: Doc, k: int, **evidence: Any) -> Decoding:
        with naming(self.name):
            check_sizes(k=k)
        found = self.analyses(doc).given(**evidence)
        return Decoding(found.kbest(k), found.log_evidence)

    def _batches(
        self, split: SplitDocs, known: list[Known]
    ) -> Iterator[tuple[list[int], list[Floats2d]]]:
        """Yield the numbers of sentences that go through the model together, and their scores."""
        self._require_weights()
        check_upstream(self.name, self.model, split.docs)
        if not any(split.sizes):  # a transformer cannot take a batch of docs without tokens
            return
        # Layers that must get whole docs are computed once, for all of them.
        whole = sentence_scores(self.model, split) if listens(self.model) else None
        most = max((len(forbidden) for _, forbidden in known), default=0)
        # Sentences with forbidden spans have more tags, so they are in batches of their own.
        for tags, own in ((len(self.tags), False), (len(self.tags) + 4 * most, True)):
            chosen = [size * (bool(k.forbidden) == own) for size, k in zip(split.sizes, known)]
            budget = min(self.batch_tokens, POTENTIALS // max(1, tags**2))
            for batch in batches_by_size(chosen, budget):
                if whole is None:
                    yield batch, self._potentials(split.sentences.chosen(batch))
                else:
                    potentials = whole(batch)
                    check_scores(self.name, self.model, potentials, split.docs)
                    yield batch, potentials

    def known(self, split: SplitDocs) -> list[Known]:
        """Read what the docs say of each sentence."""
        found = []
        for doc, bounds in zip(split.docs, split.bounds):
            own = [Known(allowed) for allowed in self.known_tags(doc, bounds)]
            groups = self.grouped(doc)
            if groups:
                more = self.known_of(doc, bounds, **groups)
                own = [one.joined(other) for one, other in zip(own, more)]
            found += own
        return found

    def _inputs(self, split: SplitDocs) -> list[Doc]:
        """Give what the model takes: whole docs if it listens to a component, else sentences."""
        return split.docs if listens(self.model) else split.sentences

    @contextmanager
    def _naming_the_impossible(
        self, chain: LinearChain, split: SplitDocs, batch: list[int]
    ) -> Iterator[None]:
        """Name the first sentence of a batch without a legal analysis in an error raised inside.

        Only then the sentences are needed as docs, which take longer to make than to find.
        """
        try:
            yield
        except ValueError as error:
            impossible = (chain.log_partition == -torch.inf).nonzero()[:, 0].tolist()
            if not impossible:
                raise
            sentence = split.sentences[batch[impossible[0]]]
            raise InputError(
                f"{self.name}: no legal analysis of the sentence {sentence.text!r} "
                "agrees with the annotation on its doc: correct it, or set overwrite = true"
            ) from error

    def _chain(self, flat: Tensor, lengths: Tensor) -> LinearChain:
        """Make a distribution from the (N, K), (N, K * K) or (N, P) scores of a ragged batch."""
        k = len(self.tags)
        if flat.shape[1] == k:
            return LinearChain.from_emissions(pad(flat, lengths), lengths)
        if flat.shape[1] == k * k:
            return LinearChain(pad(flat.view(-1, k, k), lengths), lengths)
        return PairChain(flat, lengths, TagPairs(self.legal()[0]))

    def _given(self, potentials: list[Floats2d], known: list[Known]) -> LinearChain:
        flat = xp2torch(join_rows(self.model.ops.xp, potentials))
        if self.temperature != 1.0:
            flat = flat / self.temperature
        lengths = torch.tensor([len(array) for array in potentials])
        chain = self.legal_chain(flat, lengths)
        if any(allowed is not None for allowed, _ in known):
            tokens = mask(lengths)
            evidence = tokens[..., None].expand(-1, -1, len(self.tags)).clone()
            for row, (allowed, _) in enumerate(known):
                if allowed is not None:
                    evidence[row, : len(allowed)] = torch.from_numpy(allowed)
            chain = chain.constrain(evidence.to(flat.device))
        return self.excluded(chain, [forbidden for _, forbidden in known])

    def legal_chain(self, flat: Tensor, lengths: Tensor) -> LinearChain:
        """Make the distribution over the legal analyses that the component predicts from.

        Args:
            flat: (N, K), (N, K * K) or (N, P) the scores of all tokens of the sentences.
            lengths: (B,) the number of tokens of each sentence.
        """
        chain = self._chain(flat, lengths)
        legal = (torch.from_numpy(array).to(chain.device) for array in self.legal())
        transitions, start, end = legal
        return chain.constrain(transitions=transitions, start=start, end=end)
