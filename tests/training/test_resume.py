"""A training that is killed and resumed ends as one that never was."""

import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import spacy
import torch
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from thinc.api import Config

from spacy_psa.errors import InputError
from spacy_psa.training import loop
from spacy_psa.training.checkpoint import Checkpoints
from spacy_psa.training.model_folders import ModelFolders, exchange
from tests.helpers.pipelines import (
    MARKED,
    hash_embed,
    make_examples,
    small_encoder,
    small_model,
)

BASE = Path(__file__).parents[2] / "configs" / "ner" / "psa.cfg"
OPTIMIZERS = {
    "sgd": {"@optimizers": "spacy-psa.SGD.v1", "learn_rate": 0.1, "use_averages": True},
    "adam": {
        "@optimizers": "spacy-psa.Adam.v1",
        "learn_rate": {
            "@schedules": "spacy-psa.triangular.v1",
            "max_rate": 0.01,
            "total_steps": 30,
        },
    },
    "thinc": {"@optimizers": "Adam.v1", "learn_rate": 0.01, "use_averages": True},
}


def make_config(optimizer="sgd", **training):
    config = load_config(BASE)
    model = small_model(encoder=small_encoder(lstm_input_dropout=0.3))
    embedders = model["tok2vec"]["embed"]["*"]
    embedders["words"]["replace_rare"] = True  # which counts words as it trains
    embedders["hashes"] = hash_embed()  # whose parameters are thinc's
    config["components"]["ner"]["model"] = model
    config["training"].update(max_steps=30, max_epochs=0, eval_frequency=8, patience=0, dropout=0.1)
    config["training"]["batcher"] = {
        "@batchers": "spacy-psa.bucket_by_length.v1",
        "size": 3,
        "buffer": 6,
    }
    config["training"]["logger"]["output_file"] = "log.jsonl"
    config["training"]["optimizer"] = OPTIMIZERS[optimizer]
    config["training"].update(training)
    return config


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "train.spacy"
    nlp = spacy.blank("en")
    DocBin(docs=[eg.reference for eg in make_examples(nlp, MARKED * 3)]).to_disk(path)
    return path


@pytest.fixture
def start(tmp_path, monkeypatch, corpus):
    """Start a training in a folder of its own."""

    def run(name, config, **options):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        nlp = init_nlp(on(corpus, config))
        loop.train(nlp, folder, **options)
        return folder

    return run


def on(corpus, config):
    """A config that trains on a corpus."""
    corpora = {name: {"path": str(corpus)} for name in ("train", "dev")}
    return Config(config).merge({"corpora": corpora})


class Killed(BaseException):
    pass


def kill_at(monkeypatch, step):
    """Let the training stop after the checkpoint of a step, as a kill would."""
    save = Checkpoints.save

    def save_and_die(self, now, state):
        save(self, now, state)
        if now == step:
            raise Killed

    monkeypatch.setattr(Checkpoints, "save", save_and_die)


