"""`constituency_parser`: constituency trees by a chart over labelled spans (Kitaev2018)."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model, xp2torch
from thinc.types import Floats2d

from spacy_psa.architectures.chart import tag_heads
from spacy_psa.architectures.more_labels import add_span_labels
from spacy_psa.architectures.sentencewise import listeners
from spacy_psa.errors import InputError, check_amounts, check_choice, check_sizes, naming
from spacy_psa.pipeline.analyses import SentenceAnalyses
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.pipeline.default_models import CHART
from spacy_psa.pipeline.evidence import (
    NOTHING,
    Asked,
    Evidence,
    Labels,
    check_consistent,
    check_groups,
    check_other_group,
    cross,
)
from spacy_psa.pipeline.inference import Batch, Inference
from spacy_psa.pipeline.initialization import check_list, read_examples
from spacy_psa.pipeline.parser.chart import (
    Constraints,
    Known,
    check_kept,
    constrain,
    span_count,
    span_tree,
    trimmed,
)
from spacy_psa.pipeline.parser.constituents import (
    FLAT,
    JOIN,
    KEY,
    LABEL,
    bracketed,
    chains_of,
    gold_trees,
    single_labels,
    word_sentences,
)
from spacy_psa.pipeline.parser.extensions import parse_trees, register_extensions
from spacy_psa.pipeline.parser.gold import (
    Gold,
    find_tags,
    parser_loss,
    read_gold,
    read_own,
    warn_of_length,
)
from spacy_psa.pipeline.parser.seen import SeenQuotes, doc_of_words, seen_docs
from spacy_psa.pipeline.parser.sentence_tree import in_order
from spacy_psa.pipeline.parser.trees import (
    Decode,
    NoTrees,
    Parse,
    ParsedSentence,
    TreeBatch,
    TreeSentence,
    flat_parse,
    joined,
    parses,
)
from spacy_psa.pipeline.settings import Setting, check_switch, component_factory
from spacy_psa.pipeline.written import is_noted, note, spans_now, write_group
from spacy_psa.ragged import batches_by_size
from spacy_psa.sentences import Bounds, SplitDocs, split_sentences
from spacy_psa.structs.tree import SpanTree

if TYPE_CHECKING:
    from nltk import Tree as NltkTree

Loss = Literal["max_margin", "log_likelihood"]


class ConstituencyParser(StructuredPipe):
    """Finds constituency trees and writes them to `doc.spans["constituents"]`.

    The component `constituency_parser` predicts the best tree of each sentence (Kitaev2018 section
    2.1). A doc without sentence boundaries is one sentence. The constituents of all sentences are
    in preorder; a unary chain is several spans with equal offsets, the outermost first. With a tag
    head, the parser also writes `token.tag_` of all words that it parses.

    Constituents that are on a doc before the parser runs are evidence: the parser keeps them and
    predicts the best trees that agree with them. It also keeps constituents whose labels it does
    not know. Earlier predictions of a parser are not evidence. Tags that are on a doc are
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
        model: Model[List[Doc], List[Floats2d]] with n (n + 1) / 2 rows for a sentence of n
            tokens, as `spacy-psa.ChartParser.v1` does; its nO is the number of labels. A tag head
            is its ref "tags". The default is a small model; `configs/parser/factored.cfg` has the
            sizes of Kitaev2018.
        loss: "max_margin", the hinge loss with Hamming cost (Kitaev2018 section 2.1), or
            "log_likelihood", the negative log likelihood of the tree CRF, which trains the
            posteriors.
        max_length: number of tokens of the longest sentence to parse. Memory grows with its square
            and time with its cube. A longer one gets the first label over all its words, and a
            warning names the doc; training leaves it out.
        batch_spans: number of spans that go through the chart together, n (n + 1) / 2 for a
            sentence of n tokens. It bounds the memory in prediction and, unless the model
            listens to another component, in training.
        tag_weight: weight of the tags' loss, a mean over tokens, when it is added to the trees'
            loss, a mean over sentences (5 in the later code of Kitaev2018).
        confidence: whether `doc.spans["constituents"].attrs["scores"]` gets the posterior of each
            constituent, which `span._.constituent_confidence` reads.
        decode: "cky" predicts the most probable tree, "mbr" the tree whose constituents have the
            highest expected F1 (minimum Bayes risk).
        overwrite_tags: whether a tag head replaces the tags that are on a doc.
        spans_key: the span group of the constituents, in docs to parse and in training data. Each
            of several parsers in a pipeline needs its own; the functions of
            `spacy_psa.pipeline.parser.extensions` read them.
        mentions_key: the key of `doc.spans` with entities, as `crf_spans` writes them: each is a
            constituent, with any label. None for no such spans.
        quotes: "treebank" shows the encoder `` and '' for the quotation marks of text, if the
            training data has these; "as_they_are" changes nothing. It is not possible if the model
            listens to another component.

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

    _analyses = TreeBatch
    decode = Setting(lambda name, value: check_choice(name, value, Decode))
    overwrite_tags = Setting(check_switch)

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
        decode: Decode = "cky",
        overwrite_tags: bool = True,
        spans_key: str = KEY,
        mentions_key: str | None = None,
        quotes: SeenQuotes = "as_they_are",
        **settings: Any,
    ):
        super().__init__(vocab, model, name, max_grad_norm=max_grad_norm, **settings)
        with naming(name):
            check_choice("loss", loss, Loss)
            check_choice("quotes", quotes, SeenQuotes)
            if quotes != "as_they_are" and self._listens:
                raise InputError(
                    f"quotes = {quotes!r} does not reach the component that the model listens to: "
                    "leave it out, and train with quotes = 'mixed' of TreeCorpus.v1"
                )
            check_sizes(max_length=max_length, batch_spans=batch_spans)
            check_amounts(tag_weight=tag_weight)
            keys = self.required_spans_key, self.forbidden_spans_key
            check_groups(*keys, written=spans_key)
            check_other_group("mentions_key", mentions_key, spans_key)
        self.decode = decode
        self.overwrite_tags = overwrite_tags
        self.max_length = max_length
        self.batch_spans = batch_spans
        self.spans_key = spans_key
        self.mentions_key = mentions_key
        self._quotes: SeenQuotes = quotes
        self._loss = loss
        self._tag_weight = tag_weight
        self._warned = False
        register_extensions()

    @property
    def ranks_only(self) -> bool:
        """Whether scores only rank trees, because no likelihood has trained them."""
        return self._loss == "max_margin"

    def _check_others(self, others: Iterable[Any]) -> None:
        for other in others:
            if isinstance(other, ConstituencyParser) and other.spans_key == self.spans_key:
                warnings.warn(
                    f"{self.name}: it replaces the trees of {other.name} in "
                    f'doc.spans["{self.spans_key}"]: each parser needs its own spans_key',
                    stacklevel=2,
                )

    # Labels

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that the tag head predicts; empty if there is no tag head."""
        return tuple(self.cfg.get("tags", ()))

    @property
    def _outputs(self) -> int:
        return len(self.labels)

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
            get_examples: returns the training examples.
            nlp: the pipeline, which spaCy passes.
            labels: a list of labels; None to find them in the examples.
            tags: a list of tags; None to find them in the examples.

        Raises:
            InputError: if there is no label, or no tag for a tag head, or if `labels` or `tags` is
                not a list.
            ValueError: if the examples have no token.
        """
        check_list(self.name, "tags", tags)
        if heads := tag_heads(self.model):
            examples = read_examples(self, get_examples, [])
            self.cfg["tags"] = list(find_tags(examples) if tags is None else tags)
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
                f"{self.name}: {label!r} is not a label: it must have no brackets, or be a chain "
                "of labels with one blank between them"
            )
        return super().add_label(label)

    def _widen_model(self) -> None:
        add_span_labels(self.model, self._outputs)

    def _find_labels(self, examples: Iterable[Example]) -> list[str]:
        at_root: Counter[str] = Counter()
        for eg in examples:
            for tree in gold_trees(eg.reference, eg.reference, self.spans_key):
                if tree is not None:
                    at_root.update({label: int(i == 0) for i, (_, _, label) in enumerate(tree)})
        return sorted(at_root, key=lambda label: (-at_root[label], label))

    def _samples(self, examples: Iterable[Example]) -> Iterator[Doc]:
        if self._listens:
            return super()._samples(examples)
        parts = (part for eg in examples for part in split_sentences([eg.predicted]))
        return (part for part in parts if 0 < len(part) <= self.max_length)

    # Inference

    def predict(self, docs: Iterable[Doc]) -> list[Parse]:
        """Predict the best trees of each doc, and the tags of its words.

        Raises:
            InputError: if constituents that are evidence cross each other or the end of a sentence,
                if no tree agrees with them, or the model listens to a component that has not seen a
                doc.
        """
        inference = Inference(self, docs)
        parses = zip(inference.answers(self._parses), inference.known, strict=True)
        parts = [parse or flat_parse(known, self.labels) for parse, known in parses]
        return list(map(joined, inference.by_doc(parts)))

    def _parses(self, batch: Batch) -> Iterator[Parse]:
        if self.decode == "mbr":
            self._warn_of_margin("decode = 'mbr'")
        if self.confidence:
            self._warn_of_margin("confidence")
        return parses(batch, self.labels, self.tags, self.decode, self.confidence)

    def set_annotations(self, docs: Iterable[Doc], scores: list[Parse]) -> None:
        """Write the predictions of `predict`, with the evidence that is in them, to the docs.

        The constituents go to `doc.spans[spans_key]`, the tags to the tokens.
        """
        key = self.spans_key
        for doc, (constituents, tags) in zip(docs, scores, strict=True):
            if not self.overwrite_tags and tags and doc.has_annotation("TAG"):
                known = {token.i for token in doc if token.tag_ and not is_noted(key, token)}
                tags = {i: tag for i, tag in tags.items() if i not in known}
            given = {(s.start, s.end, s.label_): s for s in self._held(doc)}
            for i, tag in tags.items():
                doc[i].tag_ = tag
            spans = [given.get(c[:3]) or Span(doc, c.start, c.end, c.label) for c in constituents]
            scored = [c.confidence for c in constituents] if self.confidence else None
            own: list[tuple[Span | Token, float]] = [
                (s, c.confidence) for s, c in zip(spans, constituents) if c[:3] not in given
            ]
            own += [(doc[i], 1.0) for i in tags]
            sure = [value for _, value in own] if self.confidence else None
            write_group(doc, key, spans, scored)
            note(key, doc, [item for item, _ in own], sure)

    def parse(self, words: Sequence[str | tuple[str, str]]) -> "NltkTree":
        """Parse one sentence of given words.

        Args:
            words: the words, or pairs of a word and its tag. They may be written as in a treebank:
                -LRB- is (, 1\\/2 is 1/2.

        Returns:
            The best tree.

        Raises:
            InputError: if the words are not a list of words or pairs, if there are none, or if the
                parser listens to another component, whose vectors this method does not have.
        """
        if listeners(self.model):
            raise InputError(
                f"{self.name}: it listens to another component of its pipeline: "
                "use nlp(Doc(nlp.vocab, words=words, tags=tags))._.parse_trees[0]"
            )
        doc = doc_of_words(self.name, self.vocab, words)
        self.set_annotations([doc], self.predict([doc]))
        return parse_trees(doc, self.spans_key)[0]

    def _sentence_analyses(self, inference: Inference) -> list[SentenceAnalyses | None]:
        self._warn_of_margin("analyses")
        analyses = list(super()._sentence_analyses(inference))
        for i, known in enumerate(inference.known):
            start, end, _ = known.sentence
            if analyses[i] is None and start < end:
                analyses[i] = TreeSentence(NoTrees(self), 0, self._no_scores, known, (start, end))
        return analyses

    @property
    def _no_scores(self) -> Floats2d:
        """The scores of a sentence that is not parsed."""
        return cast(Floats2d, numpy.zeros((0, len(self.labels)), dtype="float32"))

    def _joined(self, doc: Doc, parts: list[list[ParsedSentence]]) -> "list[NltkTree]":
        return [
            bracketed(doc, part.sentence.words, [node[:3] for node in part.constituents])
            for own in parts
            for part in own
        ]

    def _seen(self, split: SplitDocs) -> SplitDocs:
        same = self._quotes == "as_they_are"
        return split if same else SplitDocs(seen_docs(split.docs, self._quotes))

    def _translated(self, doc: Doc, evidence: Evidence, bounds: Bounds) -> list[Known]:
        sentences = word_sentences(doc, bounds)
        for sentence in sentences:
            if len(sentence.words) and sentence.length > self.max_length:
                fate = f"gets {self.labels[0]!r} over all words"
                warn_of_length(self.name, doc, sentence, self.max_length, fate)
        return [Known(each, Constraints.of(evidence, each, self.labels)) for each in sentences]

    def _divided(self, sizes: list[int], known: list[Known]) -> list[list[int]]:
        sentences = [each.sentence for each in known]
        counts = [0 if s.length > self.max_length else span_count(s) for s in sentences]
        return list(batches_by_size(counts, self.batch_spans))

    def _given(self, scores: Sequence[Floats2d], known: Sequence[Known]) -> SpanTree:
        # A long sentence has a batch of its own, and its scores need not be copied.
        whole = scores[0] if len(scores) == 1 else self.model.ops.xp.concatenate(scores)
        dist = span_tree(xp2torch(cast(Any, whole)), [each.sentence for each in known])
        return constrain(dist, [each.constraints for each in known], self.labels)

    def _potentials(self, docs: list[Doc]) -> list[list[Floats2d]]:
        inference = Inference(self, docs)
        scores = inference.answers(lambda batch: batch.scores)
        return inference.by_doc(self._no_scores if array is None else array for array in scores)

    def _warn_of_margin(self, asked: str) -> None:
        """Warn once that scores trained with a margin are not log probabilities."""
        if self.ranks_only and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.name}: {asked} asks for probabilities, but a model trained with loss = "
                "'max_margin' has none: they only rank. Train with loss = 'log_likelihood'",
                stacklevel=3,
            )

    # Evidence

    @property
    def _span_labels(self) -> Sequence[str]:
        return sorted(single_labels(self.labels) - {FLAT})

    def _held(self, doc: Doc) -> list[Span]:
        """List the constituents on a doc that no parser has predicted."""
        if self.overwrite or self.spans_key not in doc.spans or not len(doc.spans[self.spans_key]):
            return []
        spans = in_order(doc, self.spans_key)
        return [span for span in spans if not is_noted(self.spans_key, span)]

    def _on_doc(self, doc: Doc, bounds: Bounds) -> Evidence:
        """Read the constituents and the mentions on a doc as evidence, unary chains joined.

        Raises:
            InputError: if a constituent crosses the end of its sentence or another one, or if its
                label holds a blank or a bracket.
        """
        evidence = NOTHING
        if given := self._held(doc):
            remedy = "remove one of them, or set overwrite = true"
            evidence = Evidence(chains_of(doc, bounds, given, remedy))
        if (self.mentions_key or "") in doc.spans:
            mentions = spans_now(doc, self.mentions_key or "")
            places = [(span.start, span.end) for span in mentions]
            evidence = evidence.joined(self._read_evidence(doc, places))
        return evidence

    def _read_evidence(
        self,
        doc: Doc,
        require: Iterable[Asked] = (),
        forbid: Iterable[Asked] = (),
        allow: Labels | None = None,
    ) -> Evidence:
        """Read what a user knows; white space at the ends of a constituent does not count."""
        if allow:
            raise InputError(
                f"{self.name}: allow is for labels of tokens: name by require and forbid the "
                "constituents of a tree"
            )
        return trimmed(self.name, doc, super()._read_evidence(doc, require, forbid))

    def _check_evidence(self, doc: Doc, evidence: Evidence, bounds: Bounds, remedy: str) -> None:
        check_consistent(self.name, doc, evidence, bounds, cross, remedy)
        check_kept(self.name, doc, evidence, self.labels, remedy)

    # Training

    def _accumulate(self, examples: list[Example]) -> float:
        # A listener must get the same batch as the component that it listens to.
        if self._listens:
            return super()._accumulate(examples)
        parts = split_sentences(seen_docs((eg.predicted for eg in examples), self._quotes))
        gold = read_gold(self, examples)
        loss = 0.0
        for batch in batches_by_size(gold.sizes, self.batch_spans):
            scores, backprop = self.model.begin_update(parts.chosen(batch))
            share, d_scores = parser_loss(self, batch, gold, scores)
            backprop(d_scores)
            loss += share
        return loss

    def get_loss(
        self, examples: Iterable[Example], scores: list[Floats2d]
    ) -> tuple[float, list[Floats2d]]:
        """Compute the mean loss of the sentences with trees and of their tags, and its gradient.

        With a teacher, the cross entropy with its distribution is added, also for sentences without
        trees; see `distillation.learn_from`.

        Returns:
            The loss, and its gradient with respect to each array of `scores`; it is zero for
            sentences without trees.
        """
        gold = read_gold(self, examples if isinstance(examples, list) else list(examples))
        gradients = [self.model.ops.xp.zeros_like(array) for array in scores]
        loss = 0.0
        for batch in batches_by_size(gold.sizes, self.batch_spans):
            of_tags = [len(gold.sentences) + i for i in batch] if gold.tags else []
            places = [*batch, *of_tags]
            share, d_scores = parser_loss(self, batch, gold, [scores[i] for i in places])
            loss += share
            for i, gradient in zip(places, d_scores, strict=True):
                gradients[i] = gradient
        return loss, gradients

    def _read_gold(self, examples: Sequence[Example]) -> Gold:
        return read_own(self, examples)

    def score(self, examples: Iterable[Example], **settings: Any) -> dict[str, Any]:
        """Score predicted docs by the component's scorer, which gets `spans_key`."""
        return super().score(examples, component_key=self.spans_key, **settings)


make_constituency_parser = component_factory(
    "constituency_parser",
    ConstituencyParser,
    model=CHART,
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
