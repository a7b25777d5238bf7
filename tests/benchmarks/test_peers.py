"""The recognisers of other libraries: what they learn is scored by the words of the corpus."""

import pytest

from benchmarks.pretrained import peers
from tests.helpers.encoders import write_encoder

SENTENCES = [
    (["Ada", "met", "Bob", "Gordon-Smythe", "."], ["B-PER", "O", "B-PER", "I-PER", "O"]),
    (["He", "left", "Bath", "."], ["O", "O", "B-LOC", "O"]),
    (["Bath"], ["B-LOC"]),
]
FOUND = [[(0, 1, "PER"), (2, 4, "PER")], [(2, 3, "LOC")], [(0, 1, "LOC")]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_token_classification_learns_a_handful_of_sentences(tmp_path, monkeypatch):
    pytest.importorskip("accelerate", reason="needs accelerate, which the Trainer runs on")
    monkeypatch.setattr(peers, "PASSES", 30)
    monkeypatch.setattr(peers, "RATE", 0.01)
    encoder = str(write_encoder(tmp_path / "bert"))
    words = [words for words, _ in SENTENCES]
    with peers.hugging_face(encoder, SENTENCES * 4, SENTENCES, 0, tmp_path / "out") as given:
        predict, scores = given
        assert (len(scores), scores[-1], predict(words)) == (30, 1.0, FOUND)
        doc = peers.as_pipeline(predict)("Bath")
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Bath", "LOC")]


def test_tags_are_read_as_conlleval_reads_them():
    assert [peers.entities(tags) for _, tags in SENTENCES] == FOUND
    assert peers.entities(["I-PER", "I-LOC", "B-LOC"]) == [
        (0, 1, "PER"),
        (1, 2, "LOC"),
        (2, 3, "LOC"),
    ]
