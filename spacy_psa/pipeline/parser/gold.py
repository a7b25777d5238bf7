"""What a parser learns from a batch of examples: trees of the chart, and tags of tokens."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.pipeline.parser.charts import span_count
from spacy_psa.pipeline.parser.constituents import KEY, Sentence, gold_trees, named, word_sentences
from spacy_psa.structs.span_cells import Tree

UNKNOWN = -1
Numbers = NDArray[numpy.int64]


class Gold(NamedTuple):
    """What a batch is to teach, sentence by sentence of its predicted docs."""

    sentences: list[Sentence]
    trees: list[Tree | None]
    """None for those that are not learned from."""
    sizes: list[int]
    """The spans of those that are, 0 of the others."""
    tags: list[Numbers]
    """The numbers of their tokens' tags or `UNKNOWN`; empty where tags are not learned."""

    @property
    def trees_known(self) -> int:
        """The sentences that are learned from."""
        return sum(tree is not None for tree in self.trees)

    @property
    def tags_known(self) -> int:
        """The tokens whose tags are learned from."""
        return sum(int((t != UNKNOWN).sum()) for t, size in zip(self.tags, self.sizes) if size)


def find_tags(examples: Iterable[Example]) -> list[str]:
    """The tags of words in the examples' reference docs, sorted."""
    return sorted({t.tag_ for eg in examples for t in eg.reference if t.tag_ and t.text.strip()})


def read_gold(
    examples: Iterable[Example],
    labels: Sequence[str],
    tags: Sequence[str],
    max_length: int,
    name: str,
) -> Gold:
    """The trees, whose label `labels[i]` is i + 1, and where there are `tags` theirs.

    Sentences of more than max_length tokens, and those that are not the same in the reference,
    have none, with a warning. `name` is the component's.

    Errors: InputError for a label or a tag that is not among the known ones, and what
    `gold_trees` raises.
    """
    number = {label: i for i, label in enumerate(labels, 1)}
    tag_number = {tag: i for i, tag in enumerate(tags)}
    gold = Gold([], [], [], [])
    for eg in examples:
        doc, without = eg.predicted, 0
        sentences = word_sentences(doc)
        for sentence, nodes in zip(sentences, gold_trees(eg.reference, doc)):
            if unseen := {label for *_, label in nodes or ()} - number.keys():
                raise _unseen(name, doc, "label", min(unseen))
            without += nodes is None and len(sentence.words) > 0
            if nodes is not None and too_long(sentence, max_length):
                warn_of_length(name, doc, sentence, max_length, "is left out of training")
                nodes = None
            tree = [(start, end, number[label]) for start, end, label in nodes or ()]
            gold.sentences.append(sentence)
            gold.trees.append(tree or None)
            gold.sizes.append(span_count(sentence) if tree else 0)
        if tags:
            gold.tags.extend(_tags(eg, sentences, tag_number, name))
        if without and KEY in eg.reference.spans:
            warnings.warn(
                f"{name}: {without} sentence(s) of {named(doc)} are not those of its "
                "trees and are left out of training; read the data with "
                "spacy-psa.TreeCorpus.v1, which gives one sentence a Doc",
                stacklevel=2,
            )
    return gold


def _tags(
    eg: Example, sentences: Sequence[Sentence], number: Mapping[str, int], name: str
) -> list[Numbers]:
    """`Gold.tags` of an example; white space has none, nor a token that has several."""
    tags = eg.get_aligned("TAG", as_string=True)
    found = []
    for sentence in sentences:
        numbers = numpy.full(sentence.end - sentence.start, UNKNOWN, dtype="int64")
        for i in sentence.words.tolist():
            if tags[i]:
                if tags[i] not in number:
                    raise _unseen(name, eg.predicted, "tag", tags[i])
                numbers[i - sentence.start] = number[tags[i]]
        found.append(numbers)
    return found


def _unseen(name: str, doc: Doc, kind: str, what: str) -> InputError:
    return InputError(
        f"{name}: {named(doc)} has the {kind} {what!r}, which is not among the {kind}s: "
        f"initialize with all {kind}s"
    )


def too_long(sentence: Sentence, max_length: int) -> bool:
    """Whether a sentence has more than max_length tokens, white space counted."""
    return sentence.end - sentence.start > max_length


def warn_of_length(name: str, doc: Doc, sentence: Sentence, max_length: int, fate: str) -> None:
    """Warn that a sentence is too long, of its doc and of its fate; `name` is the component's."""
    warnings.warn(
        f"{name}: {named(doc)}: a sentence of {sentence.end - sentence.start} tokens, "
        f"more than max_length = {max_length}, {fate}; set sentence boundaries, as "
        "a sentencizer does, or raise max_length",
        stacklevel=3,
    )
