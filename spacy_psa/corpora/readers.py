"""Training directly from a corpus file: the part that the registered readers share."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_psa.corpora.lines import describe_repairs
from spacy_psa.sentences import unannotated

Reader = Callable[[Language], Iterable[Example]]


def make_reader(
    path: Path, docs: Callable[[Vocab, Counter[str]], Iterator[Doc]], limit: int
) -> Reader:
    """Make a reader; each of its examples is one sentence, predicted from the gold words.

    Args:
        path: the corpus file, for the warning.
        docs: yields the sentences and counts the repairs; one warning reports the repairs.
        limit: the number of sentences to read; 0 means all.

    Examples:
        >>> import spacy
        >>> def docs(vocab, repairs):
        ...     yield Doc(vocab, words=["Ada", "left"], tags=["NNP", "VBD"])
        >>> read = make_reader(Path("train.txt"), docs, limit=0)
        >>> [example] = read(spacy.blank("en"))
        >>> [token.tag_ for token in example.reference], [t.tag_ for t in example.predicted]
        (['NNP', 'VBD'], ['', ''])
    """

    def read(nlp: Language) -> Iterator[Example]:
        repairs: Counter[str] = Counter()
        for doc in islice(docs(nlp.vocab, repairs), limit or None):
            yield Example(unannotated(doc, nlp.vocab, sentences=False), doc)
        if repairs:
            warnings.warn(describe_repairs(path, repairs), stacklevel=2)

    return read
