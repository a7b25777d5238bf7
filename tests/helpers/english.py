"""spaCy's English with fewer of its tokenizer's exceptions."""

import re

from spacy.lang.en import English

KEPT = re.compile(r"\s+|[A-Z][a-z]{1,4}\.|([A-Z]\.)+|[ap]\.m\.|\w*n't|\w+'s|I'm")


def shorten_exceptions() -> None:
    """Keep one exception in ten: spaCy reads all of them seven times for each pipeline."""
    every = English.Defaults.tokenizer_exceptions
    kept = {text: tokens for text, tokens in every.items() if KEPT.fullmatch(text)}
    English.Defaults.tokenizer_exceptions = kept
