"""A training that is killed, or finds a full disk, leaves what was saved and continues."""

import json
import os
import resource
import signal
import subprocess
import time
from functools import cache

import pytest
import spacy
import torch
from spacy.cli.train import train as spacy_train
from spacy.tokens import DocBin

from spacy_psa.errors import InputError
from spacy_psa.training.checkpoint import Checkpoints
from spacy_psa.training.model_folders import ModelFolders, exchange
from tests.helpers.patience import PATIENCE, wait_for
from tests.helpers.trainings import digests, killed_at, make_config, run, start_process


@pytest.fixture(scope="module")
def whole(tmp_path_factory, corpus):
    """The files of a training that was never killed, for each optimizer."""

    @cache
    def files(optimizer):
        folder = tmp_path_factory.mktemp("whole")
        found = digests(run(folder, make_config(corpus, optimizer)))
        assert "model-best/ner/model" in found and "log.jsonl" in found
        return found

    return files


@pytest.mark.parametrize(
    ("optimizer", "step"), [("sgd", 5), ("adam", 5), ("swa", 24), ("thinc", 24)]
)
def test_a_resumed_training_ends_with_the_same_files(
    tmp_path, monkeypatch, corpus, whole, optimizer, step
):
    config = make_config(corpus, optimizer)
    with killed_at(monkeypatch, step):
        run(tmp_path, config, save_every=5)
    run(tmp_path, config, save_every=5, resume=True)
    assert digests(tmp_path) == whole(optimizer)


def test_a_training_can_be_killed_again_and_again(tmp_path, monkeypatch, corpus, whole):
    config = make_config(corpus, "adam")
    for step in (8, 16, 24):
        with killed_at(monkeypatch, step):
            run(tmp_path, config, resume=True)
    assert digests(run(tmp_path, config, resume=True)) == whole("adam")


def test_a_sigkill_at_any_moment_is_survived(tmp_path, corpus, whole):
    config, options = make_config(corpus, "adam"), {"resume": True, "save_every": 1}
    for least in (3, 17):
        process = start_process(run_up_to, least + 5, tmp_path, config, options)
        while process.is_alive():
            saved = (tmp_path / "checkpoints").glob("step-*.pt")
            if max((int(path.stem[5:]) for path in saved), default=0) >= least:
                process.kill()
            time.sleep(0.005)
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert digests(run(tmp_path, config, **options)) == whole("adam")


def run_up_to(last, folder, config, options):
    """Train, but wait after a step, since whoever kills this process may be slow."""
    save = Checkpoints.save

    def save_and_wait(self, step, state):
        save(self, step, state)
        if step == last:
            time.sleep(PATIENCE)

    Checkpoints.save = save_and_wait
    run(folder, config, **options)


def test_it_is_spacys_training(tmp_path, corpus):
    ours = run(tmp_path / "ours", make_config(corpus, "thinc"))
    config = make_config(corpus, "thinc")
    config["training"]["logger"]["output_file"] = None
    config.to_disk(tmp_path / "config.cfg")
    spacy_train(tmp_path / "config.cfg", tmp_path / "spacy")
    for model in ("model-best", "model-last"):
        theirs = (tmp_path / "spacy" / model / "ner" / "model").read_bytes()
        assert (ours / model / "ner" / "model").read_bytes() == theirs


def written(folder):
    """When the model was written, and its log."""
    model = (folder / "model-last" / "ner" / "model").stat().st_mtime_ns
    return model, (folder / "log.jsonl").read_text()


def test_a_finished_training_is_not_begun_again_until_it_is_asked_for(tmp_path, corpus, capsys):
    config = make_config(corpus, max_steps=8)
    before = written(run(tmp_path, config))
    run(tmp_path, config, resume=True)
    assert written(tmp_path) == before
    assert "is finished" in capsys.readouterr().out
    run(tmp_path, config)
    assert written(tmp_path)[0] > before[0]


def test_a_finished_training_is_begun_again_with_another_config(tmp_path, corpus, capsys):
    before = written(run(tmp_path, make_config(corpus, max_steps=8)))
    run(tmp_path, make_config(corpus, max_steps=9), resume=True)
    assert "Starting again" in (said := capsys.readouterr().out)
    assert "max_steps of [training]" in said
    assert written(tmp_path)[0] > before[0]


def test_a_finished_training_is_begun_again_with_other_data(tmp_path, corpus, capsys):
    data = tmp_path / "train.spacy"
    data.write_bytes(corpus.read_bytes())
    config = make_config(data, max_steps=8)
    before = written(run(tmp_path / "out", config))
    data.write_bytes(other_corpus(corpus))
    run(tmp_path / "out", config, resume=True)
    assert f"{data} has changed" in capsys.readouterr().out
    assert written(tmp_path / "out")[0] > before[0]


def other_corpus(corpus):
    """A corpus without the last documents."""
    docs = list(DocBin().from_disk(corpus).get_docs(spacy.blank("en").vocab))
    return DocBin(docs=docs[:-3]).to_bytes()


def test_without_resume_a_training_starts_again(tmp_path, monkeypatch, corpus, whole):
    config = make_config(corpus)
    with killed_at(monkeypatch, 8):
        run(tmp_path, config)
    assert digests(run(tmp_path, config)) == whole("sgd")


