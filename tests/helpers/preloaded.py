"""Loads what a training loads, for a fork server whose processes then have it.

No kernel runs here, since threads would not survive a fork.
"""

from contextlib import suppress
from importlib.metadata import entry_points

import spacy

from spacy_psa.kernels import available
from tests.helpers.english import shorten_exceptions
from tests.helpers.registries import search_packages_once

search_packages_once()
shorten_exceptions()
spacy.blank("en")
with suppress(Exception):  # as where torch does not know this version of Python
    import torch._dynamo  # noqa: F401  # which optimizers of torch load
if available():
    from spacy_psa.kernels import attention, chain, dropout, gates, pair_chain  # noqa: F401
for group in ("spacy_architectures", "spacy_factories", "thinc_optimizers"):
    for entry in entry_points(group=group):
        if entry.value.startswith("spacy_psa."):
            entry.load()
