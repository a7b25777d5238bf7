"""The gold trees and tags of a batch of examples, and the loss of a parser."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import xp2torch
from thinc.types import Floats2d
from torch import Tensor
from torch.nn import functional as F

from spacy_psa.bridge.layers import differentiate, join_rows
from spacy_psa.errors import InputError
from spacy_psa.pipeline.parser.chart import span_count, span_tree
from spacy_psa.pipeline.parser.constituents import Sentence, gold_trees, named, word_sentences
from spacy_psa.ragged import to_device
from spacy_psa.structs.cross_entropy import cross_entropy
from spacy_psa.structs.span_cells import Tree

UNKNOWN = -1  # the number for a token without a known tag
Numbers = NDArray[numpy.int64]


class Gold(NamedTuple):
    """The trees and tags of the sentences of a batch's predicted docs."""

    sentences: list[Sentence]
    """The sentences of the predicted docs."""
    trees: list[Tree | None]
    """The tree of each sentence; None if the parser does not learn from it."""
    sizes: list[int]
    """The number of spans of each sentence; 0 if the parser does not learn from it."""
    tags: list[Numbers]
    """The number of each token's tag or `UNKNOWN`, as an array (length,) for each sentence.

    There are no arrays if the parser predicts no tags.
    """
    whole: "Gold | None" = None
    """The annotation of the whole batch, if these sentences are a part of it."""
    taught: Sequence[Floats2d] = ()
    """A teacher's scores of each sentence, without rows if it does not parse it.

    There are no arrays if there is no teacher.
    """

    @property
    def learned(self) -> int:
        """The number of sentences of the batch that the parser learns from."""
        return sum(size > 0 for size in (self.whole or self).sizes)

    @property
    def tags_known(self) -> int:
        """The number of tokens of the batch whose tags the parser learns from."""
        gold = self.whole or self
        return sum(int((t != UNKNOWN).sum()) for t, size in zip(gold.tags, gold.sizes) if size)


def find_tags(examples: Iterable[Example]) -> list[str]:
    """Collect the tags of words in the examples' reference docs, sorted."""
    return sorted({t.tag_ for eg in examples for t in eg.reference if t.tag_ and t.text.strip()})


def read_gold(pipe: Any, examples: Sequence[Example]) -> Gold:
    """Read the gold trees of a batch, its gold tags if the parser has a tag head, and its teacher.

    A sentence of more than `max_length` tokens, or one that is not the same in the reference, has
    no tree, with a warning.

    Args:
        pipe: the `ConstituencyParser`; its `labels[i]` has the number i + 1 in a tree.
    """
    gold: Gold = pipe._gold(examples)
    if pipe._whole:
        gold = gold._replace(whole=read_own(pipe, pipe._whole))
    if pipe._teacher is None:
        return gold
    taught = pipe._teacher.potentials(eg.predicted for eg in examples)
    return _with_teacher(gold, [array for own in taught for array in own], pipe.name)


def read_own(pipe: Any, examples: Iterable[Example]) -> Gold:
    """Read the gold trees and tags of examples as `read_gold`, without whole batch and teacher."""
    name, max_length, key, tags = pipe.name, pipe.max_length, pipe.spans_key, pipe.tags
    number = {label: i for i, label in enumerate(pipe.labels, 1)}
    tag_number = {tag: i for i, tag in enumerate(tags)}
    gold = Gold([], [], [], [])
    for eg in examples:
        doc, without = eg.predicted, 0
        sentences = word_sentences(doc)
        for sentence, nodes in zip(sentences, gold_trees(eg.reference, doc, key)):
            if unseen := {label for *_, label in nodes or ()} - number.keys():
                raise _unseen(name, doc, "label", min(unseen))
            without += nodes is None and len(sentence.words) > 0
            if nodes is not None and sentence.length > max_length:
                warn_of_length(name, doc, sentence, max_length, "is left out of training")
                nodes = None
            tree = [(start, end, number[label]) for start, end, label in nodes or ()]
            gold.sentences.append(sentence)
            gold.trees.append(tree or None)
            learned = tree or (pipe._teacher and sentence.length <= max_length)
            gold.sizes.append(span_count(sentence) if learned else 0)
        if tags:
            gold.tags.extend(_tags(eg, sentences, tag_number, name))
        if without and key in eg.reference.spans:
            warnings.warn(
                f"{name}: {without} sentence(s) of {named(doc)} differ from the sentences of its "
                "trees and are left out of training; read the data with "
                "spacy-psa.TreeCorpus.v1, which makes a Doc of each sentence",
                stacklevel=2,
            )
    return gold


