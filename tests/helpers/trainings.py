"""Small trainings that can be killed."""

import hashlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spacy.training.initialize import init_nlp
from spacy.util import load_config
from thinc.api import Config

from spacy_psa.training import loop
from spacy_psa.training.checkpoint import Checkpoints
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
}


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
    context.set_forkserver_preload([__name__])
    process = context.Process(target=function, args=arguments)
    process.start()
    return process
