"""From a config of configs/ner to an installed model, by spaCy's own commands."""

import importlib.metadata
import os
import re
import subprocess

import pytest
import spacy
import srsly
import torch
from spacy.cli._util import app
from spacy.cli.evaluate import evaluate
from spacy.cli.package import get_third_party_dependencies
from spacy.cli.train import train
from spacy.tokens import DocBin
from thinc.api import Config
from typer.testing import CliRunner

from tests.helpers.commands import succeed
from tests.helpers.paths import CONFIGS
from tests.helpers.patience import PATIENCE
from tests.helpers.pipelines import LOAD_AND_ANNOTATE, MARKED, TEXTS, annotate, make_examples
from tests.helpers.processes import run_elsewhere
from tests.helpers.quick_python import PYTHON

CONFIG = CONFIGS / "ner" / "psa.cfg"
TOK2VEC = "components.ner.model.tok2vec"
SMALL = {
    f"{TOK2VEC}.embed.*.words.width": 8,
    f"{TOK2VEC}.embed.*.words.rows": 200,
    f"{TOK2VEC}.embed.*.characters.width": 4,
    f"{TOK2VEC}.embed.*.characters.hidden": 4,
    f"{TOK2VEC}.encode.hidden": 8,
    f"{TOK2VEC}.encode.lstm_input_dropout": 0.1,
    f"{TOK2VEC}.encode.lstm_output_dropout": 0.1,
    "training.max_steps": 30,
    "training.eval_frequency": 15,
    "training.optimizer.learn_rate.initial_rate": 0.2,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with `train.spacy`, `dev.spacy`, and `model`, trained on them."""
    path = tmp_path_factory.mktemp("project")
    nlp = spacy.blank("en")
    for name, times in (("train", 15), ("dev", 2)):
        docs = [example.reference for example in make_examples(nlp, MARKED * times)]
        DocBin(docs=docs).to_disk(path / f"{name}.spacy")
    run_training(path, "model")
    return path


@pytest.fixture(scope="module")
def model(folder):
    return folder / "model" / "model-best"


def overrides(folder, **more):
    paths = {f"paths.{name}": str(folder / f"{name}.spacy") for name in ("train", "dev")}
    return {**SMALL, **paths, **more}


def run_training(folder, output, config=CONFIG, **more):
    torch.manual_seed(len(output))  # training must not depend on what ran before
    train(config, folder / output, overrides=overrides(folder, **more))


def command(*arguments, options=None):
    """Run one of spaCy's commands as its command line does; its output."""
    words = [str(word) for word in arguments]
    for name, value in (options or {}).items():
        words += [f"--{name}", str(value)]
    return succeed(CliRunner().invoke(app, words)).output


def files(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_training_from_the_config_learns(model):
    performance = srsly.read_json(model / "meta.json")["performance"]
    assert performance["ents_f"] > 0.5
    nlp = spacy.load(model)
    assert nlp.get_pipe("ner").labels == ("LOC", "ORG", "PER")
    assert sum(len(doc.ents) for doc in nlp.pipe(TEXTS)) > 5


def test_two_trainings_with_one_seed_write_the_same_bytes(folder, model):
    run_training(folder, "again")
    first, second = files(model), files(folder / "again" / "model-best")
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    run_training(folder, "other", **{"system.seed": 1})
    other = files(folder / "other" / "model-best")
    assert other["ner/model"] != first["ner/model"]


def test_evaluate_gives_the_scores_of_the_training(folder, model):
    scores = evaluate(model, folder / "dev.spacy", silent=True)
    performance = srsly.read_json(model / "meta.json")["performance"]
    assert scores["ents_f"] == pytest.approx(performance["ents_f"])
    assert set(scores["ents_per_type"]) == {"LOC", "ORG", "PER"}
    command("evaluate", model, folder / "dev.spacy", "--output", folder / "scores.json")
    assert srsly.read_json(folder / "scores.json")["ents_f"] == pytest.approx(scores["ents_f"])


def test_averages_of_the_weights_are_what_is_saved(folder, model):
    averaged = {"training.optimizer.use_averages": True}
    config = Config().from_disk(CONFIG, interpolate=False)
    config["training"]["optimizer"]["use_averages"] = False
    config.to_disk(folder / "averages.cfg")
    run_training(folder, "averages", folder / "averages.cfg", **averaged)
    found = [spacy.load(path / "model-best") for path in (folder / "model", folder / "averages")]
    heads = [nlp.get_pipe("ner").model.get_ref("head").shims[0].module for nlp in found]
    norms = [float(head.pair.weight.detach().norm()) for head in heads]
    assert 0.5 * norms[0] < norms[1] < norms[0]


def test_init_labels_writes_what_training_reads(folder):
    command("init", "labels", CONFIG, folder / "labels", options=overrides(folder))
    assert srsly.read_json(folder / "labels" / "ner.json") == ["LOC", "ORG", "PER"]
    config = Config().from_disk(CONFIG, interpolate=False)
    config["initialize"]["components"]["ner"] = {
        "labels": {"@readers": "spacy.read_labels.v1", "path": str(folder / "labels/ner.json")}
    }
    config.to_disk(folder / "labels.cfg")
    run_training(folder, "labelled", folder / "labels.cfg", **{"training.max_steps": 2})
    labelled = spacy.load(folder / "labelled" / "model-last")
    assert labelled.get_pipe("ner").labels == ("LOC", "ORG", "PER")


def test_trained_model_trains_on_with_its_own_optimizer(model):
    """The optimizer of a config resolves without the rest of it."""
    nlp = spacy.load(model)
    optimizer = nlp.resume_training()
    assert optimizer.learn_rate == SMALL["training.optimizer.learn_rate.initial_rate"]
    before = nlp.get_pipe("ner").model.to_bytes()
    nlp.update(make_examples(nlp), sgd=optimizer)
    assert nlp.get_pipe("ner").model.to_bytes() != before


@pytest.fixture(scope="module")
def filled(folder):
    """The config with spaCy's defaults written out, as `debug` wants it."""
    command("init", "fill-config", CONFIG, folder / "filled.cfg")
    return folder / "filled.cfg"


def test_debug_config_resolves_our_functions(folder, filled):
    output = command("debug", "config", filled, "--show-functions", options=overrides(folder))
    for name in ("PSABiLSTM.v1", "CRF.v1", "WordEmbed.v1", "SGD.v1", "inverse_decay.v1"):
        assert f"spacy-psa.{name}" in output
    assert "validation error" not in output


def test_debug_data_reads_the_corpus(folder, filled):
    output = command("debug", "data", filled, "--no-format", options=overrides(folder))
    assert "120 training docs" in output and "16 evaluation docs" in output


def test_filled_config_of_a_trained_model_trains_the_same(folder, model):
    """What a user gets who copies a model's config."""
    run_training(folder, "copied", model / "config.cfg")
    assert files(folder / "copied" / "model-best")["ner/model"] == files(model)["ner/model"]


LOAD_INSTALLED = """
import importlib, sys
assert importlib.import_module(sys.argv[1]).__file__.startswith(sys.argv[2])
del sys.argv[2]
"""


def test_packaged_and_installed_model_gives_the_same(folder, model):
    packages = folder / "packages"
    packages.mkdir()
    command(
        "package", model, packages, "--name", "psa_test", "--version", "1.2.3", "--build", "none"
    )
    (source,) = packages.iterdir()
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "-q"]
    offline = ["--no-deps", "--no-index"]
    build = [*pip, "wheel", *offline, "--no-build-isolation", "-w", folder / "wheels", source]
    subprocess.run(build, check=True, timeout=PATIENCE)
    (wheel,) = (folder / "wheels").iterdir()
    assert re.fullmatch(r"en_psa_test-1\.2\.3-py3-none-any\.whl", wheel.name)
    subprocess.run(
        [*pip, "install", *offline, "-t", folder / "site", wheel], check=True, timeout=PATIENCE
    )
    code = LOAD_INSTALLED + LOAD_AND_ANNOTATE
    path = os.pathsep.join(filter(None, [str(folder / "site"), os.getenv("PYTHONPATH")]))
    got = run_elsewhere(code, "en_psa_test", folder / "site", *TEXTS, PYTHONPATH=path)
    assert got == annotate(spacy.load(model), TEXTS)
    assert sum(map(len, got["entities"])) > 5


def test_packaged_model_requires_this_package(model):
    """So that pip brings the package with the model."""
    if importlib.metadata.distribution("spacy-psa").read_text("top_level.txt") is None:
        pytest.skip("spacy-psa is installed without top_level.txt, where spaCy looks it up")
    requirements = get_third_party_dependencies(spacy.util.load_config(model / "config.cfg"))
    assert [requirement.split(">")[0] for requirement in requirements] == ["spacy-psa"]
