"""The runner of the jobs for a GPU, with jobs that need none."""

import importlib
import json
import os
import subprocess
import tarfile
import time
from functools import partial
from pathlib import Path

import pytest
import safetensors.torch
import spacy
import torch
from thinc.api import Config

from benchmarks.gpu import keep, kernels, pack, parts, speed, timed, without
from benchmarks.gpu.run import LAST, Runner, main, read_jobs
from benchmarks.gpu.without import WITHOUT
from benchmarks.record import FOLDER, read_record
from spacy_psa.corpora.docbin import write_docbin
from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.plan import read_plan
from spacy_psa.pipeline import overlap
from tests.helpers.paths import CONFIGS
from tests.helpers.pipelines import make_examples
from tests.helpers.quick_python import PYTHON

JOBS = """
[jobs.first]
command = "timeit -n 1 -r 1 pass"
alone = true

[jobs.broken]
command = "no_such_module"

[jobs.long]
command = "timeit -n 1 -r 1 'import time; time.sleep(600)'"
"""


class RunnerToTheFailure(Runner):
    """A runner whose time is over when a job has failed, however slow the machine is."""

    def _last_line(self, job):
        self.end = 0.0
        return super()._last_line(job)


def runner(tmp_path, text, kind=Runner):
    (tmp_path / "jobs.toml").write_text(text)
    for name in ("out", "work"):
        (tmp_path / name).mkdir(exist_ok=True)
    jobs = read_jobs(tmp_path / "jobs.toml")
    return kind(jobs, tmp_path / "out", tmp_path / "work", -1, time.monotonic() + LAST + 600)


def states(tmp_path):
    with tarfile.open(tmp_path / "out" / "records.tar.gz") as archive:
        kept = json.load(archive.extractfile("jobs.json"))
    return {job["name"]: job["state"] for job in kept["jobs"]}


def test_jobs_end_by_themselves_or_at_the_end_of_the_time(tmp_path, capsys):
    assert not runner(tmp_path, JOBS, RunnerToTheFailure).run()
    assert states(tmp_path) == {"first": "done", "broken": "failed", "long": "stopped"}
    with tarfile.open(tmp_path / "out" / "records.tar.gz") as archive:
        printed = archive.extractfile("broken.txt").read()
    assert b"No module named no_such_module" in printed
    assert "No module named no_such_module" in capsys.readouterr().out


def test_finished_jobs_are_left_out_when_it_goes_on(tmp_path):
    runner(tmp_path, JOBS, RunnerToTheFailure).run()
    again = runner(tmp_path, JOBS.replace("600", "0").replace("no_such_module", "this"))
    (tmp_path / "work" / "first.txt").unlink()
    assert again.run()
    assert set(states(tmp_path).values()) == {"done"}
    assert not (tmp_path / "work" / "first.txt").exists()


def test_a_job_without_a_command_is_one_error(tmp_path):
    (tmp_path / "jobs.toml").write_text("[jobs.one]\nalone = true\n")
    with pytest.raises(InputError, match="needs a command"):
        read_jobs(tmp_path / "jobs.toml")


def test_a_job_is_told_the_time_that_is_left(tmp_path):
    job = "[jobs.one]\ncommand = \"timeit -n 1 -r 1 'print({seconds})'\"\n"
    assert runner(tmp_path, job).run()
    left = int((tmp_path / "work" / "one.txt").read_text().split()[0])
    assert 500 < left <= 600


@pytest.mark.parametrize("name", ["ner", "parser"])
def test_the_plans_of_the_long_jobs_can_be_read(name):
    assert read_plan(FOLDER / "gpu" / f"{name}.toml").runs
    jobs = read_jobs(FOLDER / "gpu" / "long.toml")
    assert any(f"benchmarks/gpu/{name}.toml" in job.command for job in jobs)


def test_the_jobs_name_each_run_and_seed_of_their_plan_once():
    plan = read_plan(FOLDER / "gpu" / "timed.toml")
    asked = []
    for name in ("jobs", "ontonotes", "tener_and_parser", "pretrained", "pretrained_tasks"):
        jobs = read_jobs(FOLDER / "gpu" / f"{name}.toml")
        timed = [job.command.split() for job in jobs if ".timed " in job.command]
        assert all(f"--beside {len(timed)}" in " ".join(words) for words in timed)
        asked += [(run, int(seed)) for _, _, run, seed, *_ in timed]
    assert sorted(asked) == sorted((run.name, seed) for run in plan.runs for seed in run.seeds)


def test_a_training_needs_the_corpora_of_its_run_alone(tmp_path, monkeypatch):
    corpus = tmp_path / "corpus" / "wsj_trees"
    corpus.mkdir(parents=True)
    for part in ("train", "dev", "test"):
        (corpus / f"{part}.spacy").touch()
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    plan = FOLDER / "gpu" / "timed.toml"
    config, test = timed.training_of(plan, "parser_small_batch", 1, tmp_path / "out")
    assert config["components"]["parser"]["model"]["tok2vec"]["encode"]["hidden"] == 500
    assert test.exists()
    with pytest.raises(InputError, match="conll2003"):
        timed.training_of(plan, "tener", 1, tmp_path / "out")


