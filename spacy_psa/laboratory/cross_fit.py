"""Cross-fitting: pipelines for the parts of a corpus that have not learned from them."""

import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc
from spacy.util import dot_to_object
from thinc.api import Config

from spacy_psa.child_processes import child_command, child_environment
from spacy_psa.corpora.docbin import write_docbin
from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.processes import ONE_THREAD
from spacy_psa.laboratory.jackknife import deal, without_label_check
from spacy_psa.sentences import name_of_document
from spacy_psa.training.model_folders import ModelFolders

OUTPUT = "output.txt"


class Fold(NamedTuple):
    """A pipeline, and the numbers of the docs that it has not learned from."""

    numbers: list[int]
    model: Path


def train_folds(
    config: Config,
    docs: Sequence[Doc],
    folder: Path,
    folds: int,
    seed: int,
    jobs: int = 1,
    gpu_id: int = -1,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Fold]:
    """Train a pipeline for each fold of a corpus on the other folds.

    The trainings that are finished are not repeated, and the others continue.

    Args:
        config: the training config; its development data is that of all folds.
        docs: the annotated docs. Those of one document, see `name_of_document`, are in one fold.
        folder: the folder for the trainings.
        folds: the number of folds, at least 2.
        seed: the seed by which documents are dealt.
        jobs: how many trainings run at a time, each in a process of one thread.
        tell: called with a line about each training.
    """
    names = [str(name_of_document(doc) or i) for i, doc in enumerate(docs)]
    if len(set(names)) < folds:
        raise InputError(
            f"{len(set(names))} document(s) are too few for {folds} folds; use fewer --folds, or "
            "--model with a pipeline of other data"
        )
    corpora = config.interpolate()
    if not dot_to_object(corpora, corpora["training"]["dev_corpus"]).get("path"):
        raise InputError(
            "no development data, by which each fold chooses its weights; set --paths.dev DEV.spacy"
        )
    dealt = deal(names, folds, seed)
    config = without_label_check(config)

    def trained(fold: int) -> Fold:
        out = folder / f"fold-{fold + 1}"
        write_docbin([doc for doc, at in zip(docs, dealt) if at != fold], out / "train.spacy")
        own = config.copy()
        corpus = dot_to_object(own, own["training"]["train_corpus"])
        corpus["path"] = str(out / "train.spacy")
        own.to_disk(out / "config.cfg", interpolate=False)
        tell(f"fold {fold + 1} of {folds}: in training, see {out / OUTPUT}")
        words = "train", str(out / "config.cfg"), "--output", str(out), "--resume"
        command = child_command("spacy_psa", *words, "--gpu-id", str(gpu_id))
        with (out / OUTPUT).open("ab") as output:
            done = subprocess.run(
                command, stdout=output, stderr=output, env=child_environment(**ONE_THREAD)
            )
        if done.returncode:
            last = (out / OUTPUT).read_text(encoding="utf8", errors="replace").split("\n")[-2:]
            raise InputError(f"{out}: the training failed ({' '.join(last).strip()})")
        models = ModelFolders(out)
        model = models.best if models.best.exists() else models.last
        return Fold([i for i, at in enumerate(dealt) if at == fold], model)

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(trained, range(folds)))
