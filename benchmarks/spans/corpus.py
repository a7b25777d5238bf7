"""Describe GUM, and check what is made of its trees.

Run this in a folder where the project's `assets` and `convert` have made corpus/gum. The record
benchmarks/spans/results/corpus.json has:

- `parts`: {part: `documents`, `sentences`, `words`, `spans`, `depths` {depth: spans}, `too_long`},
  where the last is the share of spans of more than 12 tokens
- `chunks`: those that `spacy_psa.corpora.chunks` makes of the trees of OntoNotes, against those of
  CoNLL-2000, in the sentences that both have: `sentences`, and `found`, `gold` and `both` chunks
- `heads`: {with or without `functions` of labels: {relation: share of words}} whose head by the
  universal rules is that of GUM's dependencies; `all` are all words but punctuation
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import spacy

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.spans.score import depths, read_spans
from benchmarks.spans.systems import KEY, LONGEST
from spacy_psa.corpora import conll2000, gum, ontonotes
from spacy_psa.corpora.archives import open_files
from spacy_psa.corpora.bracketing import Labels, read_trees
from spacy_psa.corpora.chunks import chunks
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.corpora.head_rules import find_heads, universal
from spacy_psa.corpora.lines import decode_lines
from spacy_psa.corpora.trees import Parsed

PARTS = ("train", "dev", "test", "test2")
VOCAB = spacy.blank("en").vocab
RELATIONS = ("all", "root", "nsubj", "obj", "conj", "cc", "cop", "flat", "parataxis")


def describe(path: Path) -> dict[str, Any]:
    """The size of a part of the corpus, and the depths of its spans."""
    docs = read_docbin(path, VOCAB)
    counts = Counter(depth for doc in docs for depth in depths(read_spans(doc)).values())
    lengths = [len(span) for doc in docs for span in doc.spans[KEY]]
    return {
        "documents": len({doc.user_data["document"] for doc in docs}),
        "sentences": len(docs),
        "words": sum(map(len, docs)),
        "spans": len(lengths),
        "depths": {str(depth): counts[depth] for depth in sorted(counts)},
        "too_long": sum(length > LONGEST for length in lengths) / len(lengths),
    }


SECTIONS = {"train.txt": (15, 16, 17, 18), "test.txt": (20,)}
"""The sections of the Wall Street Journal in the files of CoNLL-2000."""


def compare_chunks(
    published: Path, trees: Path, members: Collection[str] = SECTIONS
) -> dict[str, int]:
    """Count the chunks of trees, those of files of CoNLL-2000, and those that are in both."""
    gold = {
        tuple(token.text for token in doc): {
            (s.start, s.end, s.label_) for s in doc.spans["chunks"]
        }
        for member in members
        for doc in conll2000.read_docs(published, VOCAB, None, member)
    }
    counts: Counter[str] = Counter()
    sections = {section for member in members for section in SECTIONS[member]}
    for doc in ontonotes.read_docs(trees, VOCAB, None, "", sections):
        words = [token.text for token in doc]
        if (own := gold.get(tuple(words))) is not None:
            nodes = [(s.start, s.end, s.label_) for s in doc.spans["constituents"]]
            made = {*chunks(Parsed(words, [token.tag_ for token in doc], nodes))}
            counts.update(sentences=1, found=len(made), gold=len(own), both=len(made & own))
    return dict(counts)


def compare_heads(source: Path, labels: Labels) -> dict[str, float]:
    """The share of words with the head of GUM's dependencies, by relation."""
    right, total = count_heads(source, labels)
    return {kind: right[kind] / total[kind] for kind in RELATIONS}


def count_heads(source: Path, labels: Labels) -> tuple[Counter[str], Counter[str]]:
    """Count the words with the head of GUM's dependencies, and all words, by relation."""
    style = replace(gum.STYLE, labels=labels)
    trees, rows = {}, {}
    for name, lines in open_files(source, lambda name: "/" in name, "files"):
        document = PurePosixPath(name).stem
        if name.endswith(".ptb"):
            read = read_trees(name, decode_lines(name, lines, Counter()), Counter(), style)
            trees[document] = [tree for _, tree in read]
        else:
            cells = [line.decode().split("\t") for line in lines]
            rows[document] = [row for row in cells if row[0].isdigit()]
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for document, own in trees.items():
        of_trees = [find_heads(tree, universal).words for tree in own]
        heads = [0 if head == i else head + 1 for words in of_trees for i, head in enumerate(words)]
        for head, row in zip(heads, rows[document], strict=True):
            relation = row[7].partition(":")[0]
            for kind in {"all", relation} if relation != "punct" else ():
                right[kind] += head == int(row[6])
                total[kind] += 1
    return right, total


def main() -> None:
    options = script_parser(globals())
    options.add_argument("--corpus", type=Path, default=Path("corpus/gum"), help="(corpus/gum)")
    options.add_argument("--assets", type=Path, default=Path("assets"), help="(assets)")
    given = options.parse_args()
    source = given.assets / "gum" / "gum.tar.xz"
    published = given.assets / "conll2000" / "conll2000.zip"
    trees = given.assets / "wsj" / "conll-2012-en.tar.xz"
    files = {part: given.corpus / f"{part}.spacy" for part in PARTS}
    results = {
        "parts": {part: describe(path) for part, path in files.items()},
        "chunks": compare_chunks(published, trees),
        "heads": {
            "functions": compare_heads(source, "functions"),
            "without": compare_heads(source, "bare"),
        },
    }
    write_record("corpus", "spans", results, data=[*files.values(), source, published, trees])


if __name__ == "__main__":
    main()
