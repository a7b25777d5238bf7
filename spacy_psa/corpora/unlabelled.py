"""Text without annotation beside a corpus, for components that learn from a teacher."""

from collections.abc import Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_psa.corpora.docbin import read_docbins
from spacy_psa.corpora.readers import Reader
from spacy_psa.errors import InputError
from spacy_psa.sentences import sentence_bounds


def read_with_unlabelled(labelled: Reader, path: Path | None) -> Reader:
    """The reader `spacy-psa.WithUnlabelled.v1`: a corpus, and text without annotation behind it.

    The text has the tokens and the sentence boundaries of its docs; nothing else on them is read.
    It counts as not annotated. So a component learns nothing from it unless it has a teacher, as by
    `spacy-psa distill`.

    Args:
        labelled: the reader of the corpus, as the block `[corpora.train.labelled]`.
        path: a `.spacy` file, a folder of them, or a `.txt` file with a text in each line.

    Raises:
        InputError: if `path` is None; and, when the reader is called, if there is no such file, it
            is not in its format, or it has no text.
    """
    if path is None:
        raise InputError("WithUnlabelled.v1: path is null: give a .spacy or .txt file")

    def read(nlp: Language) -> Iterator[Example]:
        yield from labelled(nlp)
        count = 0
        for doc in _docs(Path(path), nlp):
            if len(doc):
                count += 1
                yield Example(_plain(doc), _plain(doc))
        if not count:
            raise InputError(f"{path}: has no text; give a file with text")

    return read


def _docs(path: Path, nlp: Language) -> Iterator[Doc]:
    if path.suffix != ".txt":
        yield from read_docbins(path, nlp.vocab)
        return
    try:
        with path.open(encoding="utf8") as lines:
            for line in lines:
                yield nlp.make_doc(line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read as UTF-8 text ({error}); check the file"
        ) from error


def _plain(doc: Doc) -> Doc:
    """Copy the tokens and the sentence boundaries of a doc."""
    spaces = None if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc]
    starts = {start for start, _ in sentence_bounds(doc)}
    known = doc.has_annotation("SENT_START")
    user_data = {key: doc.user_data[key] for key in ("document", "part") if key in doc.user_data}
    return Doc(
        doc.vocab,
        words=[token.text for token in doc],
        spaces=spaces,
        sent_starts=[token.i in starts for token in doc] if known else None,
        user_data=user_data,
    )