def test_a_checkpoint_of_another_config_is_refused_and_stays(tmp_path, monkeypatch, corpus):
    with killed_at(monkeypatch, 8):
        run(tmp_path, make_config(corpus))
    before = digests(tmp_path)
    config = make_config(corpus)
    config["training"]["batcher"]["size"] = 4
    with pytest.raises(InputError, match=r"checkpoints.*\[training.batcher\].*--resume"):
        run(tmp_path, config, resume=True)
    assert digests(tmp_path) == before


def test_a_checkpoint_of_other_data_is_refused_and_stays(tmp_path, monkeypatch, corpus):
    data, out = tmp_path / "train.spacy", tmp_path / "out"
    data.write_bytes(corpus.read_bytes())
    with killed_at(monkeypatch, 8):
        run(out, make_config(data))
    before = digests(out)
    data.write_bytes(other_corpus(corpus))
    with pytest.raises(InputError, match=r"train.spacy differs"):
        run(out, make_config(data), resume=True)
    assert digests(out) == before


def test_a_truncated_checkpoint_falls_back_to_the_one_before(tmp_path, monkeypatch, corpus, whole):
    config = make_config(corpus)
    with killed_at(monkeypatch, 16):
        run(tmp_path, config)
    *_, last = sorted((tmp_path / "checkpoints").glob("step-*.pt"))
    last.write_bytes(last.read_bytes()[:1000])
    assert digests(run(tmp_path, config, resume=True)) == whole("sgd")


def test_checkpoints_hold_no_pickled_objects(tmp_path, monkeypatch, corpus):
    with killed_at(monkeypatch, 8):
        run(tmp_path, make_config(corpus))
    for path in (tmp_path / "checkpoints").glob("step-*.pt"):
        assert torch.load(path, weights_only=True)["step"] in (0, 8)


def test_the_last_two_checkpoints_are_kept_and_no_other_file(tmp_path, monkeypatch, corpus):
    with killed_at(monkeypatch, 24):
        run(tmp_path, make_config(corpus), save_every=3)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-000000021.pt", "step-000000024.pt"]


def test_checkpoints_that_cannot_be_read_are_an_error(tmp_path, monkeypatch, corpus):
    with killed_at(monkeypatch, 0):
        run(tmp_path, make_config(corpus))
    for path in (tmp_path / "checkpoints").iterdir():
        path.write_bytes(b"")
    with pytest.raises(InputError, match="no checkpoint can be read: remove the folder"):
        Checkpoints(tmp_path).load()


def test_the_log_of_a_resumed_training_has_each_evaluation_once(tmp_path, monkeypatch, corpus):
    config = make_config(corpus)
    with killed_at(monkeypatch, 16):
        run(tmp_path, config)
    run(tmp_path, config, resume=True)
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [0, 8, 16, 24]


def test_a_second_training_in_the_folder_is_an_error_until_the_first_has_ended(tmp_path, corpus):
    config = make_config(corpus)
    first = start_process(run, tmp_path, make_config(corpus, max_steps=100_000))
    try:
        wait_for(lambda: list(tmp_path.glob("checkpoints/step-*.pt")))
        with pytest.raises(InputError, match="another process trains in this folder"):
            run(tmp_path, config)
    finally:  # else the tests would never end
        first.kill()
        first.join()
    assert (run(tmp_path, config) / "model-last").is_dir()


class MountedDisk:
    """A small file system of its own."""

    def __init__(self, folder):
        self.folder = folder

    def fill(self):
        with (self.folder / "filler").open("wb") as file, pytest.raises(OSError, match="space"):
            while True:
                os.write(file.fileno(), bytes(1 << 16))

    def free(self):
        (self.folder / "filler").unlink()


class LimitedDisk:
    """A folder in which no file may grow, for those who may not mount."""

    def __init__(self, folder):
        self.folder = folder
        self.limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, self.limits[1]))

    def free(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, self.limits)


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        limited = LimitedDisk(folder)
        yield limited
        limited.free()
        return
    yield MountedDisk(folder)
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("saver", [ModelFolders, Checkpoints])
def test_a_full_disk_leaves_what_was_saved_and_the_training_goes_on_later(
    disk, monkeypatch, corpus, whole, saver
):
    config = make_config(corpus)
    save, calls = saver.save, []

    def save_on_a_full_disk(self, *arguments, **options):
        calls.append(arguments)
        if len(calls) == 3:  # at step 16
            disk.fill()
        save(self, *arguments, **options)

    out = disk.folder / "out"
    with monkeypatch.context() as patched, pytest.raises(InputError) as error:
        patched.setattr(saver, "save", save_on_a_full_disk)
        run(out, config)
    disk.free()
    message = str(error.value)
    assert "No space left on device" in message or "File too large" in message
    assert "\n" not in message
    assert len(spacy.load(out / "model-best")("Ada met Bob ."))
    assert len(spacy.load(out / "model-last")("Ada met Bob ."))
    assert Checkpoints(out).load()["step"] == 8
    assert {path.name for path in out.iterdir()} == {
        "checkpoints",
        "log.jsonl",
        "model-best",
        "model-last",
    }
    assert not list((out / "checkpoints").glob(".*"))
    assert digests(run(out, config, resume=True)) == whole("sgd")


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
