"""Small pipelines with `crf_spans`, and made-up sentences with nested spans for them."""

import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import fix_random_seed

from tests.helpers.tasks import task_model

SENTENCES = [
    ("University of Oslo", [(0, 3, "ORG"), (2, 3, "LOC")]),
    ("the Bank of England head office", [(0, 6, "ORG"), (0, 4, "ORG"), (3, 4, "LOC")]),
    ("Ada left", [(0, 1, "PER")]),
    ("nobody came", []),
]


def make(**settings):
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_spans", config={"model": task_model("spans"), **settings})
    return nlp


def example(nlp, text, spans, *, key="sc", starts=None, **groups):
    words = text.split()
    reference = Doc(nlp.vocab, words=words, sent_starts=starts)
    for name, nodes in {key: spans, **groups}.items():
        reference.spans[name] = [Span(reference, *node) for node in nodes]
    return Example(Doc(nlp.vocab, words=words, sent_starts=starts), reference)


def train(nlp, examples, steps=40):
    fix_random_seed(0)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    for _ in range(steps):
        losses = nlp.update(examples, sgd=optimizer)
    return losses["crf_spans"]


def nodes(doc, key="sc"):
    return [(span.start, span.end, span.label_) for span in doc.spans[key]]


DEEP = "Ada saw the Bank of England head office staff"


def deep_pipeline(path=None, **settings):
    """A pipeline that knows `SENTENCES` and one with four nested spans by heart.

    `path` gets the sentences as gold docs.
    """
    nlp = make(**settings)
    inside = [(2, 9, "PER"), (2, 8, "ORG"), (2, 6, "ORG"), (5, 6, "LOC")]
    sentences = [*SENTENCES, (DEEP, [(0, 1, "PER"), *inside])]
    key = settings.get("spans_key", "sc")
    examples = [example(nlp, *each, key=key) for each in sentences]
    train(nlp, examples)
    if path:
        DocBin(docs=[each.reference for each in examples]).to_disk(path)
    return nlp