def _tags(
    eg: Example, sentences: Sequence[Sentence], number: Mapping[str, int], name: str
) -> list[Numbers]:
    """Read `Gold.tags` of an example.

    White space has no tag, and neither has a token that has several tags in the reference.
    """
    tags = eg.get_aligned("TAG", as_string=True)
    by_sentence = []
    for sentence in sentences:
        numbers = numpy.full(sentence.length, UNKNOWN, dtype="int64")
        for i in sentence.words.tolist():
            if tags[i]:
                if tags[i] not in number:
                    raise _unseen(name, eg.predicted, "tag", tags[i])
                numbers[i - sentence.start] = number[tags[i]]
        by_sentence.append(numbers)
    return by_sentence


def _with_teacher(gold: Gold, taught: Sequence[Floats2d], name: str) -> Gold:
    """Add a teacher's scores of the sentences, in their order; see `Gold.taught`."""
    lengths = [sentence.length for sentence in gold.sentences]
    sizes = [n * (n + 1) // 2 for n in lengths]
    if len(sizes) != len(taught) or any(len(a) not in (0, n) for a, n in zip(taught, sizes)):
        raise InputError(
            f"{name}: the teacher splits a text into other sentences than the student: leave the "
            "component that sets them out of the teacher's pipeline"
        )
    return gold._replace(taught=taught)


def _unseen(name: str, doc: Doc, kind: str, what: str) -> InputError:
    return InputError(
        f"{name}: {named(doc)} has the {kind} {what!r}, which is not among the {kind}s: "
        f"initialize with all {kind}s"
    )


def warn_of_length(name: str, doc: Doc, sentence: Sentence, max_length: int, fate: str) -> None:
    """Warn that a sentence is too long, and of its fate, such as "is left out of training"."""
    warnings.warn(
        f"{name}: {named(doc)}: a sentence of {sentence.length} tokens, "
        f"more than max_length = {max_length}, {fate}; set sentence boundaries, as "
        "a sentencizer does, or raise max_length",
        stacklevel=3,
    )


def parser_loss(
    pipe: Any, batch: Sequence[int], gold: Gold, scores: list[Floats2d]
) -> tuple[float, list[Floats2d]]:
    """Compute the share of some sentences in the loss of a batch, and its gradient.

    The loss of a tree is the hinge loss with Hamming cost (Kitaev2018 section 2.1) or the negative
    log likelihood of the tree CRF, a mean over sentences; with a teacher, it is weighed against the
    cross entropy with the teacher's distribution. That of tags is the negative log probability, a
    mean over tokens.

    Args:
        gold: the trees and tags of the whole batch.
        scores: the scores of the spans of each sentence, then those of its tags.

    Returns:
        The share, and its gradient with respect to each array of `scores`.
    """
    model, tag_weight = pipe.model, pipe._tag_weight

    def of_trees(flat: Tensor) -> Tensor:
        sentences = [gold.sentences[i] for i in batch]
        dist = span_tree(flat, sentences)
        trees = [gold.trees[i] or [(0, len(s.words), 1)] for i, s in zip(batch, sentences)]
        losses = dist.hinge(trees) if pipe.ranks_only else -dist.log_prob(trees)
        if gold.taught:
            arrays, empty = [gold.taught[i] for i in batch], model.ops.xp.zeros_like
            taught = [a if len(a) else empty(own) for a, own in zip(arrays, scores)]
            teacher = span_tree(xp2torch(join_rows(model.ops.xp, taught)), sentences)
            known = torch.tensor([gold.trees[i] is not None for i in batch]).to(losses)
            share = torch.tensor([pipe._teacher_weight * (len(a) > 0) for a in arrays]).to(losses)
            losses = (1 - share) * known * losses + share * cross_entropy(teacher, dist)
        return losses.sum() / gold.learned

    def of_tags(flat: Tensor) -> Tensor:
        tags = torch.from_numpy(numpy.concatenate([gold.tags[i] for i in batch]))
        right = to_device(tags, flat.device)
        losses = F.cross_entropy(flat, right, ignore_index=UNKNOWN, reduction="sum")
        return losses / max(gold.tags_known, 1)

    loss, gradients = differentiate(model, scores[: len(batch)], of_trees)
    if gold.tags:
        share, d_tags = differentiate(model, scores[len(batch) :], of_tags)
        loss += tag_weight * share
        gradients += [tag_weight * gradient for gradient in d_tags]
    return loss, gradients
