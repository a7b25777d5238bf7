"""Text without annotation, added to a corpus for components that learn from a teacher."""

from collections.abc import Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_psa.corpora.docbin import read_docbins
from spacy_psa.corpora.readers import Reader
from spacy_psa.errors import InputError
from spacy_psa.sentences import unannotated


def read_with_unlabelled(labelled: Reader, path: Path | None) -> Reader:
    """The reader `spacy-psa.WithUnlabelled.v1`: a corpus, followed by text without annotation.

    Only the tokens, the sentence boundaries and the documents of the text are read. It counts as
    not annotated, so a component learns from it only if it has a teacher, as in `spacy-psa
    distill`.

    Args:
        labelled: the reader of the corpus, as the block `[corpora.train.labelled]`.
        path: a `.spacy` file, a folder of them, or a `.txt` file with a text on each line.

    Raises:
        InputError: if `path` is None; and, when the reader is called, if there is no such file, it
            is not in its format, or it has no text.
    """
    if path is None:
        raise InputError("WithUnlabelled.v1: path is null: set it to a .spacy or .txt file")

    def read(nlp: Language) -> Iterator[Example]:
        yield from labelled(nlp)
        count = 0
        for doc in read_texts(Path(path), nlp):
            if len(doc):
                count += 1
                plain = (unannotated(doc, document=True) for _ in range(2))
                yield Example(*plain)
        if not count:
            raise InputError(f"{path}: has no text; use a file with text")

    return read


def read_texts(path: Path, nlp: Language) -> Iterator[Doc]:
    """Read a `.spacy` file, a folder of them, or a `.txt` file with a text on each line."""
    if path.suffix != ".txt":
        yield from read_docbins(path, nlp.vocab)
        return
    try:
        with path.open(encoding="utf8") as lines:
            for line in lines:
                yield nlp.tokenizer(line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read as UTF-8 text ({error}); check the file"
        ) from error
