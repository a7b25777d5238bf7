"""A small trained pipeline with entities, tags and trees, as `spacy-psa serve` opens it."""

from typing import Any

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import Adam

from tests.helpers.parsers import chart_model
from tests.helpers.pipelines import MARKED, read_marked, small_model

TEXT = "Ada Lovelace met Charles Babbage in London . Acme hired Ada and left Bath"


def served_pipeline(steps: int = 25) -> Any:
    """Sentences, entities (PSA layers), tags and trees; trained on a few sentences."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("crf_ner", name="ner", config={"model": small_model()})
    nlp.add_pipe("crf_tagger", name="tagger", config={"model": small_model()})
    nlp.add_pipe("constituency_parser", name="parser", config={"model": chart_model()})
    examples = []
    for line in MARKED:
        words, entities = read_marked(line)
        reference = Doc(nlp.vocab, words=words)
        reference.set_ents([Span(reference, *span) for span in entities])
        for token in reference:
            token.tag_ = "NAME" if token.ent_type else "MARK" if token.is_punct else "WORD"
        nodes = [Span(reference, 0, len(reference), "S")]
        nodes += [Span(reference, start, end, "NP") for start, end, _ in entities]
        reference.spans["constituents"] = sorted(nodes, key=lambda s: (s.start, -s.end))
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    fix_random_seed(0)
    optimizer = nlp.initialize(lambda: examples, sgd=Adam(0.02))
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)
    return nlp