PLAN = """
seeds = [1]

[paths]
train = "{data}/train.spacy"
dev = "{data}/dev.spacy"
test = "{data}/dev.spacy"

[runs.small]
config = "{configs}/ner/best.cfg"
final = true

[runs.small.overrides]
"training.max_steps" = 40
"training.eval_frequency" = 10
"components.ner.model.tok2vec.width" = 8
"components.ner.model.tok2vec.tok2vec.encode.hidden" = 8
"""


@pytest.fixture
def plan(tmp_path):
    docs = [eg.reference for eg in make_examples(spacy.blank("en"))] * 10
    for part in ("train", "dev"):
        write_docbin(docs, tmp_path / f"{part}.spacy")
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.format(data=tmp_path, configs=CONFIGS))
    return path


def test_a_training_ends_after_its_steps_and_is_a_record(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(timed, "PROBE", 6)
    monkeypatch.setattr(timed, "FIRST", 3)
    words = [plan, "small", "1", tmp_path / "work" / "small", "--steps", "20", "--gpu-id", "-1"]
    monkeypatch.setattr("sys.argv", ["timed", *map(str, words)])
    timed.main()
    found = json.loads((tmp_path / "work" / "small" / "timed.json").read_text())
    assert [row["step"] for row in found["evaluations"]] == [14, 17, 20]
    assert found["steps"] == found["config"]["training"]["max_steps"] == 20
    assert found["dev"] == max(row["score"] for row in found["evaluations"])
    assert found["test"] == found["dev"]  # of the same data
    spacy.load(tmp_path / "work" / "small" / "model-best")

    monkeypatch.setattr("benchmarks.record.FOLDER", tmp_path)
    archive = tmp_path / "records.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        opened.add(tmp_path / "work" / "small" / "timed.json", "small/timed.json")
    keep.keep(archive, "0123456", "")
    record = read_record(tmp_path / "gpu" / "results" / "small-1.json")
    assert record["commit"] == "0123456" and record["seed"] == 1
    assert record["results"]["test"] == found["test"]


def test_a_run_that_the_plan_does_not_have_is_one_error(plan, tmp_path):
    with pytest.raises(InputError, match="has no final run 'large'"):
        timed.training_of(plan, "large", 1, tmp_path)


def test_the_number_of_steps_fits_the_time():
    clock = timed.Clock(time.monotonic(), timed.GRACE + 100, most=10_000)
    planned = clock.steps(0.1, 1.0, done=0)  # four evaluations take a second each
    assert 900 < planned * timed.SLOWER < 1000
    assert clock.steps(0.001, 0.0, done=0) == 10_000
    assert clock.steps(1.0, 100.0, done=7) == 8
    assert timed.Clock(0.0, None, most=5).steps(1.0, 1.0, done=0) == 5
    assert timed.Clock(0.0, 1.0, most=5).over and not clock.over


def test_speed_is_measured_on_the_cpu(plan, tmp_path, monkeypatch):
    (tmp_path / "configs").symlink_to(CONFIGS)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "small").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(speed, "WARM", 1)
    monkeypatch.setattr(speed, "STEPS", 2)
    monkeypatch.setitem(speed.ROWS, "ner/tok2vec_crf.cfg", ("small", False, ("gpu",)))
    row = speed.measure("ner/tok2vec_crf.cfg", -1, tmp_path / "lock")
    assert set(row) == {"steps", "words", "annotation"} and min(row.values()) > 0
    nlp = speed.untrained("ner/tok2vec_crf.cfg", "small", False, -1, times=3)
    batcher = Config().from_disk(CONFIGS / "ner" / "tok2vec_crf.cfg")["training"]["batcher"]
    assert nlp.config["training"]["batcher"]["size"] == 3 * batcher["size"]
    sentences = [["Ada", "lives", "in", "Leeds"]] * 50
    assert parts.tokenizer_speed(nlp, sentences) > 0
    batches = parts.measure(nlp, sentences, sizes=(8, 64))
    for row in batches.values():
        assert row["words"] > 0 and row["one_thread"] > 0 and "inference" in row["parts"]
    assert overlap.AHEAD
    monkeypatch.setattr(kernels, "WARM", 1)
    monkeypatch.setattr(kernels, "STEPS", 2)
    followed = kernels.measure("ner/tok2vec_crf.cfg", -1, 1)
    assert followed["kernels"] == 0 and followed["milliseconds"] > 0 and followed["host"]
    assert [*batches] == ["8", "64"]


def test_without_any_row_in_time_the_job_fails(tmp_path, monkeypatch, capsys):
    words = [str(tmp_path / "speed.json"), "--minutes", "0", "--configs", "ner/psa.cfg"]
    monkeypatch.setattr("sys.argv", ["speed", *words])
    with pytest.raises(SystemExit, match="nothing was timed"):
        speed.main()
    assert "ner/psa.cfg, gpu: not timed" in capsys.readouterr().out


