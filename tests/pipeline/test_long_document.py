"""A document of 25,000 tokens without sentence boundaries, at the size of the paper."""

from tests.helpers.processes import run_elsewhere

TOKENS = 25_000
LIMIT_MB = 1300  # a square of its tokens alone would take 2500

SCRIPT = f"""
import resource
import spacy
from spacy.tokens import Doc
from spacy.training import Example

nlp = spacy.blank("en")
ner = nlp.add_pipe("crf_ner")
for label in ("PER", "LOC", "ORG", "MISC"):
    ner.add_label(label)
sample = Example.from_dict(nlp.make_doc("Ann left Bath"), {{"entities": [(0, 3, "PER")]}})
nlp.initialize(lambda: [sample])
words = [f"w{{i * i % 9973}}" for i in range({TOKENS})]
doc = nlp(Doc(nlp.vocab, words=words))
assert doc.has_annotation("ENT_IOB")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_is_annotated_in_memory_that_grows_with_its_length():
    assert run_elsewhere(SCRIPT) < LIMIT_MB
