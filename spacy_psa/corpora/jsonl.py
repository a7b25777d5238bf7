"""The JSON lines of the sample corpus: one sentence on each line, with all its annotation layers.

    {"words": [...], "spaces": [true, ...], "tags": [...], "chunks": [[start, end, "NP"], ...],
     "ents": [[start, end, "PER"], ...], "tree": "(S (NP ...) ...)"}

Offsets count tokens; the end is excluded.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.bracketing import read_trees
from spacy_psa.corpora.lines import read_lines
from spacy_psa.corpora.readers import make_doc
from spacy_psa.corpora.tag_schemes import Span, spans_to_tags
from spacy_psa.errors import InputError

LAYERS = ("words", "spaces", "tags", "chunks", "ents", "tree")


def read_docs(path: Path, vocab: Vocab, repairs: Counter[str] | None = None) -> Iterator[Doc]:
    """Yield one `Doc` for each line, with words, spaces, `token.tag_` and `doc.ents`.

    Chunks are in `doc.spans["chunks"]`. Constituents are in `doc.spans["constituents"]` in
    preorder, with a span for each constituent of a unary chain. Empty lines are skipped.
    """
    empty = True
    for number, text in read_lines(path, Counter() if repairs is None else repairs):
        if not text:
            continue
        empty = False
        try:
            yield _doc(vocab, json.loads(text))
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(
                f"{path}:{number}: {error}; correct the line or generate the corpus again"
            ) from error
    if empty:
        raise InputError(f"{path}:1: no sentences in the file; check that it is complete")


def _doc(vocab: Vocab, record: Any) -> Doc:
    if not isinstance(record, dict):
        raise ValueError("the line is not a JSON object")
    missing = [layer for layer in LAYERS if layer not in record]
    if missing:
        raise ValueError(f"the record has no {', '.join(missing)}")
    words, tags, spaces = record["words"], record["tags"], record["spaces"]
    for layer in ("words", "tags", "spaces"):
        if not isinstance(record[layer], list) or len(record[layer]) != len(words):
            raise ValueError(f"{layer} is not a list of {len(words)}, one for each word")
    if not words or not all(isinstance(item, str) and item for item in words + tags):
        raise ValueError("words and tags must be strings that are not empty, at least one of each")
    ents, chunks = _spans(record["ents"], len(words)), _spans(record["chunks"], len(words))
    if not isinstance(record["tree"], str):
        raise ValueError("tree is not a string")
    tree = next((tree for _, tree in read_trees("tree", [(1, record["tree"])], Counter())), None)
    if tree is None or (tree.words, tree.tags) != (words, tags):
        raise ValueError("the tree has other words or tags than the record")
    spaces = [bool(space) for space in spaces]
    return make_doc(vocab, words, tags, ents, spaces, chunks=chunks, constituents=tree.constituents)


def _spans(layer: Any, length: int) -> list[Span]:
    for span in layer:
        if [type(item) for item in span] != [int, int, str]:
            raise ValueError(f"{span!r} is not a list [start, end, label]")
    spans = [tuple(span) for span in layer]
    spans_to_tags(spans, length, "iob2")  # raises ValueError for spans that overlap or lie outside
    return spans