@pytest.mark.parametrize("job", read_jobs(FOLDER / "gpu" / "speed3.toml"), ids=lambda job: job.name)
def test_the_jobs_of_speed3_can_be_started(job, tmp_path, monkeypatch):
    """A rehearsal: each script reads its options, and ends where it would begin to measure."""
    _, _, module, *words = job.words(-1, tmp_path, 60)
    if module == "pytest":
        listed = [path for path in words if "/" in path]
        assert all((FOLDER.parent / path).exists() for path in listed)
        return

    def begin(*arguments, **options):
        raise KeyboardInterrupt

    script = importlib.import_module(module)
    switched = []
    names = {name: partial(switched.append, name) for name in WITHOUT}
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "0")
    monkeypatch.setattr("sys.argv", [module, *words])
    monkeypatch.setattr(speed.subprocess, "Popen", begin)
    monkeypatch.setattr(parts, "untrained", begin)
    monkeypatch.setattr(kernels, "measure", begin)
    monkeypatch.setattr(timed, "read_plan", begin)
    monkeypatch.setattr(without, "WITHOUT", names)
    with pytest.raises(KeyboardInterrupt):
        script.main()
    assert bool(switched) == ("--without" in words and module == "benchmarks.gpu.kernels")
    assert (os.environ["CUDA_LAUNCH_BLOCKING"] == "1") == ("--blocking" in words)


def test_the_trainings_of_speed3_are_those_of_its_plan():
    plan = read_plan(FOLDER / "gpu" / "batches.toml")
    jobs = [job.command.split() for job in read_jobs(FOLDER / "gpu" / "speed3.toml")]
    asked = [(words[2], int(words[3])) for words in jobs if words[0] == "benchmarks.gpu.timed"]
    assert asked == [(run.name, seed) for run in plan.runs for seed in run.seeds]


SWITCHES = """
from spacy_psa.pipeline import overlap
from spacy_psa.structs.emission_chain import EmissionChain
from spacy_psa.training import ahead
from benchmarks.gpu.without import WITHOUT, switch_off
import os, torch

x = torch.zeros(2)
switch_off(WITHOUT)
assert ahead.STEPS == overlap.AHEAD == 0 and os.environ["SPACY_PSA_TRITON"] == "0"
assert EmissionChain._sums_apply is EmissionChain.is_scaled
assert x.pin_memory() is x and x.to(torch.float64, non_blocking=True).dtype == torch.float64
print("off")
"""


def test_all_that_is_measured_can_be_switched_off():
    command = [PYTHON, "-c", SWITCHES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER.parent)
    assert done.stdout == "off\n", done.stderr


def test_gaps_are_the_times_in_which_the_gpu_has_no_work():
    def event(name, start, end, on_gpu=True, own=0.0):
        return kernels.Event(name, on_gpu, start, end, own)

    events = [
        event("aten::mm", 0, 9000, on_gpu=False, own=7000),
        event("cudaLaunchKernel", 1000, 1500, on_gpu=False, own=500),
        event("cudaLaunchKernel", 2000, 2500, on_gpu=False, own=500),
        event("cudaStreamSynchronize", 6000, 9000, on_gpu=False, own=3000),
        event("gemm", 2000, 4000),
        event("add", 3000, 5000),  # of another stream
        event("Memcpy DtoH", 8000, 8500),
    ]
    found = kernels.summary(events, steps=2)
    assert (found["kernels"], found["copies"], found["launches"], found["waits"]) == (
        1,
        0.5,
        1,
        0.5,
    )
    assert (found["milliseconds"], found["busy"], found["idle"]) == (4.5, 1.75, 2.75)
    assert found["longest_gaps"] == [3.0, 2.0, 0.0]
    assert found["slowest"] == {"gemm": 1.0, "add": 1.0}
    assert found["host"]["aten::mm"] == 3.5


def test_encoders_travel_in_parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, out = Path("encoders", "small"), Path("encoder.tar.xz")
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    weights = {"b": torch.randn(3, 5), "a": torch.randn(2), "ids": torch.arange(4)}
    safetensors.torch.save_file(weights, folder / "model.safetensors")
    pack.pack([folder], out)
    assert len(pack.split(out, 200)) > 1 and not out.exists()
    pack.unpack(out, tmp_path / "there")
    there = tmp_path / "there" / folder
    assert (there / "config.json").read_text() == "{}"
    read = safetensors.torch.load_file(there / "model.safetensors")
    for key, weight in weights.items():
        rounded = weight.bfloat16().float() if weight.is_floating_point() else weight
        assert torch.equal(read[key], rounded) and read[key].dtype == weight.dtype
    with pytest.raises(InputError, match="neither this file nor a part"):
        pack.joined(Path("other.tar.xz"))


def test_it_has_a_command_line(monkeypatch, tmp_path):
    (tmp_path / "jobs.toml").write_text("[jobs.first]\ncommand = 'this'\n")
    words = [tmp_path / "jobs.toml", tmp_path / "out", "--work", tmp_path / "work"]
    monkeypatch.setattr("sys.argv", ["run", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
