"""From trees to a trained parser by spaCy's own commands, with configs/parser/sample.cfg."""

import pytest
import spacy
import srsly
from spacy.cli.debug_config import debug_config
from spacy.cli.debug_data import debug_data
from spacy.cli.evaluate import evaluate
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin, Span
from spacy.util import load_config, walk_dict

from spacy_psa.corpora.jsonl import read_docs
from spacy_psa.scoring.result import measure, read_examples
from tests.helpers.paths import CONFIGS, SAMPLE

CONFIG = CONFIGS / "parser" / "sample.cfg"
# The others need an encoder; tests/training/test_over_pretrained.py trains over one.
OVER_ENCODER = ("frozen", "pretrained")
RUNNABLE = sorted(p.stem for p in CONFIGS.glob("parser/*.cfg") if p.stem not in OVER_ENCODER)


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


def test_the_log_has_short_names_and_old_ones_stay_in_the_performance(folder):
    meta = srsly.read_json(folder / "model" / "model-best" / "meta.json")
    for name in ("f", "p", "r", "exact"):
        assert meta["performance"][f"tree_{name}"] == meta["performance"][f"constituents_{name}"]
    weights = load_config(CONFIG)["training"]["score_weights"]
    shown = [name for name, weight in weights.items() if weight is not None]
    assert shown == ["tree_f", "tree_p", "tree_r", "tree_exact"]
    assert all(len(name) <= 13 for name in shown)  # longer ones are cut off


@pytest.mark.parametrize("key", [{"spans_key": "constituents"}, {}], ids=["with a key", "without"])
def test_spacys_evaluate_prints_the_scores_of_trees(folder, capsys, key):
    model = str(folder / "model" / "model-best")
    scores = evaluate(model, folder / "trees.spacy", silent=False, **key)
    printed = capsys.readouterr().out
    assert "SPAN F" in printed and "SPAN R" in printed and "NP" in printed
    assert scores["constituents_f"] > 0
    assert key or scores["spans_sc_f"] == scores["constituents_f"]


def test_a_report_has_the_scores_of_trees_under_their_own_names_alone(folder):
    model = str(folder / "model" / "model-best")
    scores = measure(spacy.load(model), model, folder / "trees.spacy")["scores"]
    assert scores["constituents_f"] > 0 and not any(key.startswith("spans_sc") for key in scores)


def test_a_config_with_the_scores_of_version_0_1_goes_on_training(folder, tmp_path):
    old = {"constituents_f": 1.0, "constituents_p": 0.0, "constituents_r": 0.0}
    config = load_config(CONFIG, interpolate=False)
    config["training"]["score_weights"] = old
    del config["components"]["parser"]["max_length"]
    config.to_disk(tmp_path / "old.cfg")
    overrides = {
        "paths.train": str(folder / "trees.spacy"),
        "paths.dev": str(folder / "trees.spacy"),
        "training.max_epochs": 0,
        "training.max_steps": 11,
        "training.eval_frequency": 10,
    }
    train(tmp_path / "old.cfg", tmp_path / "model", overrides=overrides)
    performance = srsly.read_json(tmp_path / "model" / "model-best" / "meta.json")["performance"]
    assert performance["constituents_f"] > 0


@pytest.mark.parametrize("name", RUNNABLE)
def test_spacy_debug_checks_the_config(folder, name, capsys, tmp_path):
    path = CONFIGS / "parser" / f"{name}.cfg"
    docs = list(DocBin().from_disk(folder / "trees.spacy").get_docs(spacy.blank("en").vocab))
    trees = str(tmp_path / "trees.spacy")  # fewer than 100 examples are an error for spaCy
    DocBin(docs=docs * 2).to_disk(trees)
    debug_data(path, config_overrides={"paths.train": trees, "paths.dev": trees}, silent=False)
    assert "120 training docs" in capsys.readouterr().out
    debug_config(path, overrides={"paths.train": trees, "paths.dev": trees})
    assert "Config is valid" in capsys.readouterr().out


@pytest.mark.parametrize("name", RUNNABLE)
def test_each_config_trains_on_trees_alone(folder, tmp_path, name):
    """Nothing else is given on the command line; models are made small."""
    path = CONFIGS / "parser" / f"{name}.cfg"
    small = {"layers": 1, "feedforward": 16, "heads": 2, "head_width": 4, "rows": 500}
    model = load_config(path)["components"]["parser"]["model"]
    overrides = {
        f"components.parser.model.{'.'.join(keys)}": small[keys[-1]]
        for keys, _ in walk_dict(model)
        if keys[-1] in small
    }
    overrides |= {
        "paths.train": str(folder / "trees.spacy"),
        "paths.dev": str(folder / "trees.spacy"),
        "training.max_epochs": 0,
        "training.max_steps": 3,
        "training.eval_frequency": 2,
    }
    train(path, tmp_path / "model", overrides=overrides)
    doc = spacy.load(tmp_path / "model" / "model-last")("Ada left .")
    assert "constituents" in doc.spans


def test_development_and_test_data_are_scored_on_the_same_tokens(folder, tmp_path):
    """Also where the tokenizer of the pipeline would split words of the treebank."""
    nlp = spacy.load(folder / "model" / "model-best")
    docs = list(DocBin().from_disk(folder / "trees.spacy").get_docs(nlp.vocab))
    words = ["Ada", "met", "Mr.Bush/Evans", "."]
    odd = Doc(nlp.vocab, words=words, spaces=[True, True, False, False], tags=["NNP"] * 4)
    odd.spans["constituents"] = [Span(odd, 0, 4, "S")]
    assert [token.text for token in nlp.make_doc(odd.text)] != words
    DocBin(docs=[*docs, odd]).to_disk(tmp_path / "test.spacy")
    dev = nlp.config["corpora"]["dev"] | {"path": str(tmp_path / "test.spacy")}
    of_dev = spacy.registry.resolve({"dev": dev})["dev"](nlp)
    of_test = read_examples(nlp, tmp_path / "test.spacy")
    assert [[t.text for t in eg.predicted] for eg in of_test] == [
        [t.text for t in eg.predicted] for eg in of_dev
    ]
    assert [t.text for t in of_test[-1].predicted] == words


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
