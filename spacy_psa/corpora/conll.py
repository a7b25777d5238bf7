"""CoNLL-2003 columns: word, part of speech, chunk, entity (Tjong Kim Sang and De Meulder, 2003).

The published files use IOB1 in both span columns.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.columns import Columns, Schemes, Sentence, column_docs, read_rows
from spacy_psa.corpora.lines import marks_documents, read_lines
from spacy_psa.corpora.readers import Augmenter, Reader, make_reader
from spacy_psa.corpora.tag_schemes import TagScheme, choose_scheme

COLUMNS = ("word", "part of speech", "chunk", "entity")
PLACES = Columns(word=0, tag=1, chunk=2, ner=3)


def resolve_scheme(path: Path, scheme: TagScheme | Literal["auto"]) -> TagScheme:
    """Return the scheme of the entity column; "auto" reads the file once to detect it."""
    sentences = _read_sentences(path, Counter())
    return choose_scheme(scheme, ([row.columns[3] for row in rows] for _, rows in sentences))


def read_docs(
    path: Path, vocab: Vocab, scheme: TagScheme, repairs: Counter[str] | None = None
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence of a plain or .gz file, as `column_docs` does.

    `scheme` is that of the entity column. Chunks are read as IOB1, which also reads legal IOB2 tags
    correctly. `repairs` counts the repairs, see `read_lines`.
    """
    sentences = _read_sentences(path, Counter() if repairs is None else repairs)
    return column_docs(str(path), vocab, sentences, PLACES, Schemes(scheme, "iob1"))


def _read_sentences(path: Path, repairs: Counter[str]) -> Iterator[Sentence]:
    lines, documents = read_lines(path, repairs), marks_documents(path)
    yield from read_rows(str(path), lines, COLUMNS, repairs, documents)


def read_conll2003(
    path: Path,
    scheme: Literal["iob1", "iob2", "bioes", "auto"] = "auto",
    limit: int = 0,
    augmenter: Augmenter | None = None,
) -> Reader:
    """The reader `spacy-psa.Conll2003.v1`: trains directly from a column file.

    Each example is one sentence, and its prediction starts from the gold words.

    Args:
        path: the column file, plain or .gz.
        scheme: the scheme of the entity column; "auto" detects it.
        limit: the number of sentences to read; 0 means all.
        augmenter: makes the examples of each sentence, as in `spacy.Corpus.v1`.
    """
    path = Path(path)  # a config passes on the string that it has checked
    return make_reader(
        path,
        lambda vocab, repairs: read_docs(path, vocab, resolve_scheme(path, scheme), repairs),
        limit,
        augmenter,
    )
