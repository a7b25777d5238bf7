"""`spacy-psa annotate --engine ray`: files in, files out, on workers that may be killed."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import spacy

from tests.helpers.commands import assert_one_error, command
from tests.helpers.patience import PATIENCE, wait_for

run = command("annotate")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "LOC", "pattern": "London"}])
    path = tmp_path_factory.mktemp("model") / "names"
    nlp.to_disk(path)
    return path


def put(folder, name, *rows):
    folder.mkdir(exist_ok=True)
    text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    (folder / name).write_text(text)


def arguments(model, folder, *options):
    ray = ("--engine", "ray", "--n-process", 2)
    return [str(each) for each in (model, folder / "in", folder / "out", *ray, *options)]


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "spacy_psa", "annotate", *words], stderr=subprocess.PIPE, text=True
    )


def ids(folder):
    lines = [line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    return Counter(json.loads(line)["id"] for line in lines)


# Before Ray is started


def test_without_the_extra_the_error_says_what_to_install(model, tmp_path, monkeypatch):
    for name in ("spacy_psa.annotation.ray_engine", "ray"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoRay(), *sys.meta_path])
    result = run(*arguments(model, tmp_path))
    assert_one_error(result, "--engine ray needs Ray: pip install 'spacy-psa[ray]'")


class NoRay:
    """Finds no Ray, as on a machine without it."""

    def find_spec(self, name, path=None, target=None):
        if name == "ray":
            raise ModuleNotFoundError("No module named 'ray'", name="ray")


def test_options_that_do_not_fit_the_engine_are_errors(model, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'spacy-psa[ray]'")
    put(tmp_path / "in", "a.txt", "in London\n")
    for options, reason in [
        (["--format", "html"], "--format html: --engine ray writes jsonl and parquet"),
        (["--gpu-id", "0"], "--gpu-id 0: --engine ray annotates on CPUs"),
        (["--text-key", "ents"], "--text-key ents"),
        (["--n-process", "0"], "--n-process 0"),
    ]:
        assert_one_error(run(*arguments(model, tmp_path, *options)), reason)
    ray = ("--engine", "ray")
    assert_one_error(run(model, "-", tmp_path / "out", *ray), "needs a file or a folder, not -")
    assert_one_error(run(model, tmp_path / "no", tmp_path / "out", *ray), "there is no such file")
    assert_one_error(run(model, tmp_path / "in", tmp_path / "in", *ray), "contains the input")


def test_one_machine_without_ray_says_what_needs_ray(model, tmp_path):
    put(tmp_path, "a.txt", "in London\n")
    put(tmp_path, "a.parquet", "")
    out = tmp_path / "out.jsonl"
    assert_one_error(
        run(model, tmp_path / "a.parquet", out), "Parquet is only read with --engine ray"
    )
    result = run(model, tmp_path / "a.txt", tmp_path / "a.parquet")
    assert_one_error(result, "Parquet is only written with --engine ray")
    result = run(model, tmp_path / "a.txt", out, "--address", "auto")
    assert_one_error(result, "--address auto: is for --engine ray")


def test_a_run_that_is_finished_starts_nothing(model, tmp_path, monkeypatch):
    ray_engine = pytest.importorskip("spacy_psa.annotation.ray_engine", exc_type=ImportError)
    monkeypatch.setattr(ray_engine, "annotate_shards", None)
    put(tmp_path / "in", "a.txt", "in London\n")
    put(tmp_path / "out", "a.jsonl", "mine\n")
    result = run(*arguments(model, tmp_path))
    assert result.exit_code == 0 and "1 finished shards kept" in result.stderr
    assert (tmp_path / "out" / "a.jsonl").read_text() == "mine\n"


# With workers


def test_good_shards_are_finished_beside_bad_ones(model, tmp_path, monkeypatch):
    """By an own cluster, whose workers would otherwise give way to all other processes."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'spacy-psa[ray]'")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    put(tmp_path / "in", "a.jsonl", {"id": 1, "text": "in London"}, "no\n")
    put(
        tmp_path / "in", "b.jsonl", {"id": 2, "text": "in London"}, {"id": 3, "text": "x" * 1000001}
    )
    process = start(*arguments(model, tmp_path))
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2 and "Traceback" not in said
    assert "not finished: a.jsonl:2: not JSON" in said
    assert "b.jsonl:2: not annotated: ValueError" in said
    assert "1 of 2 shards were not finished" in said.splitlines()[-1]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["b.jsonl"]
    assert ids(tmp_path / "out") == {2: 1}


def processes(name, session):
    """The processes of a session whose command begins with a name."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode()
            group = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
        except OSError:
            continue
        if command.startswith(name) and group == session:
            found.append(int(folder.name))
    return found


SHARDS, SIZE = 12, 800


def put_many(folder):
    """Shards that take some time, with numbered documents."""
    for shard in range(SHARDS):
        numbers = range(shard * SIZE, (shard + 1) * SIZE)
        rows = [{"id": number, "text": "They went to London. " * 10} for number in numbers]
        put(folder, f"{shard:02}.jsonl", *rows)


@pytest.mark.usefixtures("on_ray")
def test_a_run_that_is_told_to_end_leaves_nothing_half_written(model, tmp_path):
    put_many(tmp_path / "in")
    process = start(*arguments(model, tmp_path))
    wait_for(lambda: list((tmp_path / "out").glob(".*.tmp")))
    process.terminate()
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM and "Traceback" not in said
    assert all(path.suffix == ".jsonl" for path in (tmp_path / "out").iterdir())


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at /proc")
def test_nothing_is_lost_or_doubled_when_a_worker_and_then_the_driver_are_killed(
    model, tmp_path, on_ray
):
    put_many(tmp_path / "in")
    out = tmp_path / "out"
    words = arguments(model, tmp_path)
    driver = subprocess.Popen(
        [sys.executable, "-m", "spacy_psa", "annotate", *words], stderr=subprocess.DEVNULL
    )

    def at_work():
        return list(out.glob(".*.tmp")) and processes("ray::MapWorker", on_ray)

    os.kill(wait_for(at_work)[0], signal.SIGKILL)
    before = len(list(out.glob("*.jsonl")))
    wait_for(lambda: len(list(out.glob("*.jsonl"))) > before and at_work())
    driver.kill()
    driver.wait()
    wait_for(lambda: not processes("ray::MapWorker", on_ray))
    kept = {path: path.stat().st_mtime_ns for path in out.glob("*.jsonl")}
    assert 0 < len(kept) < SHARDS
    assert all(len(path.read_text().splitlines()) == SIZE for path in kept)

    process = start(*words)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert f"{len(kept)} finished shards kept" in said
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    assert ids(out) == dict.fromkeys(range(SHARDS * SIZE), 1)
    assert len(list(out.iterdir())) == SHARDS  # and nothing that was left half-written
