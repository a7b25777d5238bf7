"""CoNLL-2000 columns: word, part of speech, chunk (Tjong Kim Sang and Buchholz, 2000).

Sentences are separated by empty lines; the chunk column is IOB2. The shared task
has no development set: papers draw 1,000 sentences from the training set at random.
"""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.archives import is_collection, open_files
from spacy_psa.corpora.columns import Row, column_spans, read_rows
from spacy_psa.corpora.lines import decode_lines
from spacy_psa.corpora.make_doc import make_doc
from spacy_psa.corpora.readers import Reader, make_reader
from spacy_psa.errors import InputError

COLUMNS = ("word", "part of speech", "chunk")


def read_sentences(
    path: Path, repairs: Counter[str], member: str | None = None
) -> Iterator[tuple[str, list[Row]]]:
    """Yield (file, rows) of each sentence, streaming.

    Args:
        path: a plain or .gz file, or the archive that is published.
        member: the file inside the archive, by its last name, as "train.txt".

    Raises:
        InputError: a line has not three columns, the file has no sentences, or
            `member` is missing or given for a file that is no archive.
    """
    if is_collection(path) and not member:
        raise InputError(f"{path}: choose a file in it with --member train.txt or test.txt")
    if member and not is_collection(path):
        raise InputError(f"{path}: --member is for archives; leave it out")
    files = open_files(path, lambda file: f"/{file}".endswith(f"/{member}"), f"file {member}")
    for name, stream in files:
        for rows in read_rows(name, decode_lines(name, stream, repairs), COLUMNS, repairs):
            yield name, rows


def draw(path: Path, count: int, seed: int, member: str | None = None) -> frozenset[int]:
    """Which sentences, counted from 0, a development set of `count` consists of.

    Raises:
        InputError: the file has not more than `count` sentences; and as `read_sentences`.
    """
    there = sum(1 for _ in read_sentences(path, Counter(), member))
    if not 0 < count < there:
        raise InputError(f"{path}: cannot draw {count:,} of {there:,} sentences for --dev")
    return frozenset(random.Random(seed).sample(range(there), count))


def read_docs(
    path: Path,
    vocab: Vocab,
    repairs: Counter[str] | None = None,
    member: str | None = None,
    dev: int = 0,
    seed: int = 0,
    part: Literal["train", "dev"] = "train",
) -> Iterator[Doc]:
    """Yield one `Doc` a sentence: `token.tag_` and `doc.spans["chunks"]`.

    Args:
        dev: draw so many sentences at random for a development set; 0 for none.
        part: "dev" for the drawn sentences, "train" for the others.

    Raises:
        InputError: as `read_sentences` and `draw`; a tag that is not IOB2; "dev"
            where none are drawn.
    """
    if part == "dev" and not dev:
        raise InputError("--part dev needs the number of sentences to draw: give --dev 1000")
    drawn = draw(path, dev, seed, member) if dev else frozenset()
    sentences = read_sentences(path, Counter() if repairs is None else repairs, member)
    for i, (name, rows) in enumerate(sentences):
        if (i in drawn) != (part == "dev"):
            continue
        # IOB1 reads IOB2 alike, and what other releases of the corpus have.
        chunks = column_spans(name, rows, 2, "iob1", "chunk", "correct it")
        words, tags = ([row.columns[column] for row in rows] for column in (0, 1))
        yield make_doc(vocab, words, tags, chunks=chunks)


def read_conll2000(path: Path, member: str | None = None, limit: int = 0) -> Reader:
    """The reader `spacy-psa.Conll2000.v1`: train straight from a column file.

    Each example predicts over the gold words of one sentence.

    Args:
        path: the column file, or an archive with `member` in it.
        limit: read so many sentences only; 0 for all.

    Raises:
        InputError: when read, as `read_docs`.
    """
    path = Path(path)  # configs hand on the string that they checked
    return make_reader(path, lambda vocab, repairs: read_docs(path, vocab, repairs, member), limit)
