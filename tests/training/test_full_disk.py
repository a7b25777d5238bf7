"""A disk that is full leaves what was saved before, and one error."""

import os
import resource
import subprocess

import pytest
import spacy

from spacy_psa.errors import InputError
from spacy_psa.training.checkpoint import Checkpoints
from spacy_psa.training.model_folders import ModelFolders
from tests.helpers.trainings import digests, make_config, run


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


@pytest.fixture(params=["mounted", "limited"])
def disk(request, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "limited":
        limited = LimitedDisk(folder)
        yield limited
        limited.free()
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("may not mount a file system")
    yield MountedDisk(folder)
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("saver", [ModelFolders, Checkpoints])
def test_a_full_disk_leaves_what_was_saved_and_the_training_goes_on_later(
    disk, tmp_path, monkeypatch, corpus, saver
):
    config = make_config(corpus)
    whole = digests(run(tmp_path / "whole", config))
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
    assert digests(run(out, config, resume=True)) == whole
