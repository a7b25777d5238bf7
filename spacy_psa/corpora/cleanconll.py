"""CleanCoNLL: CoNLL-2003 with corrected entities (Rücker and Akbik, 2023).

A joined file has tabs between its columns: word, part of speech, entity link, and two columns of
entities in IOB2, of which the last counts. The published annotation has `[TOKEN]` for each word.
The words are those of CoNLL-2003 after a patch, which splits some of them and joins sentences.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.columns import Columns, Schemes, column_docs, read_rows
from spacy_psa.corpora.lines import BLANKS, marks_documents, read_lines
from spacy_psa.errors import InputError

COLUMNS = ("word", "part of speech", "entity link", "entity of an earlier phase", "entity")
PLACES = Columns(word=0, tag=1, ner=4)
MASK = "[TOKEN]"
HUNK = re.compile(r"(\d+)(?:,\d+)?([acd])\d+(?:,\d+)?")
"""The line before the changed lines in a normal diff, such as `4120c4118,4120`."""


def read_docs(
    path: Path,
    vocab: Vocab,
    repairs: Counter[str],
    words: Path | None = None,
    patch: Path | None = None,
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence of a plain or .gz file, as `column_docs` does.

    This is the joined file, or the published annotation. The latter needs the words of a file of
    CoNLL-2003 and the published patch of these words.
    """
    lines = read_lines(path, repairs)
    if words is not None and patch is not None:
        lines = _joined(path, lines, apply_patch(words, patch))
    elif words is not None or patch is not None:
        raise InputError(f"{path}: --words and --patch belong together; name both files or none")
    documents = marks_documents(words or path)
    # The columns of this format have tabs between them, so these are not repairs.
    sentences = read_rows(str(path), _unmasked(path, lines), COLUMNS, Counter(), documents)
    yield from column_docs(str(path), vocab, sentences, PLACES, Schemes("iob2", None))


def apply_patch(words: Path, patch: Path) -> list[str]:
    """Return the first column of a file, a string for each line, after a patch (normal `diff`)."""
    before = [BLANKS.split(text)[0] for _, text in read_lines(words, Counter())]
    after: list[str] = []
    done = 0
    for number, text in read_lines(patch, Counter()):
        if hunk := HUNK.fullmatch(text):
            start = int(hunk[1]) - (hunk[2] != "a")
            after += before[done:start]
            done = start
        elif text.startswith(">"):
            after.append(text[2:])
        elif text.startswith("<") and before[done : done + 1] == [text[2:]]:
            done += 1
        elif text != "---":
            raise InputError(
                f"{patch}:{number}: does not fit line {done + 1} of {words}; use the patch and the "
                "file of CoNLL-2003 for the same part"
            )
    return after + before[done:]


def _joined(
    path: Path, lines: Iterator[tuple[int, str]], words: list[str]
) -> Iterator[tuple[int, str]]:
    """Put the words into the lines of the annotation."""
    for (number, text), word in zip_longest(lines, words, fillvalue=(0, "")):
        if bool(text) != bool(word) or (text and not text.startswith(MASK)):
            place = f"line {number}" if number else "the end"
            raise InputError(
                f"{path}: {place} has {text!r} for the word {word!r}; use the annotation, the "
                "patch and the file of CoNLL-2003 for the same part"
            )
        yield number, str(word) + text.removeprefix(MASK)


def _unmasked(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for number, text in lines:
        if text.startswith(MASK):
            raise InputError(
                f"{path}:{number}: the words are masked; name the file of CoNLL-2003 that has "
                "them with --words, and the published patch with --patch"
            )
        yield number, text
