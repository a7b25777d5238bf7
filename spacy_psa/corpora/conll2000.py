"""CoNLL-2000 columns: word, part of speech, chunk (Tjong Kim Sang and Buchholz, 2000).

Empty lines separate sentences. The chunk column is IOB2. The shared task has no development
set; papers draw 1,000 sentences from the training set at random.
"""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.archives import is_collection, open_files
from spacy_psa.corpora.columns import Columns, Schemes, Sentence, column_docs, read_rows
from spacy_psa.corpora.lines import decode_lines
from spacy_psa.corpora.readers import Augmenter, Reader, make_reader
from spacy_psa.errors import InputError

COLUMNS = ("word", "part of speech", "chunk")
PLACES = Columns(word=0, tag=1, chunk=2)
# IOB1 reads legal IOB2 tags correctly, and also the tags of other releases.
SCHEMES = Schemes(ner=None, chunk="iob1")


def read_sentences(
    path: Path, repairs: Counter[str], member: str | None = None
) -> Iterator[tuple[str, Sentence]]:
    """Yield the name of the file and each of its sentences, as a stream.

    `path` is a plain or .gz file, or the published archive, `member` the file in it ("train.txt").
    """
    if is_collection(path) and not member:
        raise InputError(f"{path}: choose a file in it with --member train.txt or test.txt")
    if member and not is_collection(path):
        raise InputError(f"{path}: --member is for archives; leave it out")
    files = open_files(path, lambda file: f"/{file}".endswith(f"/{member}"), f"file {member}")
    first = ""
    for name, stream in files:
        if first:
            raise InputError(
                f"{path}: --member {member} fits several files: {first}, {name}; write more "
                "of the path"
            )
        first = name
        for sentence in read_rows(name, decode_lines(name, stream, repairs), COLUMNS, repairs):
            yield name, sentence


def draw(path: Path, count: int, seed: int, member: str | None = None) -> frozenset[int]:
    """Draw `count` sentences for a development set at random; they are counted from 0."""
    size = sum(1 for _ in read_sentences(path, Counter(), member))
    if not 0 < count < size:
        advice = f"choose a number from 1 to {size - 1:,}" if size > 1 else "use a larger file"
        raise InputError(f"{path}: cannot draw {count:,} of {size:,} sentences for --dev: {advice}")
    return frozenset(random.Random(seed).sample(range(size), count))


def read_docs(
    path: Path,
    vocab: Vocab,
    repairs: Counter[str] | None = None,
    member: str | None = None,
    dev: int = 0,
    seed: int = 0,
    part: Literal["train", "dev"] = "train",
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence, with `token.tag_` and `doc.spans["chunks"]`.

    With `dev`, this number of sentences is drawn at random. The part "dev" has these, "train" the
    others.
    """
    if part == "dev" and not dev:
        raise InputError("--part dev needs the number of sentences to draw, such as --dev 1000")
    drawn = draw(path, dev, seed, member) if dev else frozenset()
    for i, (name, sentence) in enumerate(
        read_sentences(path, Counter() if repairs is None else repairs, member)
    ):
        if (i in drawn) == (part == "dev"):
            yield from column_docs(name, vocab, [sentence], PLACES, SCHEMES)


def read_conll2000(
    path: Path, member: str | None = None, limit: int = 0, augmenter: Augmenter | None = None
) -> Reader:
    """The reader `spacy-psa.Conll2000.v1`: trains directly from a column file.

    Each example is one sentence, and its prediction starts from the gold words.

    Args:
        path: the column file, or an archive that contains `member`.
        member: the file inside the archive, without its folders ("train.txt").
        limit: the number of sentences to read; 0 means all.
        augmenter: makes the examples of each sentence, as in `spacy.Corpus.v1`.
    """
    path = Path(path)  # a config passes on the string that it has checked
    return make_reader(
        path, lambda vocab, repairs: read_docs(path, vocab, repairs, member), limit, augmenter
    )
