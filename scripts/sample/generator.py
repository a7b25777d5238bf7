"""Generates the sample corpus: sentences of a grammar, with words, tags, chunks, entities, trees.

    python -m scripts.sample.generator OUTDIR --seed 0

The same seed makes the same bytes in every process and on every machine. The module `grammar`
describes why the corpus is hard.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from scripts.sample import words as vocabulary
from scripts.sample.grammar import PRODUCTIONS
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.tag_schemes import Span
from spacy_psa.corpora.trees import ESCAPES

SIZES = {"train": 2000, "dev": 300, "test": 300}
LONGEST = 40
"""The largest number of tokens in a sentence; longer sentences are drawn again."""

STYLES = {"S.headline": str.upper, "S.chat": str.lower}
CLOSED_LEFT = {",", ".", "''", "POS", "-RRB-"}
CLOSED_RIGHT = {"``", "-LRB-"}
VERBAL = {"VB", "VBD", "VBP", "VBZ", "VBG", "MD", "TO", "RB"}


@dataclass
class Word:
    """A leaf of a tree. All words of one entity share one `ent` object."""

    text: str
    tag: str
    ent: list[str] | None = None
    chunk: tuple[str, int] | None = None


@dataclass
class Node:
    """A constituent."""

    label: str
    children: list["Node | Word"] = field(default_factory=list)

    def words(self) -> Iterator[Word]:
        """Yield the words of the constituent."""
        for child in self.children:
            if isinstance(child, Node):
                yield from child.words()
            else:
                yield child

    def __str__(self) -> str:
        return f"({self.label} {' '.join(map(_bracketed, self.children))})"


def _bracketed(child: Node | Word) -> str:
    if isinstance(child, Node):
        return str(child)
    return f"({child.tag} {ESCAPES.get(child.text, child.text)})"


def read_productions(text: str) -> dict[str, tuple[list[int], list[list[str]]]]:
    """Read a grammar as {left side: (weights, right sides)}."""
    productions: dict[str, tuple[list[int], list[list[str]]]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            left, weight, _, *right = line.split()
            weights, sides = productions.setdefault(left, ([], []))
            weights.append(int(weight))
            sides.append(right)
    return productions


def lexicon(seed: int, split: str) -> dict[str, list[str]]:
    """Make the word lists, with invented names, from which one split draws."""
    lists = {name: words.split() for name, words in vocabulary.WORDS.items()}
    held_out = {"dev": 8, "test": 9}
    for name in vocabulary.OPEN:
        hidden = [rest for part, rest in held_out.items() if part != split]
        lists[name] = [word for i, word in enumerate(lists[name]) if i % 10 not in hidden]
    taken = {word for words in lists.values() for word in words}
    for part in ("all", *SIZES):  # the same order for every split, so that no name is in two splits
        rng = random.Random(f"names {seed} {part}")
        for name, count in vocabulary.INVENTED.items():
            for _ in range(count):
                invented = _invent(rng, name)
                while invented in taken:
                    invented = _invent(rng, name)
                taken.add(invented)
                if part in ("all", split):
                    lists[name].append(invented)
    return lists


def _invent(rng: random.Random, kind: str) -> str:
    def pick(parts: str) -> str:
        return rng.choice(parts.split()).replace("-", "")

    syllables = (vocabulary.ONSETS, vocabulary.NUCLEI, vocabulary.CODAS)
    stem = "".join(pick(part) for _ in range(rng.choice([1, 1, 2])) for part in syllables)
    return (stem + pick(vocabulary.ENDINGS[kind])).capitalize()


class Generator:
    """Draws the sentences of one split without end; each is a record as in the JSON lines."""

    def __init__(self, seed: int, split: str) -> None:
        self.rng = random.Random(f"sentences {seed} {split}")
        self.lexicon = lexicon(seed, split)
        self.productions = read_productions(PRODUCTIONS)

    def __next__(self) -> dict[str, Any]:
        while True:
            symbol = self._draw("_start")[0]
            (root,) = self._expand(symbol)
            assert isinstance(root, Node)
            words = list(root.words())
            if len(words) <= LONGEST:
                return _record(root, words, symbol)

    def __iter__(self) -> "Generator":
        return self

    def _draw(self, left: str) -> list[str]:
        weights, sides = self.productions[left]
        return self.rng.choices(sides, weights)[0]

    def _expand(self, symbol: str) -> list[Node | Word]:
        """Expand a symbol to nodes and words; one symbol may become several."""
        if "/" in symbol:
            text, _, tag = symbol.rpartition("/")
            return [Word(text, tag)]
        if ":" in symbol:
            tag, _, name = symbol.partition(":")
            return [Word(self.rng.choice(self.lexicon[name]), tag)]
        symbol, _, ent = symbol.partition("=")
        children = [part for right in self._draw(symbol) for part in self._expand(right)]
        node = Node(symbol.partition(".")[0], children)
        if ent:
            mark = [ent]
            for word in node.words():
                assert word.ent is None, f"{symbol}: an entity inside an entity"
                word.ent = mark
        if symbol.startswith("_"):
            return children
        # NP.agent -> NP.person is a choice of the grammar and not a constituent of English.
        only = children[0] if len(children) == 1 else None
        return [only if isinstance(only, Node) and only.label == node.label else node]


def _record(root: Node, words: list[Word], symbol: str) -> dict[str, Any]:
    """Finish the surface of a sentence, then read every layer from the tree."""
    _drop_comma_before_stop(root)
    words = list(root.words())
    for word, following in pairwise(words):
        if word.text == "a" and following.text[0].lower() in "aeiou":
            word.text = "an"
    first = next(word for word in words if word.tag not in CLOSED_RIGHT)
    if first.ent is None or first.tag != "NNP":  # the name "ebay" stays in lower case
        first.text = first.text[0].upper() + first.text[1:]
    style = STYLES.get(symbol)
    if style is not None:
        for word in words:
            word.text = style(word.text)
    _mark_chunks(root, 0)
    return {
        "words": [word.text for word in words],
        "spaces": [
            not (left.tag in CLOSED_RIGHT or right.tag in CLOSED_LEFT or right.text == "n't")
            for left, right in pairwise(words)
        ]
        + [False],
        "tags": [word.tag for word in words],
        "chunks": _runs([word.chunk for word in words]),
        "ents": _runs([(word.ent[0], id(word.ent)) if word.ent else None for word in words]),
        "tree": str(root),
    }


def _drop_comma_before_stop(node: Node) -> None:
    """Drop the comma that closes an apposition if another mark follows, as is usual in print."""
    words = list(node.words())
    doomed = {
        id(left) for left, right in pairwise(words) if left.tag == "," and right.tag in (",", ".")
    }
    if words[-1].tag == ",":
        doomed.add(id(words[-1]))

    def prune(part: Node) -> None:
        part.children = [child for child in part.children if id(child) not in doomed]
        for child in part.children:
            if isinstance(child, Node):
                prune(child)

    prune(node)


def _mark_chunks(node: Node, verb_group: int, outer: int = 0) -> None:
    """Set `word.chunk` by the rules of the CoNLL-2000 chunks.

    A chunk is a run of words under one constituent; it ends where an inner constituent begins. The
    verbs of nested VPs ("wanted to visit") are one chunk. A possessive 's begins the chunk of the
    thing that is owned. "and" is inside a chunk only if it joins bare words.
    """
    label, own = node.label, id(node)
    nested = any(isinstance(child, Node) for child in node.children)
    group = verb_group or own
    for child in node.children:
        if isinstance(child, Node):
            verbs = {"VP": group, "S": verb_group}.get(label, 0)
            _mark_chunks(child, verbs if child.label in ("VP", "S") else 0, own)
        elif child.tag in CLOSED_LEFT - {"POS"} | CLOSED_RIGHT or (child.tag == "CC" and nested):
            pass
        elif child.tag == "POS" and child.ent is None:
            child.chunk = ("NP", outer)
        elif label == "VP" and child.tag in VERBAL:
            child.chunk = ("VP", group)
        elif label in ("NP", "WHNP"):
            child.chunk = ("NP", own)
        elif label in ("PP", "ADVP", "ADJP", "SBAR", "PRT"):
            child.chunk = (label, own)


def _runs(keys: list[tuple[str, int] | None]) -> list[Span]:
    """List the runs of equal keys as (start, end, label)."""
    spans: list[Span] = []
    start = 0
    for i in range(1, len(keys) + 1):
        if i == len(keys) or keys[i] != keys[start]:
            key = keys[start]
            if key is not None:
                spans.append((start, i, key[0]))
            start = i
    return spans


def generate(seed: int = 0) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield train, dev and test with their records; no sentence comes twice."""
    seen: set[str] = set()
    for split, size in SIZES.items():
        records: list[dict[str, Any]] = []
        for record in Generator(seed, split):
            text = " ".join(record["words"])
            if text not in seen:
                seen.add(text)
                records.append(record)
            if len(records) == size:
                break
        yield split, records


def write_sample(folder: Path, seed: int = 0) -> None:
    """Write train.jsonl, dev.jsonl and test.jsonl into `folder`."""
    for split, records in generate(seed):
        lines = [json.dumps(record, separators=(",", ":")) + "\n" for record in records]
        with atomic_path(folder / f"{split}.jsonl") as temporary:
            temporary.write_bytes("".join(lines).encode())


if __name__ == "__main__":
    import typer

    def main(outdir: Path, seed: int = 0) -> None:
        """Generate the sample corpus into OUTDIR."""
        write_sample(outdir, seed)

    typer.run(main)
