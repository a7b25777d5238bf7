"""spaCy's English with fewer of its tokenizer's exceptions."""

import re

from spacy.lang.en import English

KEPT = re.compile(
    r"\s+|I'm|[Ii]t's|([Dd]o|[Cc]a|did|does|is|was|wo)n't|(Mrs?|Dr|Co|Corp|Inc|Jan|Nov|St|N\.Y|[ap]\.m)\."
)


def shorten_exceptions() -> None:
    """Keep a few of the exceptions: spaCy reads all of them seven times for each pipeline."""
    every = English.Defaults.tokenizer_exceptions
    kept = {text: tokens for text, tokens in every.items() if KEPT.fullmatch(text)}
    English.Defaults.tokenizer_exceptions = kept
