"""The runner of the jobs for a GPU, with jobs that need none."""

import json
import tarfile
import time

import pytest

from benchmarks.gpu.run import Runner, main, read_jobs
from benchmarks.record import FOLDER
from spacy_psa.errors import InputError
from spacy_psa.experiments.plan import read_plan
from tests.helpers.paths import CONFIGS

JOBS = """
[jobs.first]
command = "timeit -n 1 -r 1 pass"
alone = true

[jobs.broken]
command = "no_such_module"

[jobs.long]
command = "timeit -n 1 -r 1 'import time; time.sleep(600)'"
"""


def runner(tmp_path, text, seconds):
    (tmp_path / "jobs.toml").write_text(text)
    for name in ("out", "work"):
        (tmp_path / name).mkdir(exist_ok=True)
    jobs = read_jobs(tmp_path / "jobs.toml")
    end = time.monotonic() + 30 + seconds  # the last 30 seconds are to stop in
    return Runner(jobs, tmp_path / "out", tmp_path / "work", -1, end)


def states(tmp_path):
    with tarfile.open(tmp_path / "out" / "records.tar.gz") as archive:
        kept = json.load(archive.extractfile("jobs.json"))
    return {job["name"]: job["state"] for job in kept["jobs"]}


def test_jobs_end_by_themselves_or_at_the_end_of_the_time(tmp_path):
    assert not runner(tmp_path, JOBS, seconds=5).run()
    assert states(tmp_path) == {"first": "done", "broken": "failed", "long": "stopped"}
    with tarfile.open(tmp_path / "out" / "records.tar.gz") as archive:
        printed = archive.extractfile("broken.txt").read()
    assert b"No module named no_such_module" in printed


def test_finished_jobs_are_left_out_when_it_goes_on(tmp_path):
    runner(tmp_path, JOBS, seconds=5).run()
    again = runner(tmp_path, JOBS.replace("600", "0").replace("no_such_module", "this"), seconds=60)
    (tmp_path / "work" / "first.txt").unlink()
    assert again.run()
    assert set(states(tmp_path).values()) == {"done"}
    assert not (tmp_path / "work" / "first.txt").exists()


def test_a_job_without_a_command_is_one_error(tmp_path):
    (tmp_path / "jobs.toml").write_text("[jobs.one]\nalone = true\n")
    with pytest.raises(InputError, match="needs a command"):
        read_jobs(tmp_path / "jobs.toml")


@pytest.mark.parametrize("name", ["speed", "ner", "parser"])
def test_the_plans_of_the_jobs_can_be_read(name, tmp_path, monkeypatch):
    for corpus in ("conll2003", "wsj_trees"):
        (tmp_path / "corpus" / corpus).mkdir(parents=True)
        for part in ("train", "dev", "test"):
            (tmp_path / "corpus" / corpus / f"{part}.spacy").touch()
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    assert read_plan(FOLDER / "gpu" / f"{name}.toml").runs
    jobs = read_jobs(FOLDER / "gpu" / "jobs.toml")
    assert any(f"benchmarks/gpu/{name}.toml" in job.command for job in jobs)


def test_it_has_a_command_line(monkeypatch, tmp_path):
    (tmp_path / "jobs.toml").write_text("[jobs.first]\ncommand = 'this'\n")
    words = [tmp_path / "jobs.toml", tmp_path / "out", "--work", tmp_path / "work"]
    monkeypatch.setattr("sys.argv", ["run", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
