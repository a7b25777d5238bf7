"""Training straight from a corpus file: what the registered readers share."""

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

Reader = Callable[[Language], Iterable[Example]]


def make_reader(
    path: Path, docs: Callable[[Vocab, Counter[str]], Iterator[Doc]], limit: int
) -> Reader:
    """A reader whose examples predict over the gold words of one sentence each.

    Args:
        docs: gives the sentences and counts repairs, of which one warning tells.
        limit: read so many sentences only; 0 for all.
    """

    def read(nlp: Language) -> Iterator[Example]:
        repairs: Counter[str] = Counter()
        for doc in islice(docs(nlp.vocab, repairs), limit or None):
            spaces = None if doc.has_unknown_spaces else [bool(t.whitespace_) for t in doc]
            yield Example(Doc(nlp.vocab, words=[t.text for t in doc], spaces=spaces), doc)
        if repairs:
            warnings.warn(describe_repairs(path, repairs), stacklevel=2)

    return read
