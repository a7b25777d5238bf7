"""The encoders and decoders of msgpack that packages add to srsly."""

from functools import cache

from srsly.msgpack import msgpack_decoders, msgpack_encoders


def look_up_codecs_once() -> None:
    """Keep what srsly finds: it searches the entry points of all packages for each value."""
    for registry in (msgpack_encoders, msgpack_decoders):
        registry.get_all = cache(registry.get_all)
