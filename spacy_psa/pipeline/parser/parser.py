"""`constituency_parser`: constituency trees by a chart over labelled spans (Kitaev2018)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.architectures.chart import tag_heads
from spacy_psa.architectures.more_labels import add_span_labels
from spacy_psa.architectures.sentencewise import listens
from spacy_psa.errors import InputError, check_amounts, check_choice, naming
from spacy_psa.pipeline.factory import component_factory
from spacy_psa.pipeline.parser.constituents import JOIN, KEY, LABEL, gold_trees
from spacy_psa.pipeline.parser.default_model import DEFAULT_MODEL
from spacy_psa.pipeline.parser.gold import Gold, find_tags, read_gold
from spacy_psa.pipeline.parser.loss import Loss, tag_loss, tree_loss
from spacy_psa.pipeline.parser.seen_docs import SeenQuotes, seen_docs
from spacy_psa.pipeline.parser.tree_predictor import Decode, TreePredictor
from spacy_psa.ragged import batches_by_size
from spacy_psa.sentences import split_sentences


class ConstituencyParser(TreePredictor):
    """Finds constituency trees and writes them to `doc.spans["constituents"]`.

    The component `constituency_parser` predicts the best tree of each sentence (Kitaev2018 section
    2.1). A doc without sentence boundaries is one sentence. The constituents of all sentences are
    in preorder; a unary chain is several spans with equal offsets, the outermost first. With a tag
    head, the parser also writes `token.tag_` of all words that it parses.

    Constituents that are on a doc before the parser runs are evidence: the parser keeps them and
    predicts the best trees that agree with them. It also keeps constituents whose labels it does
    not know. What a parser has predicted earlier is not evidence. Tags that are on a doc are
    replaced, unless `overwrite_tags = false`. White space tokens keep their tags, and so do
    sentences of more than `max_length` tokens. Attributes such as
    `span._.labels` and `doc._.parse_trees` read the trees; see
    `spacy_psa.pipeline.parser.extensions`.

    `labels` are the labels of the chart, with unary chains joined ("S VP"). The label that most
    sentences of the training data have at the root is the first.

    Scores: `tree_p`, `tree_r`, `tree_f` and `tree_exact`, which are also `constituents_p` and so
    on; `constituents_no_crossing`, `constituents_tag_acc` and `constituents_per_type`; see
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
        max_length: number of tokens of the longest sentence to parse. Memory grows with its square
            and time with its cube. A longer one gets the first label over all its words, and a
            warning names the doc; training leaves it out.
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
        decode: "cky" predicts the most probable tree, "mbr" the tree whose constituents have the
            highest expected F1 (minimum Bayes risk).
        overwrite: True to ignore and replace the constituents that are on a doc; False to take them
            as evidence.
        overwrite_tags: whether a tag head replaces the tags that are on a doc.
        spans_key: the span group of the constituents, in docs to parse and in training data. Each
            of several parsers in a pipeline needs its own; the functions of
            `spacy_psa.pipeline.parser.extensions` read them.
        required_spans_key: the key of `doc.spans` with constituents that the trees must have; None
            for no such spans. A span without label may have any.
        forbidden_spans_key: the key of `doc.spans` with constituents that the trees must not have;
            None for no such spans. A span without label is forbidden with all labels.
        quotes: "treebank" shows the encoder `` and '' for the quotation marks of text, if the
            training data has these; "as_they_are" changes nothing. It is not possible if the model
            listens to another component.
        scorer: called with the examples in `score`; None for no scores.

    Raises:
        InputError: if a setting has a value that is not possible.

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
        max_length: int = 1000,
        max_grad_norm: float = 0.0,
        batch_spans: int = 100_000,
        tag_weight: float = 5.0,
        confidence: bool = False,
        decode: Decode = "cky",
        overwrite: bool = False,
        overwrite_tags: bool = True,
        spans_key: str = KEY,
        required_spans_key: str | None = None,
        forbidden_spans_key: str | None = None,
        quotes: SeenQuotes = "as_they_are",
        scorer: Callable | None = None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            max_length=max_length,
            max_grad_norm=max_grad_norm,
            batch_spans=batch_spans,
            confidence=confidence,
            decode=decode,
            overwrite=overwrite,
            overwrite_tags=overwrite_tags,
            spans_key=spans_key,
            required_spans_key=required_spans_key,
            forbidden_spans_key=forbidden_spans_key,
            quotes=quotes,
            scorer=scorer,
        )
        with naming(name):
            check_choice("loss", loss, Loss)
            check_amounts(tag_weight=tag_weight)
        self.loss = loss
        self.tag_weight = tag_weight

    @property
    def ranks_only(self) -> bool:
        return self.loss == "max_margin"

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Any = None,
        tags: Any = None,
    ) -> None:
        """Fix the labels, and the tags if there is a tag head, and make the weights.

        Args:
            get_examples: gives the training examples.
            nlp: the pipeline, which spaCy passes; it is not used.
            labels: a list of labels; None to find them in the examples.
            tags: a list of tags; None to find them in the examples.

        Raises:
            InputError: if there is no label, or no tag for a tag head, or if `labels` or `tags` is
                no list.
            ValueError: if the examples have no token.
        """
        self._check_list("tags", tags)
        if heads := tag_heads(self.model):
            validate_get_examples(get_examples, "ConstituencyParser.initialize")
            self.cfg["tags"] = list(find_tags(get_examples()) if tags is None else tags)
            if not self.tags:
                raise InputError(
                    f"{self.name}: tag_hidden needs tags, but the training data has none: "
                    "set it to null"
                )
            for tag in self.tags:
                self.vocab.strings.add(tag)
            for head in heads:
                head.set_dim("nO", len(self.tags))
        super().initialize(get_examples, nlp=nlp, labels=labels)

    def add_label(self, label: str) -> int:
        """Add a label, or the labels of a unary chain with blanks between them.

        Returns:
            1 if the label is new, 0 if the parser has it already.

        Raises:
            InputError: if the label, or one of the chain, is empty or has a bracket.
            ValueError: as for all components.
        """
        if isinstance(label, str) and not all(LABEL.fullmatch(part) for part in label.split(JOIN)):
            raise InputError(
                f"{self.name}: {label!r} is no label: give one without brackets, or a chain of "
                "labels with one blank between them"
            )
        return super().add_label(label)

    def widen_model(self) -> None:
        add_span_labels(self.model, self.outputs)

    def find_labels(self, examples: Iterable[Example]) -> list[str]:
        at_root: Counter[str] = Counter()
        for eg in examples:
            for tree in gold_trees(eg.reference, eg.reference, self.spans_key):
                if tree is not None:
                    at_root.update({label: int(i == 0) for i, (_, _, label) in enumerate(tree)})
        return sorted(at_root, key=lambda label: (-at_root[label], label))

    def samples(self, examples: Iterable[Example]) -> Iterator[Doc]:
        if listens(self.model):
            return super().samples(examples)
        parts = (part for eg in examples for part in split_sentences([eg.predicted]))
        return (part for part in parts if 0 < len(part) <= self.max_length)

    # Training

    def accumulate(self, examples: list[Example]) -> float:
        # A listener must get the same batch as the component that it listens to.
        if listens(self.model):
            return super().accumulate(examples)
        parts = split_sentences(seen_docs((eg.predicted for eg in examples), self.quotes))
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
        return read_gold(
            examples, self.labels, self.tags, self.max_length, self.name, self.spans_key
        )

    def score(self, examples: Iterable[Example], **settings: Any) -> dict[str, Any]:
        """Score predicted docs by the component's scorer, which gets `spans_key`.

        Args:
            examples: predicted docs with their references.
            settings: passed to the scorer.
        """
        return super().score(examples, component_key=self.spans_key, **settings)


make_constituency_parser = component_factory(
    "constituency_parser",
    ConstituencyParser,
    model=DEFAULT_MODEL,
    scorer="spacy-psa.parseval_scorer.v1",
    assigns=["doc.spans", "token.tag"],
    score_weights={
        "tree_f": 1.0,
        "tree_p": 0.0,
        "tree_r": 0.0,
        "tree_exact": 0.0,
        "constituents_f": None,
        "constituents_p": None,
        "constituents_r": None,
        "constituents_exact": None,
        "constituents_no_crossing": None,
        "constituents_tag_acc": None,
        "constituents_per_type": None,
    },
)