def digests(folder):
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "meta.json"]
    return {
        str(path.relative_to(folder)): hashlib.md5(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("step", [5, 24])
def test_a_resumed_training_ends_with_the_same_files(start, monkeypatch, optimizer, step):
    config = make_config(optimizer)
    whole = digests(start("whole", config, save_every=5))
    with monkeypatch.context() as patched:
        kill_at(patched, step)
        with pytest.raises(Killed):
            start("killed", config, save_every=5)
    assert digests(start("killed", config, save_every=5, resume=True)) == whole
    assert "model-best/ner/model" in whole and "log.jsonl" in whole


def test_a_training_can_be_killed_again_and_again(start, monkeypatch):
    config = make_config("adam")
    whole = digests(start("whole", config))
    for step in (8, 16, 24):
        with monkeypatch.context() as patched:
            kill_at(patched, step)
            with pytest.raises(Killed):
                start("killed", config, resume=True)
    assert digests(start("killed", config, resume=True)) == whole


def test_it_is_spacys_training(start, corpus, tmp_path):
    ours = start("ours", make_config("thinc"))
    config = on(corpus, make_config("thinc"))
    config["training"]["logger"]["output_file"] = None
    config.to_disk(tmp_path / "config.cfg")
    command = [sys.executable, "-m", "spacy", "train", "config.cfg", "-o", "spacy"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    for model in ("model-best", "model-last"):
        theirs = (tmp_path / "spacy" / model / "ner" / "model").read_bytes()
        assert (ours / model / "ner" / "model").read_bytes() == theirs


def test_a_sigkill_at_any_moment_is_survived(tmp_path, corpus):
    config = make_config("adam", max_steps=120, eval_frequency=20)
    config = on(corpus, config)
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        config.to_disk(tmp_path / name / "config.cfg")
    command = [sys.executable, "-m", "spacy_psa", "train", "config.cfg", "-o", "."]
    subprocess.run(command, check=True, cwd=tmp_path / "whole", capture_output=True)
    command += ["--resume", "--save-every", "1"]
    folder = tmp_path / "killed" / "checkpoints"
    for least in (10, 60):
        process = subprocess.Popen(
            command, cwd=tmp_path / "killed", stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        while process.poll() is None:
            steps = [int(path.stem[5:]) for path in folder.glob("step-*.pt")]
            if max(steps, default=0) >= least:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.005)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    subprocess.run(command, check=True, cwd=tmp_path / "killed", capture_output=True)
    assert digests(tmp_path / "killed") == digests(tmp_path / "whole")


def test_a_complete_training_is_not_begun_again(start, monkeypatch):
    folder = start("one", make_config())
    before = (folder / "model-last" / "ner" / "model").stat().st_mtime_ns
    start("one", make_config(), resume=True)
    assert (folder / "model-last" / "ner" / "model").stat().st_mtime_ns == before
    start("one", make_config())
    assert (folder / "model-last" / "ner" / "model").stat().st_mtime_ns > before


def test_without_resume_a_training_starts_again(start, monkeypatch):
    config = make_config()
    whole = digests(start("whole", config))
    with monkeypatch.context() as patched:
        kill_at(patched, 8)
        with pytest.raises(Killed):
            start("killed", config)
    assert digests(start("killed", config)) == whole


def test_another_config_is_refused(start, monkeypatch):
    with monkeypatch.context() as patched:
        kill_at(patched, 8)
        with pytest.raises(Killed):
            start("killed", make_config())
    with pytest.raises(InputError, match=r"\[training.batcher\].*--resume"):
        config = make_config()
        config["training"]["batcher"]["size"] = 4
        start("killed", config, resume=True)


def test_a_truncated_checkpoint_falls_back_to_the_one_before(start, monkeypatch):
    config = make_config()
    whole = digests(start("whole", config))
    with monkeypatch.context() as patched:
        kill_at(patched, 16)
        with pytest.raises(Killed):
            start("killed", config)
    *_, last = sorted(Path("checkpoints").glob("step-*.pt"))
    last.write_bytes(last.read_bytes()[:1000])
    assert digests(start("killed", config, resume=True)) == whole


def test_checkpoints_hold_no_pickled_objects(start, monkeypatch):
    with monkeypatch.context() as patched:
        kill_at(patched, 8)
        with pytest.raises(Killed):
            start("killed", make_config())
    for path in Path("checkpoints").glob("step-*.pt"):
        assert torch.load(path, weights_only=True)["step"] in (0, 8)


def test_the_last_two_checkpoints_are_kept_and_no_other_file(start, monkeypatch):
    with monkeypatch.context() as patched:
        kill_at(patched, 24)
        with pytest.raises(Killed):
            start("killed", make_config(), save_every=3)
    names = sorted(path.name for path in Path("checkpoints").iterdir())
    assert names == ["step-000000021.pt", "step-000000024.pt"]


def test_an_infinite_loss_stops_and_names_the_batch(start, monkeypatch):
    from spacy_psa.pipeline.chain.ner import CRFEntityRecognizer

    get_loss, calls = CRFEntityRecognizer.get_loss, itertools.count()

    def explode(self, examples, scores):
        loss, gradients = get_loss(self, examples, scores)
        return (float("nan") if next(calls) == 12 else loss), gradients

    monkeypatch.setattr(CRFEntityRecognizer, "get_loss", explode)
    with pytest.raises(InputError, match=r"step 12: the loss of ner is nan.*The batch has 3"):
        start("one", make_config())
    assert (Path.cwd() / "model-best").is_dir()
    assert Checkpoints(Path.cwd()).load()["step"] == 8


def test_a_full_disk_leaves_the_last_checkpoint_and_one_error(start, monkeypatch):
    replace, calls = os.replace, itertools.count()

    def full(source, target):
        if "step-" in str(target) and next(calls) == 1:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="No space left on device"):
        start("one", make_config())
    assert [path.name for path in Path("checkpoints").iterdir()] == ["step-000000000.pt"]


def test_models_change_their_names_in_one_step(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not exchange(tmp_path / "one", tmp_path / "other"):
        pytest.skip("the file system cannot exchange two folders")
    assert (tmp_path / "one" / "other").exists()


@pytest.mark.parametrize("swaps", [True, False])
def test_a_model_replaces_the_one_before(tmp_path, monkeypatch, swaps):
    if not swaps:
        monkeypatch.setattr("spacy_psa.training.model_folders.exchange", lambda *_: False)
    folders = ModelFolders(tmp_path)
    for lang in ("en", "de"):
        folders.save(spacy.blank(lang), is_best=lang == "en")
    assert spacy.load(folders.best).lang == "en"
    assert spacy.load(folders.last).lang == "de"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model-best", "model-last"]


def test_a_kill_between_two_renames_is_repaired(tmp_path):
    folders = ModelFolders(tmp_path)
    folders.save(spacy.blank("en"), is_best=True)
    folders.best.rename(tmp_path / ".model-best.old")
    (tmp_path / ".model-last.new").mkdir()
    folders.repair()
    assert spacy.load(folders.best).lang == "en"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model-best", "model-last"]


def test_the_log_of_a_resumed_training_has_each_evaluation_once(start, monkeypatch):
    config = make_config()
    with monkeypatch.context() as patched:
        kill_at(patched, 16)
        with pytest.raises(Killed):
            start("killed", config)
    folder = start("killed", config, resume=True)
    steps = [json.loads(line)["step"] for line in (folder / "log.jsonl").read_text().splitlines()]
    assert steps == [0, 8, 16, 24]
