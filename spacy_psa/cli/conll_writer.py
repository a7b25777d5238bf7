"""Annotated documents as CoNLL columns."""

import re
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Literal

from spacy_psa.annotation.span_keys import USUAL, SpanKeys
from spacy_psa.annotation.writer import Encode
from spacy_psa.corpora.tag_schemes import spans_to_tags

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span


class ConllWriter:
    """Writes one token on each line, and an empty line after each sentence.

    The columns are word, tag, tree, chunk and entity, with one space between. The columns of tags,
    trees and chunks are written if the first document with tokens has tags, or the span group of
    trees or chunks. The tree column is that of CoNLL-2012:
    joined, it is the tree in brackets with * for each token. Tokens that
    are only white space are left out. White space within words, tags and labels becomes "_", as do
    null characters, which no reader of such files takes.

    Args:
        stream: the bytes are written to it.
        scheme: the tag scheme of the chunk and entity columns.
        keys: the span groups of trees and chunks.

    Examples:
        >>> import io
        >>> from spacy.tokens import Doc
        >>> from spacy.vocab import Vocab
        >>> writer = ConllWriter(io.BytesIO(), "bioes")
        >>> doc = Doc(Vocab(), words=["Ada", "left"], ents=["B-PER", "O"])
        >>> writer.write(writer.encode(doc))
        >>> print(writer.stream.getvalue().decode().strip())
        Ada S-PER
        left O
    """

    def __init__(
        self,
        stream: BinaryIO,
        scheme: Literal["bio", "bioes"] = "bio",
        keys: SpanKeys = USUAL,
    ) -> None:
        self.stream = stream
        self.encode: Encode = partial(conll_columns, scheme=scheme, keys=keys)
        self.names: list[str] | None = None

    def write(self, row: list[dict[str, list[str]]]) -> None:
        for columns in row:
            if self.names is None:
                self.names = list(columns)
            length = len(columns["word"])
            missing = {"tag": ["_"] * length, "tree": ["*"] * length, "chunk": ["O"] * length}
            chosen = [(missing | columns)[name] for name in self.names]
            lines = [" ".join(cells) for cells in zip(*chosen, strict=True)]
            self.stream.write(("\n".join(lines) + "\n\n").encode("utf8"))

    def finish(self) -> None:
        pass


def conll_columns(
    doc: "Doc", scheme: Literal["bio", "bioes"], keys: SpanKeys
) -> list[dict[str, list[str]]]:
    """Encode a document for `ConllWriter`: the columns of each sentence, by their names."""
    if not len(doc):
        return []
    tagged, chunked = doc.has_annotation("TAG"), keys.chunks in doc.spans
    sentences = doc.sents if doc.has_annotation("SENT_START") else [doc[:]]
    found = []
    for sentence in sentences:
        tokens = [token for token in sentence if not token.is_space]
        if not tokens:
            continue
        places = [token.i for token in tokens]
        columns = {"word": [token.text for token in tokens]}
        if tagged:
            columns["tag"] = [token.tag_ for token in tokens]
        if keys.trees in doc.spans:
            columns["tree"] = _tree_cells(sentence, keys.trees)
        if chunked:
            columns["chunk"] = _tags(doc.spans[keys.chunks], places, scheme)
        columns["entity"] = _tags(doc.ents, places, scheme)
        found.append({name: [_cell(text) for text in cells] for name, cells in columns.items()})
    return found


def _tree_cells(sentence: "Span", key: str) -> list[str]:
    """Cut the tree of a sentence in brackets into a cell for each token, as CoNLL-2012 does."""
    from spacy_psa.pipeline.parser.extensions import parse_string

    leaves = re.sub(r"\([^\s()]+ [^\s()]+\)", "*", parse_string(sentence, key))
    tree = leaves.replace(" ", "")
    return re.findall(r"[^*]*\*\)*", tree)


def _cell(text: str) -> str:
    return "_".join(text.replace("\0", " ").split()) or "_"


def _tags(spans: "Iterable[Span]", places: list[int], scheme: Literal["bio", "bioes"]) -> list[str]:
    """Write the tags of the tokens at `places`; of spans that overlap, the first counts."""
    row = {place: i for i, place in enumerate(places)}
    taken: set[int] = set()
    found = []
    for span in spans:
        rows = [row[i] for i in range(span.start, span.end) if i in row]
        if rows and taken.isdisjoint(rows):
            taken.update(rows)
            found.append((rows[0], rows[-1] + 1, span.label_))
    return spans_to_tags(found, len(places), "iob2" if scheme == "bio" else "bioes")
