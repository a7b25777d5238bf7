"""`constituency_parser`: constituency trees by a chart over labelled spans (Kitaev2018)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, xp2torch
from thinc.types import Floats2d

from spacy_psa.architectures.sentencewise import listens, sentence_scores
from spacy_psa.errors import InputError, check_choice, check_sizes, naming
from spacy_psa.pipeline.component import StructuredPipe, batches_by_size
from spacy_psa.pipeline.factory import component_factory
from spacy_psa.pipeline.not_finite import check_scores
from spacy_psa.pipeline.parser.charts import Shares, label_shares, span_count, span_tree
from spacy_psa.pipeline.parser.constituents import (
    JOIN,
    KEY,
    Sentence,
    gold_trees,
    token_nodes,
    word_sentences,
)
from spacy_psa.pipeline.parser.default_model import DEFAULT_MODEL
from spacy_psa.pipeline.parser.evidence import constrained
from spacy_psa.pipeline.parser.extensions import register_extensions
from spacy_psa.pipeline.parser.gold import Gold, find_tags, read_gold, too_long, warn_of_length
from spacy_psa.pipeline.parser.loss import Loss, tag_loss, tree_loss
from spacy_psa.pipeline.parser.queries import TreeQueries
from spacy_psa.sentences import SplitDocs, split_sentences
from spacy_psa.structs.span_cells import Tree
from spacy_psa.structs.tree import SpanTree

if TYPE_CHECKING:
    pass


class Constituent(NamedTuple):
    """A constituent over the tokens of a doc.

    Examples:
        >>> Constituent(0, 2, "NP", confidence=0.9).label
        'NP'
    """

    start: int
    """The first token."""
    end: int
    """The token after the last one."""
    label: str
    confidence: float
    """The posterior probability; 0 if it was not asked for, or the sentence was not parsed."""


class Parse(NamedTuple):
    """The prediction for a doc.

    Examples:
        >>> parse = Parse([Constituent(0, 2, "NP", confidence=0.9)], tags={0: "DT", 1: "NN"})
        >>> parse.tags[parse.constituents[0].start]
        'DT'
    """

    constituents: list[Constituent]
    """The constituents of the best trees of its sentences, in preorder."""
    tags: dict[int, str]
    """The tag of each word, by the number of its token; empty if there is no tag head."""


class ConstituencyParser(StructuredPipe, TreeQueries):
    """Finds constituency trees and writes them to `doc.spans["constituents"]`.

    The component `constituency_parser` predicts the best tree of each sentence (Kitaev2018 section
    2.1). A doc without sentence boundaries is one sentence. The constituents of all sentences are
    in preorder; a unary chain is several spans with equal offsets, the outermost first. With a tag
    head, the parser also writes `token.tag_` of all words that it parses.

    Constituents and tags that are on a doc before the parser runs are not evidence: the parser
    replaces them. White space tokens keep their tags, and so do sentences of more than `max_length`
    tokens. Attributes such as `span._.labels` and `doc._.parse_trees` read the trees; see
    `spacy_psa.pipeline.parser.extensions`.

    `labels` are the labels of the chart, with unary chains joined ("S VP"). The label that most
    sentences of the training data have at the root is the first.

    Scores: `constituents_p`, `constituents_r`, `constituents_f`, `constituents_exact`,
    `constituents_no_crossing`, `constituents_tag_acc` and `constituents_per_type`; see
    `spacy_psa.scoring.parseval_scorer`.

    Args:
        vocab: the vocabulary of the pipeline.
        model: Model[List[Doc], List[Floats2d]] that gives n (n + 1) / 2 rows for a sentence of n
            tokens, as `spacy-psa.ChartParser.v1` does; its nO is the number of labels. A tag head
            is its ref "tags". The default is a small model; `configs/parser/factored.cfg` has the
            sizes of Kitaev2018.
        name: the name of the component in the pipeline.
        loss: "max_margin", the hinge loss with Hamming cost (Kitaev2018 section 2.1), or
            "log_likelihood", the negative log likelihood of the tree CRF, which trains the
            posteriors.
        max_length: number of tokens of the longest sentence to parse. A longer one gets the first
            label over all its words, and a warning names the doc; training leaves it out.
        max_grad_norm: largest joint L2 norm of the gradients of this component in an update; 0 for
            no limit, as in Kitaev2018. Gradients of a shared tok2vec or transformer before it are
            not counted.
        batch_spans: number of spans that go through the chart together, n (n + 1) / 2 for a
            sentence of n tokens. It bounds the memory in prediction and, unless the model
            listens to another component, in training.
        tag_weight: weight of the tags' loss, a mean over tokens, when it is added to the trees'
            loss, a mean over sentences (5 in the later code of Kitaev2018).
        confidence: whether `doc.spans["constituents"].attrs["scores"]` gets the posterior of each
            constituent, which `span._.constituent_confidence` reads.
        required_spans_key: the key of `doc.spans` with constituents that the trees must have; None
            for no such spans. A span without label may have any.
        forbidden_spans_key: the key of `doc.spans` with constituents that the trees must not have;
            None for no such spans. A span without label is forbidden with all labels.
        scorer: called with the examples in `score`; None for no scores.

    Raises:
        InputError: if there is no such `loss`, or if `max_length` is below 1.

    Examples:
        >>> import spacy
        >>> from spacy.tokens import Span
        >>> from spacy.training import Example
        >>> nlp = spacy.blank("en")
        >>> parser = nlp.add_pipe(
        ...     "constituency_parser", config={"model": {"tok2vec": {"encode": {"layers": 1}}}}
        ... )
        >>> reference = nlp.make_doc("Ada met Bob")
        >>> nodes = [(0, 3, "S"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")]
        >>> reference.spans["constituents"] = [Span(reference, *node) for node in nodes]
        >>> example = Example(nlp.make_doc("Ada met Bob"), reference)
        >>> optimizer = nlp.initialize(lambda: [example])
        >>> parser.labels
        ('S', 'NP', 'VP')
        >>> optimizer.learn_rate = 0.004
        >>> for _ in range(6):
        ...     losses = nlp.update([example], sgd=optimizer)
        >>> doc = nlp("Ada met Bob")
        >>> doc[:]._.parse_string
        '(S (NP (X Ada)) (VP (X met) (NP (X Bob))))'
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "parser",
        *,
        loss: Loss = "max_margin",
        max_length: int = 300,
        max_grad_norm: float = 0.0,
        batch_spans: int = 100_000,
        tag_weight: float = 5.0,
        confidence: bool = False,
        required_spans_key: str | None = None,
        forbidden_spans_key: str | None = None,
        scorer: Callable | None = None,
    ):
        super().__init__(vocab, model, name, scorer=scorer, max_grad_norm=max_grad_norm)
        with naming(name):
            check_choice("loss", loss, Loss)
            check_sizes(max_length=max_length)
        self.loss = loss
        self.max_length = max_length
        self.batch_spans = batch_spans
        self.tag_weight = tag_weight
        self.confidence = confidence
        self.required_spans_key = required_spans_key
        self.forbidden_spans_key = forbidden_spans_key
        register_extensions()

    @property
    def outputs(self) -> int:
        return len(self.labels)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that the tag head predicts; empty if there is no tag head."""
        return tuple(self.cfg.get("tags", ()))

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
    ) -> None:
        """Fix the labels, and the tags if there is a tag head, and make the weights.

        Args:
            get_examples: gives the training examples.
            nlp: the pipeline, which spaCy passes; it is not used.
            labels: the labels; None to find them in the examples.
            tags: the tags; None to find them in the examples.

        Raises:
            InputError: if there is no label, or no tag for a tag head.
            ValueError: if the examples have no token.
        """
        if self.model.has_ref("tags"):
            validate_get_examples(get_examples, "ConstituencyParser.initialize")
            self.cfg["tags"] = list(find_tags(get_examples()) if tags is None else tags)
            if not self.tags:
                raise InputError(
                    f"{self.name}: tag_hidden needs tags, but the training data has none: "
                    "set it to null"
                )
            for tag in self.tags:
                self.vocab.strings.add(tag)
            self.model.get_ref("tags").set_dim("nO", len(self.tags))
        super().initialize(get_examples, nlp=nlp, labels=labels)

    def find_labels(self, examples: Iterable[Example]) -> list[str]:
        at_root: Counter[str] = Counter()
        for eg in examples:
            for tree in gold_trees(eg.reference, eg.reference):
                if tree is not None:
                    at_root.update({label: int(i == 0) for i, (_, _, label) in enumerate(tree)})
        return sorted(at_root, key=lambda label: (-at_root[label], label))

    def samples(self, examples: Iterable[Example]) -> Iterator[Doc]:
        if listens(self.model):
            return super().samples(examples)
        parts = (part for eg in examples for part in split_sentences([eg.predicted]))
        return (part for part in parts if 0 < len(part) <= self.max_length)

    # Inference

    def distribution(self, docs: Iterable[Doc]) -> SpanTree:
        """Give the distribution over the trees of the docs' sentences, over their words.

        Sentences without words are left out, and so are sentences that are too long, with a
        warning.

        Args:
            docs: the docs.

        Returns:
            A distribution with one row for each sentence; `labels[i]` has the number i + 1.

        Raises:
            ValueError: if no sentence is left, or if the component has no weights.
        """
        split = SplitDocs(docs)
        found, sizes = self._plan(split)
        numbers = [i for i, size in enumerate(sizes) if size]
        if not numbers:
            raise ValueError(
                f"{self.name}: no sentence has words and at most max_length = {self.max_length} "
                "tokens: give docs with such sentences, or raise max_length"
            )
        arrays = sentence_scores(self.model, split)(numbers)[: len(numbers)]
        flat = xp2torch(self.model.ops.xp.concatenate(arrays))
        return span_tree(flat, [found[i] for i in numbers])

    def predict(self, docs: Iterable[Doc]) -> list[Parse]:
        """Predict the best trees of each doc, and the tags of its words."""
        split = SplitDocs(docs)
        found, sizes = self._plan(split)
        best: list[list[Constituent]] = [[] for _ in found]
        tagged: list[dict[int, str]] = [{} for _ in found]
        for batch, dist, tags in self._distributions(split, found, sizes):
            shares = label_shares(dist, dist.argmax) if self.confidence else [None] * len(batch)
            for i, tree, share in zip(batch, dist.argmax, shares, strict=True):
                best[i] = self._constituents(tree, found[i], share)
            for i, scores in zip(batch, tags):
                tagged[i] = self._tags(scores, found[i])
        for i, (sentence, size) in enumerate(zip(found, sizes)):
            if len(sentence.words) and not size:
                best[i] = self._constituents([(0, len(sentence.words), 1)], sentence)
        ready = iter(zip(best, tagged, strict=True))
        parses = []
        for bounds in split.bounds:
            parts = [next(ready) for _ in bounds]
            written = {i: tag for _, part in parts for i, tag in part.items()}
            parses.append(Parse([c for part, _ in parts for c in part], written))
        return parses

    def set_annotations(self, docs: Iterable[Doc], scores: list[Parse]) -> None:
        """Write the predictions of `predict` to the docs in place of earlier constituents and tags.

        The constituents go to `doc.spans["constituents"]`, the tags to the tokens.
        """
        for doc, (constituents, tags) in zip(docs, scores, strict=True):
            for i, tag in tags.items():
                doc[i].tag_ = tag
            spans = [Span(doc, c.start, c.end, c.label) for c in constituents]
            attrs: dict[str, Any] = {}
            if self.confidence:
                attrs["scores"] = numpy.array([c.confidence for c in constituents])
            doc.spans[KEY] = SpanGroup(doc, name=KEY, attrs=attrs, spans=spans)

    def _plan(self, split: SplitDocs) -> tuple[list[Sentence], list[int]]:
        """List all sentences, and the number of chart spans of each; 0 if it is not parsed."""
        self._require_weights()
        found, sizes = [], []
        for doc, bounds in zip(split.docs, split.bounds):
            for sentence in word_sentences(doc, bounds):
                found.append(sentence)
                sizes.append(span_count(sentence))
                if len(sentence.words) and too_long(sentence, self.max_length):
                    sizes[-1] = 0
                    fate = f"gets {self.labels[0]!r} over all words"
                    warn_of_length(self.name, doc, sentence, self.max_length, fate)
        return found, sizes

    def _distributions(
        self, split: SplitDocs, found: list[Sentence], sizes: list[int]
    ) -> Iterator[tuple[list[int], SpanTree, list[Floats2d]]]:
        """Yield the numbers of batches of sentences, their distribution and the scores of tags."""
        scores = sentence_scores(self.model, split)
        known = self._grouped(split, found)
        for batch in batches_by_size(sizes, self.batch_spans):
            arrays = scores(batch)
            check_scores(self.name, self.model, arrays, split.sentences.chosen(batch))
            flat = xp2torch(self.model.ops.xp.concatenate(arrays[: len(batch)]))
            trees = span_tree(flat, [found[i] for i in batch])
            trees = constrained(trees, [known[i] for i in batch], self.labels)
            yield batch, trees, arrays[len(batch) :]

    def _tags(self, scores: Floats2d, sentence: Sentence) -> dict[int, str]:
        """Find the best tag of each word, by the number of its token."""
        best = cast(Any, scores).argmax(1)[sentence.words - sentence.start].tolist()
        return {i: self.tags[number] for i, number in zip(sentence.words.tolist(), best)}

    def _constituents(
        self, tree: Tree, sentence: Sentence, shares: Shares | None = None
    ) -> list[Constituent]:
        """Translate a tree of the chart into constituents over tokens.

        The posterior of a constituent is the sum over all chains over its words that hold its
        label.
        """
        found = []
        for place, (start, end, number) in enumerate(tree):
            node = (start, end, self.labels[number - 1])
            for first, last, label in token_nodes(node, sentence.words):
                confidence = 0.0
                if shares is not None:
                    holding = [label in chain.split(JOIN) for chain in self.labels]
                    confidence = float(shares[place, holding].sum())
                found.append(Constituent(first, last, label, confidence))
        return found

    # Training

    def accumulate(self, examples: list[Example]) -> float:
        # A listener must get the same batch as the component that it listens to.
        if listens(self.model):
            return super().accumulate(examples)
        parts = split_sentences(eg.predicted for eg in examples)
        gold = self._gold(examples)
        loss = 0.0
        for batch in batches_by_size(gold.sizes, self.batch_spans):
            scores, backprop = self.model.begin_update(parts.chosen(batch))
            share, d_scores = self._loss(batch, gold, scores)
            backprop(d_scores)
            loss += share
        return loss

    def get_loss(
        self, examples: Iterable[Example], scores: list[Floats2d]
    ) -> tuple[float, list[Floats2d]]:
        """Compute the mean loss of the sentences with trees and of their tags, and its gradient.

        Args:
            examples: predicted docs with their references.
            scores: the output of the model for the predicted docs.

        Returns:
            The loss, and its gradient with respect to each array of `scores`; it is zero for
            sentences without trees.
        """
        gold = self._gold(list(examples))
        gradients = [self.model.ops.xp.zeros_like(array) for array in scores]
        loss = 0.0
        for batch in batches_by_size(gold.sizes, self.batch_spans):
            of_tags = [len(gold.sentences) + i for i in batch] if gold.tags else []
            places = [*batch, *of_tags]
            share, d_scores = self._loss(batch, gold, [scores[i] for i in places])
            loss += share
            for i, gradient in zip(places, d_scores, strict=True):
                gradients[i] = gradient
        return loss, gradients

    def _loss(
        self, batch: list[int], gold: Gold, scores: list[Floats2d]
    ) -> tuple[float, list[Floats2d]]:
        """Compute the share of some sentences in the mean loss, and its gradient."""
        loss, gradients = tree_loss(scores[: len(batch)], batch, gold, self.loss)
        if gold.tags:
            share, d_tags = tag_loss(scores[len(batch) :], batch, gold)
            loss += self.tag_weight * share
            gradients += [self.tag_weight * gradient for gradient in d_tags]
        return loss, gradients

    def _gold(self, examples: list[Example]) -> Gold:
        return read_gold(examples, self.labels, self.tags, self.max_length, self.name)


make_constituency_parser = component_factory(
    "constituency_parser",
    ConstituencyParser,
    model=DEFAULT_MODEL,
    scorer="spacy-psa.parseval_scorer.v1",
    assigns=["doc.spans", "token.tag"],
    score_weights={
        "constituents_f": 1.0,
        "constituents_p": 0.0,
        "constituents_r": 0.0,
        "constituents_exact": 0.0,
        "constituents_no_crossing": None,
        "constituents_tag_acc": None,
        "constituents_per_type": None,
    },
)
