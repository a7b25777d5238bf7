"""Loads what spaCy and its extensions load, for a fork server whose processes then have it."""

import spacy

from tests.helpers.english import shorten_exceptions
from tests.helpers.registries import search_packages_once

search_packages_once()
shorten_exceptions()
spacy.blank("en")
