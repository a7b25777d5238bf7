"""Loads what spaCy and its extensions load, for a fork server whose processes then have it."""

import spacy

from tests.helpers.codecs import look_up_codecs_once

spacy.blank("en")
look_up_codecs_once()
