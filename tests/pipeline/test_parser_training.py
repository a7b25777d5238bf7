"""From trees to a trained parser by spaCy's own commands, with configs/parser/sample.cfg."""

import pytest
import spacy
import srsly
from spacy.cli.evaluate import evaluate
from spacy.cli.train import train
from spacy.tokens import DocBin

from spacy_psa.corpora.jsonl import read_docs
from tests.helpers.paths import CONFIGS, SAMPLE

CONFIG = CONFIGS / "parser" / "sample.cfg"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with 60 trees of the sample, train and dev alike, and a model trained on them."""
    path = tmp_path_factory.mktemp("project")
    vocab = spacy.blank("en").vocab
    docs = list(read_docs(SAMPLE / "dev.jsonl", vocab))[:60]
    DocBin(docs=docs).to_disk(path / "trees.spacy")
    overrides = {
        "paths.train": str(path / "trees.spacy"),
        "paths.dev": str(path / "trees.spacy"),
        "training.max_epochs": 0,
        "training.max_steps": 41,
        "training.eval_frequency": 20,
        "training.logger.output_file": str(path / "log.jsonl"),
    }
    train(CONFIG, path / "model", overrides=overrides)
    return path


def test_training_learns_and_keeps_the_best_model(folder):
    scores = [row["score"] for row in srsly.read_jsonl(folder / "log.jsonl")]
    assert len(scores) == 3 and scores[-1] > 0.6 > 0.3 > scores[0]
    meta = srsly.read_json(folder / "model" / "model-best" / "meta.json")
    assert meta["performance"]["constituents_f"] == pytest.approx(max(scores))
    assert meta["components"] == ["parser"]


def test_trained_model_is_evaluated_and_parses_with_confidence(folder):
    scores = evaluate(str(folder / "model" / "model-best"), folder / "trees.spacy", silent=True)
    assert scores["constituents_f"] > 0.5
    doc = spacy.load(folder / "model" / "model-best")("Ingrid Bush left Reading for Kenya .")
    assert doc[:]._.parse_string.count("(") > 7
    assert all(0 < s._.constituent_confidence <= 1.0001 for s in doc.spans["constituents"])


def test_labels_of_the_development_set_that_training_lacks_count_as_misses(folder, tmp_path):
    nlp = spacy.load(folder / "model" / "model-best")
    docs = list(DocBin().from_disk(folder / "trees.spacy").get_docs(nlp.vocab))[:5]
    before = sum(len(doc.spans["constituents"]) for doc in docs)
    for doc in docs:
        group = doc.spans["constituents"]
        doc.spans["constituents"] = [
            spacy.tokens.Span(doc, s.start, s.end, "NEW" if s.label_ == "NP" else s.label_)
            for s in group
        ]
    DocBin(docs=docs).to_disk(tmp_path / "dev.spacy")
    scores = evaluate(str(folder / "model" / "model-best"), tmp_path / "dev.spacy", silent=True)
    assert before and scores["constituents_per_type"]["NEW"]["r"] == 0.0
