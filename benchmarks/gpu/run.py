"""Run everything that needs a GPU in a bounded time: tests, speed, and simultaneous trainings.

JOBS.toml lists the jobs. Jobs that measure time run first, one by one; the others run at the same
time. At the end of the time, running jobs are stopped. The same command continues: it skips
finished jobs, and the trainings of `spacy-psa experiment` continue from their checkpoints in WORK.

After each job, OUT gets `records.tar.gz`: `jobs.json` with the state of each job, NAME.txt with the
output of the job NAME, and all records, reports and logs in WORK.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.plan import read_toml
from spacy_psa.scoring.provenance import machine, versions

KEPT = ("*.json", "*.jsonl", "*.md", "*.txt")
"""The files of WORK to keep; models stay there."""
LAST = 30
"""Seconds at the end in which running jobs can save their results."""


@dataclass
class Job:
    """A command, in which {gpu}, {work} and {seconds}, the time that is left, are filled in."""

    name: str
    command: str
    alone: bool = False
    state: str = "waits"
    seconds: float = 0.0

    def words(self, gpu: int, work: Path, seconds: float) -> list[str]:
        command = self.command.format(gpu=gpu, work=work, seconds=int(seconds))
        return [sys.executable, "-m", *shlex.split(command)]


def read_jobs(path: Path) -> list[Job]:
    """Read the jobs of a TOML file."""
    try:
        return [
            Job(name=name, **job)
            for name, job in read_toml(path, "list of jobs", "benchmarks/gpu")["jobs"].items()
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: [jobs.NAME] needs a command ({error})") from error


Running = tuple[Job, "subprocess.Popen[bytes]"]


class Runner:
    """Runs jobs until a moment, the `end` in seconds of `time.monotonic`, and keeps their state."""

    def __init__(self, jobs: list[Job], out: Path, work: Path, gpu: int, end: float):
        self.jobs, self.out, self.work, self.gpu, self.end = jobs, out, work, gpu, end
        self.states = work / "jobs.json"
        if self.states.exists():
            before = json.loads(self.states.read_text(encoding="utf8"))["jobs"]
            done = {job["name"]: job for job in before if job["state"] == "done"}
            for job in jobs:
                if job.name in done:
                    job.state, job.seconds = "done", done[job.name]["seconds"]

    def run(self) -> bool:
        """Run the jobs, and return whether all are done."""
        waiting = [job for job in self.jobs if job.state != "done"]
        for job in waiting:
            if job.alone:
                self._finish([job])
        self._finish([job for job in waiting if not job.alone])
        self._keep()
        return all(job.state == "done" for job in self.jobs)

    def _finish(self, jobs: list[Job]) -> None:
        started = time.monotonic()
        running = dict(self._start(jobs))
        while running:
            ended = [name for name, (_, process) in running.items() if process.poll() is not None]
            for name in ended:
                job, process = running.pop(name)
                job.state = "failed" if process.returncode else "done"
                job.seconds = round(time.monotonic() - started, 1)
                print(f"{job.name}: {job.state} after {job.seconds} s", flush=True)
                if job.state == "failed":
                    print(self._last_line(job), flush=True)
                self._keep()
            if time.monotonic() > self.end - LAST:
                for job, process in running.values():
                    os.killpg(process.pid, signal.SIGTERM)
                    process.wait()
                    job.state = "stopped"
                return
            time.sleep(0.2)

    def _start(self, jobs: list[Job]) -> Iterator[tuple[str, Running]]:
        if time.monotonic() > self.end - LAST:
            return
        for job in jobs:
            with (self.work / f"{job.name}.txt").open("wb") as printed:
                process = subprocess.Popen(
                    job.words(self.gpu, self.work, self.end - LAST - time.monotonic()),
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
                )
            job.state = "runs"
            yield job.name, (job, process)

    def _last_line(self, job: Job) -> str:
        """The last line that a job printed, which is its error if it failed."""
        lines = (self.work / f"{job.name}.txt").read_text("utf8", "replace").splitlines()
        return lines[-1] if lines else ""

    def _keep(self) -> None:
        """Write the state of the jobs, and copy the figures to OUT."""
        state: dict[str, Any] = {"machine": machine(), "versions": versions()}
        state["jobs"] = [asdict(job) for job in self.jobs]
        with atomic_path(self.states) as temporary:
            temporary.write_text(json.dumps(state, indent=2), encoding="utf8")
        with (
            atomic_path(self.out / "records.tar.gz") as temporary,
            tarfile.open(temporary, "w:gz") as archive,
        ):
            for path in sorted({p for kept in KEPT for p in self.work.rglob(kept)}):
                if "model-" not in str(path.relative_to(self.work)):
                    archive.add(path, str(path.relative_to(self.work)))


def main() -> None:
    options = script_parser(globals(), "JOBS.toml")
    options.add_argument("out", type=Path, metavar="OUT", help="folder for the figures")
    options.add_argument("--work", type=Path, default=Path("gpu-work"), help="folder to work in")
    options.add_argument("--minutes", type=float, default=10, help="time for all jobs (10)")
    options.add_argument("--gpu-id", type=int, default=0, help="number of the GPU (0); -1: the CPU")
    given = options.parse_args()
    end = time.monotonic() + 60 * given.minutes
    for folder in (given.out, given.work):
        folder.mkdir(parents=True, exist_ok=True)
    runner = Runner(read_jobs(given.jobs), given.out, given.work, given.gpu_id, end)
    sys.exit(0 if runner.run() else 1)


if __name__ == "__main__":
    main()
