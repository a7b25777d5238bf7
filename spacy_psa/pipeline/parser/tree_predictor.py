"""The base class of the parser: from docs to trees, by the distribution over their trees."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy
import torch
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab
from thinc.api import Model, xp2torch
from thinc.types import Floats2d

from spacy_psa.architectures.sentencewise import listeners, listens, sentence_scores
from spacy_psa.corpora.bracketing import unescape
from spacy_psa.errors import InputError, check_choice, check_sizes, naming
from spacy_psa.pipeline.asked_spans import check_groups
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.pipeline.not_finite import check_scores
from spacy_psa.pipeline.parser.charts import Shares, label_parts, label_shares, span_tree
from spacy_psa.pipeline.parser.constituents import Sentence
from spacy_psa.pipeline.parser.doc_evidence import evidence_on
from spacy_psa.pipeline.parser.evidence import Evidence, constrain
from spacy_psa.pipeline.parser.extensions import parse_trees, register_extensions
from spacy_psa.pipeline.parser.gold import warn_of_length
from spacy_psa.pipeline.parser.plan import Plan
from spacy_psa.pipeline.parser.predictions import Constituent, Parse, note_predictions
from spacy_psa.pipeline.parser.queries import TreeQueries
from spacy_psa.pipeline.parser.seen_docs import SeenQuotes
from spacy_psa.pipeline.parser.translation import chart_constituents
from spacy_psa.pipeline.upstream import check_upstream
from spacy_psa.ragged import batches_by_size
from spacy_psa.sentences import sentence_bounds
from spacy_psa.structs.span_cells import Tree
from spacy_psa.structs.tree import SpanTree
from spacy_psa.structs.tree_f1 import best_expected_f1

if TYPE_CHECKING:
    from nltk import Tree as NltkTree

Decode = Literal["cky", "mbr"]


class TreePredictor(StructuredPipe, TreeQueries):
    """Predicts trees, and tags if there is a tag head; `ConstituencyParser` also trains.

    Args:
        vocab: the vocabulary of the pipeline.
        model: see `ConstituencyParser`, as for all arguments below.
        name: the name of the component in the pipeline.
        max_length: the longest sentence to parse, in tokens.
        max_grad_norm: the limit of the gradients; 0 for none.
        batch_spans: the spans that go through the chart together.
        confidence: whether to write posteriors.
        decode: the way to choose a tree.
        overwrite: whether to ignore the constituents that are on a doc.
        overwrite_tags: whether to replace the tags that are on a doc.
        spans_key: the span group of the constituents.
        required_spans_key: the span group of constituents that trees must have.
        forbidden_spans_key: the span group of constituents that trees must not have.
        quotes: the quotation marks that the encoder sees.
        scorer: called with the examples in `score`; None for no scores.

    Raises:
        InputError: if a setting has a value that is not possible.

    Examples:
        >>> import spacy
        >>> isinstance(spacy.blank("en").add_pipe("constituency_parser"), TreePredictor)
        True
    """

    kept = ("confidence", "decoding", "overwrite", "overwrite_tags")

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        max_length: int,
        max_grad_norm: float,
        batch_spans: int,
        confidence: bool,
        decode: Decode,
        overwrite: bool,
        overwrite_tags: bool,
        spans_key: str,
        required_spans_key: str | None,
        forbidden_spans_key: str | None,
        quotes: SeenQuotes,
        scorer: Callable | None,
    ):
        super().__init__(vocab, model, name, scorer=scorer, max_grad_norm=max_grad_norm)
        with naming(name):
            check_choice("quotes", quotes, SeenQuotes)
            if quotes != "as_they_are" and listens(model):
                raise InputError(
                    f"quotes = {quotes!r} does not reach the component that the model listens to: "
                    "leave it out, and train with quotes = 'mixed' of TreeCorpus.v1"
                )
            check_sizes(max_length=max_length, batch_spans=batch_spans)
            check_groups(required_spans_key, forbidden_spans_key, spans_key)
        self.max_length = max_length
        self.batch_spans = batch_spans
        self.confidence = confidence
        self.decoding = decode
        self.overwrite = overwrite
        self.overwrite_tags = overwrite_tags
        self.spans_key = spans_key
        self.required_spans_key = required_spans_key
        self.forbidden_spans_key = forbidden_spans_key
        self.quotes: SeenQuotes = quotes
        self._warned = False
        self.remember()
        register_extensions()

    @property
    def decoding(self) -> Decode:
        """The setting `decode`, the way to choose a tree: "cky" or "mbr".

        Raises:
            InputError: if it is set to something else.
        """
        return self._decoding

    @decoding.setter
    def decoding(self, value: Decode) -> None:
        with naming(self.name):
            check_choice("decode", value, Decode)
        self._decoding = value

    @property
    def outputs(self) -> int:
        return len(self.labels)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that the tag head predicts; empty if there is no tag head."""
        return tuple(self.cfg.get("tags", ()))

    def check_beside(self, others: Iterable[Any]) -> None:
        for other in others:
            if isinstance(other, TreePredictor) and other.spans_key == self.spans_key:
                warnings.warn(
                    f"{self.name}: it replaces the trees of {other.name} in "
                    f'doc.spans["{self.spans_key}"]: give each parser its own spans_key',
                    stacklevel=2,
                )

    @property
    @abstractmethod
    def ranks_only(self) -> bool:
        """Whether the scores only rank trees, because no likelihood has trained them."""

    def distribution(self, docs: Iterable[Doc]) -> SpanTree:
        """Give the distribution over the trees of the docs' sentences, over their words.

        It takes account of the constituents that are evidence. Sentences without words are left
        out, and so are sentences that are too long, with a warning.

        Args:
            docs: the docs.

        Returns:
            A distribution with one row for each sentence; `labels[i]` has the number i + 1.

        Raises:
            InputError: if the model listens to a component that has not seen a doc.
            ValueError: if no sentence is left, or if the component has no weights.
        """
        plan = self._plan(docs)
        numbers = [i for i, size in enumerate(plan.sizes) if size]
        if not numbers:
            raise ValueError(
                f"{self.name}: no sentence has words and at most max_length = {self.max_length} "
                "tokens: give docs with such sentences, or raise max_length"
            )
        arrays = sentence_scores(self.model, plan.seen)(numbers)[: len(numbers)]
        return self._given_evidence(arrays, numbers, plan)

    def predict(self, docs: Iterable[Doc]) -> list[Parse]:
        """Predict the best trees of each doc, and the tags of its words.

        Raises:
            InputError: if constituents that are evidence cross each other or the end of a sentence,
                or the model listens to a component that has not seen a doc.
        """
        return self._parses(self._plan(docs))

    def parse(self, words: Sequence[str | tuple[str, str]]) -> "NltkTree":
        """Parse one sentence of given words.

        Args:
            words: the words, or pairs of a word and its tag. They may be written as in a treebank:
                -LRB- is (, 1\\/2 is 1/2.

        Returns:
            The best tree.

        Raises:
            InputError: if the words are no list of words or pairs, if there are none, or if the
                parser listens to another component, whose vectors this method does not have.

        Examples:
            >>> import spacy
            >>> from spacy.tokens import Span
            >>> from spacy.training import Example
            >>> nlp = spacy.blank("en")
            >>> parser = nlp.add_pipe(
            ...     "constituency_parser", config={"model": {"tok2vec": {"encode": {"layers": 1}}}}
            ... )
            >>> reference = nlp.make_doc("Ada left")
            >>> reference.spans["constituents"] = [Span(reference, 0, 2, "S")]
            >>> _ = nlp.initialize(lambda: [Example(nlp.make_doc("Ada left"), reference)])
            >>> tree = parser.parse([("Ada", "NNP"), ("left", "VBD")])
            >>> tree.pos()
            [('Ada', 'NNP'), ('left', 'VBD')]
        """
        if isinstance(words, str):
            raise InputError(
                f"{self.name}: parse takes a list of words: give {words.split()!r}, or take "
                "nlp(text)._.parse_trees for text"
            )
        if not isinstance(words, Iterable):
            raise InputError(f"{self.name}: parse takes a list of words, not {words!r}")
        if listeners(self.model):
            raise InputError(
                f"{self.name}: it listens to another component of its pipeline: "
                "take nlp(Doc(nlp.vocab, words=words, tags=tags))._.parse_trees[0]"
            )
        pairs = [(word, "") if isinstance(word, str) else word for word in words]
        for pair in pairs:
            if not (isinstance(pair, (tuple, list)) and list(map(type, pair)) == [str, str]):
                raise InputError(
                    f"{self.name}: {pair!r} is no word, and no pair of a word and its tag"
                )
            if not pair[0]:
                raise InputError(f"{self.name}: a word is empty; leave it out")
        doc = Doc(
            self.vocab,
            words=[unescape(word) for word, _ in pairs],
            tags=[tag for _, tag in pairs],
            sent_starts=[i == 0 for i in range(len(pairs))],
        )
        if not doc.text.strip():
            raise InputError(f"{self.name}: there are no words to parse")
        self.set_annotations([doc], self.predict([doc]))
        return parse_trees(doc, self.spans_key)[0]

    def set_annotations(self, docs: Iterable[Doc], scores: list[Parse]) -> None:
        """Write the predictions of `predict`, with the evidence that is in them, to the docs.

        The constituents go to `doc.spans[spans_key]`, the tags to the tokens.
        """
        for doc, (constituents, tags) in zip(docs, scores, strict=True):
            for i, tag in tags.items():
                doc[i].tag_ = tag
            given = evidence_on(doc, self.spans_key) if not self.overwrite else set()
            spans = [Span(doc, c.start, c.end, c.label) for c in constituents]
            attrs: dict[str, Any] = {}
            if self.confidence:
                attrs["scores"] = numpy.array([c.confidence for c in constituents])
            doc.spans[self.spans_key] = SpanGroup(
                doc, name=self.spans_key, attrs=attrs, spans=spans
            )
            own = [c for c in constituents if c[:3] not in given]
            bounds = sentence_bounds(doc)
            note_predictions(doc, self.spans_key, bounds, own, tags, self.confidence)

    def _plan(self, docs: Iterable[Doc]) -> Plan:
        self._require_weights()
        plan = self._planned(list(docs))
        for i in plan.too_long:
            fate = f"gets {self.labels[0]!r} over all words"
            warn_of_length(self.name, plan.owners[i], plan.sentences[i], self.max_length, fate)
        return plan

    def _planned(self, docs: list[Doc], known: list[Evidence] | None = None) -> Plan:
        key = None if self.overwrite else self.spans_key
        tags_key = None if self.overwrite_tags else self.spans_key
        check_upstream(self.name, self.model, docs)
        return Plan(docs, self.max_length, key, known, self.quotes, tags_key)

    def _parses(self, plan: Plan) -> list[Parse]:
        best: list[list[Constituent]] = [[] for _ in plan.sentences]
        tagged: list[dict[int, str]] = [{} for _ in plan.sentences]
        for batch, dist, tags in self._distributions(plan):
            trees = self._decoded(dist, batch, plan)
            shares: list[Any] = [None] * len(batch)
            if self.confidence:
                self._warn_of_margin("confidence")
                shares = label_shares(dist, trees)
            for i, tree, share in zip(batch, trees, shares, strict=True):
                best[i] = self._constituents(tree, plan, i, share)
            for i, scores in zip(batch, tags):
                tagged[i] = self._tags(scores, plan.sentences[i], plan.tagged[i])
        for i in plan.too_long:
            sentence = plan.sentences[i]
            given = {place: chain for place, chain in plan.evidence[i].required if chain}
            flat = [(0, len(sentence.words), 1)]
            best[i] = chart_constituents(flat, self.labels, sentence, None, given)
        ready = iter(zip(best, tagged, strict=True))
        parses = []
        for bounds in plan.split.bounds:
            parts = [next(ready) for _ in bounds]
            written = {i: tag for _, part in parts for i, tag in part.items()}
            parses.append(Parse([c for part, _ in parts for c in part], written))
        return parses

    def _decoded(self, dist: SpanTree, batch: list[int], plan: Plan) -> list[Tree]:
        """Choose a tree for each sentence of a batch, by the setting `decode`.

        Raises:
            InputError: if no tree agrees with the constraints.
        """
        try:
            if self.decoding == "cky":
                return dist.argmax
            self._warn_of_margin("decode = 'mbr'")
            return best_expected_f1(dist, label_parts(self.labels))[0]
        except ValueError as error:
            impossible = (dist.log_partition == -torch.inf).nonzero()[:, 0].tolist()
            if not impossible:
                raise
            start, end, _ = plan.sentences[batch[impossible[0]]]
            raise InputError(
                f"{self.name}: no tree of {plan.owners[batch[impossible[0]]][start:end].text!r} "
                "agrees with all constraints: remove some"
            ) from error

    def _distributions(self, plan: Plan) -> Iterator[tuple[list[int], SpanTree, list[Floats2d]]]:
        """Yield the numbers of batches of sentences, their distribution and the scores of tags."""
        scores = sentence_scores(self.model, plan.seen)
        for batch in batches_by_size(plan.sizes, self.batch_spans):
            arrays = scores(batch)
            check_scores(self.name, self.model, arrays, plan.seen.docs)
            dist = self._given_evidence(arrays[: len(batch)], batch, plan)
            yield batch, dist, arrays[len(batch) :]

    def _given_evidence(self, arrays: list[Floats2d], batch: list[int], plan: Plan) -> SpanTree:
        # A long sentence is alone in its batch, and its scores need not be copied.
        whole = arrays[0] if len(arrays) == 1 else self.model.ops.xp.concatenate(arrays)
        flat = xp2torch(cast(Any, whole))
        dist = span_tree(flat, [plan.sentences[i] for i in batch])
        dist = constrain(dist, [plan.evidence[i] for i in batch], self.labels)
        return constrain(dist, [self._grouped(plan, i) for i in batch], self.labels)

    def _tags(self, scores: Floats2d, sentence: Sentence, known: set[int]) -> dict[int, str]:
        """Find the best tag of each word, by the number of its token; known tags stay."""
        best = cast(Any, scores).argmax(1)[sentence.words - sentence.start].tolist()
        found = zip(sentence.words.tolist(), best)
        return {i: self.tags[number] for i, number in found if i not in known}

    def _constituents(
        self, tree: Tree, plan: Plan, number: int, shares: Shares | None = None
    ) -> list[Constituent]:
        kept = plan.evidence[number].kept(self.labels)
        return chart_constituents(tree, self.labels, plan.sentences[number], shares, kept)

    def _warn_of_margin(self, asked: str) -> None:
        """Warn once that scores trained with a margin are no log probabilities."""
        if self.ranks_only and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.name}: {asked} asks for probabilities, but a model trained with loss = "
                "'max_margin' has none: they only rank. Train with loss = 'log_likelihood'",
                stacklevel=3,
            )
