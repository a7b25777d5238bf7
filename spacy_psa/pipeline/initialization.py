"""The examples that a component is initialized with, read once, and its lists of labels."""

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples

from spacy_psa.errors import InputError

SAMPLE = 10  # docs that show the model its widths


def read_examples(
    pipe: Any, get_examples: Callable[[], Iterable[Example]], sample: list[Doc]
) -> Iterator[Example]:
    """Read the examples once: check each, and add the first docs for the model to `sample`."""
    method = f"{type(pipe).__name__}.initialize"
    examples = get_examples() if callable(get_examples) else None
    if not examples:
        validate_get_examples(get_examples, method)  # raises
    for eg in examples or ():
        validate_examples([eg], method)
        sample += islice(pipe._samples([eg]), SAMPLE - len(sample))
        yield eg


def check_list(name: str, setting: str, names: Any) -> None:
    """Raise InputError unless labels or tags for `initialize` are a list, or None."""
    if isinstance(names, (str, Mapping)):
        raise InputError(
            f"{name}: {setting} is {reprlib.repr(names)}: it must be a list of {setting}, "
            "as `spacy init labels` writes it for this component"
        )
