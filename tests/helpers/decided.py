"""A file of decisions over a few texts, for tests."""

from contextlib import contextmanager

import spacy
from spacy.tokens import DocBin

from spacy_psa.studio.active_learning.decisions import Decision
from spacy_psa.studio.active_learning.store import Component, open_store
from spacy_psa.studio.active_learning.tokens import Tokens
from tests.helpers.pipelines import MARKED, make_examples, read_marked

LABELS = ("LOC", "ORG", "PER")


def tokens_of(text):
    """The tokens of a text as a blank English pipeline makes them."""
    return Tokens.of(spacy.blank("en")(text))


@contextmanager
def small_store(path, texts=("Ada Lovelace met Bob", "Bob left Acme", "Nobody came"), **options):
    """An open store for a component "ner", with some texts."""
    with open_store(path, **options) as store:
        store.use(Component("ner", LABELS, None))
        store.add((tokens_of(text), {}) for text in texts)
        yield store


def accept(start, end, label):
    return Decision("accepted", start, end, label)


def reject(start, end, label=""):
    return Decision("rejected", start, end, label)


def complete(start, end):
    return Decision("complete", start, end)


def decide_all(store, annotator="ann", skip=lambda number: False, component="ner"):
    """Decide each of the MARKED texts as it is marked."""
    for number, line in enumerate(MARKED, 1):
        words, entities = read_marked(line)
        if not skip(number):
            decisions = [*(accept(*entity) for entity in entities), complete(0, len(words))]
            store.decide(number, annotator, component, decisions)


def dev_file(path):
    """A file with the MARKED texts as gold data."""
    docs = [example.reference for example in make_examples(spacy.blank("en"))]
    DocBin(docs=docs).to_disk(path)
    return path
