"""Small trainings that can be killed."""

import hashlib
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
import torch.distributed as dist
from spacy.language import Language
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import subdivide_batch
from spacy.util import load_config
from thinc.api import Config

from spacy_psa.bridge.optimizer import torch_modules
from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.training import loop
from spacy_psa.training.checkpoint import Checkpoints, nodes_by_place
from spacy_psa.training.data_parallel import DataParallel
from spacy_psa.training.finite_losses import FiniteLosses
from spacy_psa.training.processes import Processes
from tests.helpers.paths import CONFIGS
from tests.helpers.pipelines import hash_embed, small_encoder, small_model

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
    "swa": {
        "@optimizers": "spacy-psa.SWA.v1",
        "start": 5,
        "optimizer": {"@optimizers": "spacy-psa.AdamW.v1", "learn_rate": 0.01},
    },
}
Fault = tuple[Callable[[int], None], int]
"""What lets a process fail, and the step in which it does."""


def make_config(corpus: Path, optimizer: str = "sgd", **training: Any) -> Config:
    """A training of 30 steps, which is evaluated at the steps 0, 8, 16 and 24."""
    config = load_config(CONFIGS / "ner" / "psa.cfg")
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
    corpora = {name: {"path": str(corpus)} for name in ("train", "dev")}
    return Config(config).merge({"corpora": corpora})


def run(folder: Path, config: Config, **options: Any) -> Path:
    """Train in a folder, in which the log is, too."""
    folder.mkdir(exist_ok=True)
    before = Path.cwd()
    os.chdir(folder)
    try:
        loop.train(init_nlp(config), folder, **options)
    finally:
        os.chdir(before)
    return folder


def digests(folder: Path) -> dict[str, str]:
    """Checksums of all files that a training leaves, but for the seconds in meta.json."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "meta.json"]
    return {
        str(path.relative_to(folder)): hashlib.md5(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }


class Killed(BaseException):
    """What ends a training as a kill would."""


@contextmanager
def killed_at(monkeypatch: Any, step: int) -> Iterator[None]:
    """Inside of this, a training ends after the checkpoint of a step."""
    save = Checkpoints.save

    def save_and_die(self: Checkpoints, now: int, state: dict[str, Any]) -> None:
        save(self, now, state)
        if now == step:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "save", save_and_die)
        try:
            yield
        except Killed:
            return
    raise AssertionError(f"there was no checkpoint at step {step}")


def start_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a new process, which has imported the package already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "tests.helpers.preloaded"])
    process = context.Process(target=function, args=arguments)
    process.start()
    return process


def run_together(folder: Path, config: Config, size: int = 2, **options: Any) -> Path:
    """Train in several processes, all of which must come to the end."""
    assert exit_codes(folder, config, size, **options) == [0] * size
    return folder


def exit_codes(
    folder: Path, config: Config, size: int = 2, fault: Fault | None = None, **options: Any
) -> list[int]:
    """Train in several processes; give their exit codes, 2 after an `InputError`.

    The last process has the fault, if there is one.
    """
    folder.mkdir(exist_ok=True)
    meeting = folder / ".meeting"
    meeting.unlink(missing_ok=True)
    together = []
    for rank in range(size):
        own = fault if rank == size - 1 else None
        arguments = (Processes(rank, size), meeting, folder, config, own, options)
        together.append(start_process(_run_one, *arguments))
    for process in together:
        process.join()
    meeting.unlink(missing_ok=True)  # torch removes it where all have ended well
    return [process.exitcode for process in together]


def killed_in(step: int) -> None:
    """Let this process be killed at the beginning of a step."""
    begin, numbers = DataParallel.begin, count()

    def begin_or_die(self: DataParallel, parts: Any) -> Any:
        if next(numbers) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return begin(self, parts)

    DataParallel.begin = begin_or_die  # type: ignore[method-assign]


def not_a_number_in(step: int) -> None:
    """Let the loss of a step of this process be no number."""
    get_loss, numbers = SpanLabeler.get_loss, count()

    def get_bad_loss(self: SpanLabeler, examples: Any, scores: Any) -> Any:
        loss, gradients = get_loss(self, examples, scores)
        return float("nan") if next(numbers) == step else loss, gradients

    SpanLabeler.get_loss = get_bad_loss  # type: ignore[method-assign]


def _run_one(
    processes: Processes,
    meeting: Path,
    folder: Path,
    config: Config,
    fault: Fault | None,
    options: dict[str, Any],
) -> None:
    torch.set_num_threads(1)
    if fault is not None:
        fault[0](fault[1])
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=processes.rank, world_size=processes.count
    )
    try:
        run(folder, config, processes=processes, **options)
    except InputError as error:
        (folder / f"error-{processes.rank}").write_text(str(error), encoding="utf8")
        sys.exit(2)
    dist.destroy_process_group()


def logged(folder: Path) -> list[dict[str, Any]]:
    """The lines of the log of a training."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text("utf8").splitlines()]


def pop_gradients(nlp: Language) -> list[numpy.ndarray]:
    """The gradients of all parameters, which are gone afterwards."""
    found = []
    for node in nodes_by_place(nlp).values():
        for name in node.param_names:
            if node.has_grad(name):
                found.append(node.get_grad(name).copy())
                node.get_grad(name)[...] = 0
        for module in torch_modules(node):
            found += [p.grad.numpy().copy() for p in module.parameters() if p.grad is not None]
            module.zero_grad()
    return found


def assert_parts_are_the_batch(
    nlp: Language, examples: list[Example], parts: int, rtol: float = 1e-7
) -> None:
    """An update in parts has the loss and the gradients of the whole batch."""
    expected_losses: dict[str, float] = {}
    nlp.update(examples, losses=expected_losses, sgd=False)
    expected = pop_gradients(nlp)
    losses: dict[str, float] = {}
    guard = FiniteLosses(nlp, skip=False, stderr=StringIO())
    guard.batch = examples
    for part in subdivide_batch(examples, parts):
        guard.update(part, losses=losses, sgd=False)
    assert losses == pytest.approx(expected_losses, rel=1e-5)
    for found, wanted in zip(pop_gradients(nlp), expected, strict=True):
        numpy.testing.assert_allclose(found, wanted, atol=1e-5, rtol=rtol)
