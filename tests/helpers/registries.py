"""The registries of spaCy and srsly, which search all installed packages at each look."""

from functools import cache

import catalogue
from srsly.msgpack import msgpack_decoders, msgpack_encoders


def search_packages_once() -> None:
    """Sort the entry points by group, and keep srsly's encoders and decoders.

    A process that was forked from one that has done this has nothing left to do.
    """
    found = catalogue.AVAILABLE_ENTRY_POINTS
    if type(found) is dict:  # unlike what Python 3.10 and 3.11 find, a subclass
        return
    groups = {group: list(found.select(group=group)) for group in found.groups}
    catalogue.AVAILABLE_ENTRY_POINTS = groups
    for registry in (msgpack_encoders, msgpack_decoders):
        registry.get_all = cache(registry.get_all)
