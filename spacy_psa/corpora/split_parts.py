"""Draws development and test data from a corpus that has none, by document."""

import random
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from spacy.tokens import Doc

from spacy_psa.errors import InputError

FEWEST = 10
"""The smallest number of documents that is split by document; fewer are split by sentence."""
Unit = Literal["document", "sentence"]


class Source(NamedTuple):
    """A sentence, and where it is from."""

    document: tuple[str, int]
    """The file and the number of the document in it."""
    doc: Doc


class Split(NamedTuple):
    """Two parts of a corpus, and what was not cut apart."""

    rest: list[Source]
    drawn: list[Source]
    unit: Unit


def split_off(sources: Sequence[Source], share: float, seed: int) -> Split:
    """Draw a share of the sentences at random, all sentences of a document together.

    Documents of the same words are drawn together too, as a text may have been annotated twice. A
    corpus of fewer than ten documents is drawn by sentence.

    At least one sentence is drawn, and not all.
    """
    unit: Unit = "document"
    groups = _groups([source.document for source in sources], sources)
    if len(set(groups)) < FEWEST:
        unit, groups = "sentence", _groups(list(range(len(sources))), sources)
    sizes: dict[int, int] = {}
    for group in groups:
        sizes[group] = sizes.get(group, 0) + 1
    if len(sizes) < 2:
        raise InputError(
            f"there are {len(sizes)} different sentence(s), too few to draw development data; "
            "add sentences, or a file with `dev` in its name"
        )
    order = list(sizes)
    random.Random(seed).shuffle(order)
    wanted, count = share * len(sources), 0
    drawn: set[int] = set()
    for group in order[:-1]:
        if drawn and count + sizes[group] / 2 > wanted:
            break
        drawn.add(group)
        count += sizes[group]
    return Split(
        [source for source, group in zip(sources, groups) if group not in drawn],
        [source for source, group in zip(sources, groups) if group in drawn],
        unit,
    )


def drawn_part(
    docs: Iterable[Doc], share: float, seed: int, part: Literal["train", "dev", "test"]
) -> list[Doc]:
    """Return a part of a corpus from which a share is drawn for development, and for test.

    The number of the document is in `doc.user_data["document"]`. "train" is the rest.
    """
    sources = [Source(("", doc.user_data.get("document", i)), doc) for i, doc in enumerate(docs)]
    tested = split_off(sources, share, seed)
    developed = split_off(tested.rest, share, seed)
    parts = {"test": tested.drawn, "dev": developed.drawn, "train": developed.rest}
    return [source.doc for source in parts[part]]


def _groups(keys: Sequence[object], sources: Sequence[Source]) -> list[int]:
    """Number the unit of each sentence; units of the same words have one number."""
    words: dict[object, list[str]] = {}
    for key, source in zip(keys, sources):
        words.setdefault(key, []).extend(token.text.lower() for token in source.doc)
    numbers: dict[tuple[str, ...], int] = {}
    number = {key: numbers.setdefault(tuple(text), len(numbers)) for key, text in words.items()}
    return [number[key] for key in keys]
