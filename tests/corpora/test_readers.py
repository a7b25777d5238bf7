"""What all readers of training data have in common."""

import pytest
import spacy
from spacy.training.augment import create_lower_casing_augmenter
from spacy.util import registry

READERS = {
    "Conll2003": "Ada NNP B-NP B-PER\nLeft VBD B-VP O\nLeeds NNP B-NP B-LOC\n",
    "Conll2000": "Ada NNP B-NP\nLeft VBD B-VP\nLeeds NNP B-NP\n",
    "Bmes": "A B-PER\nl O\nL B-LOC\n",
    "TreeCorpus": "(S (NP (NNP Ada)) (VP (VBD Left) (NP (NNP Leeds))))\n",
}


@pytest.mark.parametrize("name", READERS)
def test_an_augmenter_makes_examples_of_each_sentence(name, tmp_path):
    def lower_and_same(nlp, example):
        yield from create_lower_casing_augmenter(level=1.0)(nlp, example)
        yield example

    path = tmp_path / "train.txt"
    path.write_text(READERS[name])
    make, nlp = registry.readers.get(f"spacy-psa.{name}.v1"), spacy.blank("en")
    (plain,) = make(path=path)(nlp)
    lower, same = make(path=path, augmenter=lower_and_same)(nlp)
    assert same.reference.to_json() == plain.reference.to_json()
    assert [t.text for t in lower.predicted] == [t.text.lower() for t in plain.predicted]
    for example in (lower, same):
        layers = [
            [(span.start, span.end, span.label_) for span in spans]
            for doc in (example.reference, plain.reference)
            for spans in (doc.ents, *(doc.spans[key] for key in sorted(plain.reference.spans)))
        ]
        middle = len(layers) // 2
        assert layers[:middle] == layers[middle:] and any(layers)
        assert not example.predicted.ents and not example.predicted.spans
