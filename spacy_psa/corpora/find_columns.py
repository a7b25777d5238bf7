"""Finds out which column of a file has the words and which have tags, from their values."""

import re
from collections import Counter
from itertools import islice
from pathlib import Path

from spacy_psa.corpora.any_columns import Columns, is_span_tag, read_sentences
from spacy_psa.errors import InputError

SENTENCES = 5000
"""The number of sentences that are looked at."""
CHUNKS = {
    "NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "NPC", "NPB",
}  # fmt: skip
PART_OF_SPEECH = re.compile(r"[A-Z][A-Z0-9$|:_-]*|[^\w\s]{1,3}|-?[A-Z]{2,}-?")
MOST_TAGS = 200
"""The largest number of different values of a column with parts of speech."""


def find_columns(path: Path) -> Columns:
    """Find the columns with words, entities, parts of speech and chunks.

    A column whose values are all `O` or `B-TYPE` and so on has chunks if its types are those of
    CoNLL-2000, and entities otherwise. Of several, the last has the entities. The words are the
    first of the other columns that has neither numbers nor one value alone, and the parts of
    speech the first after it with few values, in capital letters.

    Args:
        path: the file, plain or .gz.

    Raises:
        InputError: if no column has tags, and as `read_sentences`.
    """
    counts: list[Counter[str]] = []
    for sentence in islice(read_sentences(path, Counter()), SENTENCES):
        for row in sentence.rows:
            counts = counts or [Counter() for _ in row.columns]
            for counter, value in zip(counts, row.columns):
                counter[value] += 1
    spans = [i for i, values in enumerate(counts) if all(map(is_span_tag, values))]
    told = [i for i in spans if set(counts[i]) != {"O"}] or spans[-1:]
    chunks = [i for i in told if {value[2:] for value in counts[i] if value != "O"} <= CHUNKS]
    chunks = [i for i in chunks if set(counts[i]) != {"O"}]
    ents = [i for i in told if i not in chunks]
    rest = [i for i in range(len(counts)) if i not in spans and len(counts[i]) > 1]
    words = [i for i in rest if not all(value.isdigit() for value in counts[i])]
    if not words and len(counts) > len(spans):
        words = [i for i in range(len(counts)) if i not in spans]
    tags = [i for i in words[1:] if _are_parts_of_speech(counts[i])]
    if not words or not (ents or chunks or tags):
        raise InputError(
            f"{path}:1: no column of the {len(counts)} has tags such as O and B-TYPE; name them "
            "with `spacy-psa convert columns`, or give another format"
        )
    return Columns(words[0], *(next(iter(found), None) for found in (ents[::-1], tags, chunks)))


def _are_parts_of_speech(values: Counter[str]) -> bool:
    return len(values) <= MOST_TAGS and all(PART_OF_SPEECH.fullmatch(value) for value in values)
