"""Probable errors of a corpus, by one pipeline or by cross-fitted ones.

Cross-fitting: pipelines for the parts of a corpus that have not learned from them. A process

    python -m spacy_psa.laboratory.find_errors FOLDER GPU

trains one of them, by `config.cfg` in FOLDER. It ends when the process that started it has ended.
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc
from spacy.util import dot_to_object
from spacy.vocab import Vocab
from thinc.api import Config

from spacy_psa.analysis.corrections import (
    Row,
    correct,
    decisions_path,
    layer_of,
    make_rows,
    read_decisions,
    read_rows,
    write_rows,
)
from spacy_psa.analysis.label_errors import Found, find_suspects, ranked
from spacy_psa.child_processes import end_with_starter
from spacy_psa.corpora.docbin import check_docbin_path, read_docbin, write_docbin
from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.processes import OUTPUT, run_locally
from spacy_psa.laboratory.jackknife import deal, without_label_check
from spacy_psa.loading import find_pipe, load_pipeline
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.sentences import document_key
from spacy_psa.training.config import build, read_training_config
from spacy_psa.training.model_folders import ModelFolders
from spacy_psa.training.run import run

CONFIG = "config.cfg"
MODULE = "spacy_psa.laboratory.find_errors"
"""This module, which is "__main__" in a process that trains."""
FACTORIES = "crf_ner, crf_spans, crf_chunker, crf_tagger or constituency_parser"
SIDES = ("annotated", "proposed")


class Fold(NamedTuple):
    """A pipeline, and the numbers of the docs that it has not learned from."""

    numbers: list[int]
    model: Path


def train_folds(
    docs: Sequence[Doc],
    config: Config,
    folder: Path,
    folds: int,
    seed: int,
    jobs: int = 1,
    gpu_id: int = -1,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Fold]:
    """Train a pipeline for each fold of a corpus on the other folds.

    The trainings that are finished are not repeated, and the others continue. The development data
    of the config is that of all folds, of which there are at least 2. Docs of one document, see
    `document_key`, are in one fold. Each of the `jobs` at a time has a process of one thread.
    """
    names = [document_key(doc, i) for i, doc in enumerate(docs)]
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

    folders = [folder / f"fold-{fold + 1}" for fold in range(folds)]
    for fold, out in enumerate(folders):
        write_docbin([doc for doc, at in zip(docs, dealt) if at != fold], out / "train.spacy")
        own = config.copy()
        corpus = dot_to_object(own, own["training"]["train_corpus"])
        corpus["path"] = str(out / "train.spacy")
        own.to_disk(out / CONFIG, interpolate=False)
    tell(f"{folds} trainings, see {folders[0] / OUTPUT} and so on")
    with closing(run_locally(folders, [str(gpu_id)], jobs, MODULE)) as processes:
        for out, code in chain.from_iterable(processes):
            if code:
                last = (out / OUTPUT).read_text(encoding="utf8", errors="replace").split("\n")[-2:]
                raise InputError(f"{out}: the training failed ({' '.join(last).strip()})")
            tell(f"{out}: trained")
    models = [ModelFolders(out) for out in folders]
    return [
        Fold(
            [i for i, at in enumerate(dealt) if at == fold],
            own.best if own.best.exists() else own.last,
        )
        for fold, own in enumerate(models)
    ]


def find_errors(
    corpus: Path,
    output: Path,
    folds: Callable[[list[Doc]], list[Fold]],
    name: str | None = None,
    gpu_id: int = -1,
    watch: Callable[..., Any] = lambda docs, what: docs,
) -> tuple[list[Row], Found, Path]:
    """Find probable errors of a `.spacy` file, and write them as JSON lines.

    `folds` returns pipelines for the docs that they have not learned from, and `name` is the
    component; None if there is only one of these kinds. Returns the rows that were written, the
    most suspicious first, the results of all folds, and the first of the pipelines.
    """
    check_output(output, corpus)
    docs = read_docbin(corpus, Vocab())
    result = Found([], [], 0)
    models = folds(docs)
    for numbers, model in models:
        nlp = load_pipeline(str(model), gpu_id)
        pipe = find_pipe(nlp, name, StructuredPipe, FACTORIES)
        of_fold = [docs[i] for i in numbers]
        whole, shown = len(models) == 1, partial(watch, what="documents")
        try:
            suspects, failed, bare = find_suspects(nlp, pipe.name, of_fold, numbers, whole, shown)
        except InputError as error:
            raise InputError(f"{corpus}: {error}") from error
        result = Found(result.suspects + suspects, result.failed + failed, result.bare + bare)
    if result.bare == len(docs):
        raise InputError(
            f"{corpus}: no document has annotation of {pipe.name}; use annotated documents"
        )
    rows = make_rows(ranked(result.suspects, pipe, docs), layer_of(pipe), docs)
    write_rows(rows, output)
    return rows, result, models[0].model


def check_output(output: Path, corpus: Path) -> None:
    """Raise an InputError if a list cannot be written, or would replace what is needed.

    That is the corpus, or a list that people have decided about: decisions are about rows by their
    numbers, and in a new list, other rows have these numbers.
    """
    if output.is_dir():
        raise InputError(f"{output}: is a folder; choose the name of a file")
    if output.resolve() == corpus.resolve():
        raise InputError(f"{output}: is the corpus; choose another --output")
    log = decisions_path(output)
    if log.exists():
        raise InputError(
            f"{log}: has decisions about an earlier list; use another --output, or move both files"
        )


def check_component(path: Path, config: Config, name: str | None = None) -> None:
    """Raise an InputError, before hours of training, if no component of a config can be asked.

    `path` is the file of the config, for errors. `name` is the component; None if there is one.
    """
    find_pipe(build(path, config), name, StructuredPipe, FACTORIES)


def by_model(model: str) -> Callable[[list[Doc]], list[Fold]]:
    """Ask one pipeline about all docs."""
    return lambda docs: [Fold(list(range(len(docs))), Path(model))]


def correct_file(corpus: Path, errors: Path, target: Path, above: float | None) -> list[Row]:
    """Write a corpus with the accepted corrections, which are returned, and a log of them.

    Args:
        corpus: the `.spacy` file in which the errors were found.
        errors: the file that `find_errors` wrote; the decisions of the page are next to it.
        target: the `.spacy` file to write. The log has the same name and ends in `.log.jsonl`.
        above: corrections of at least this chance are also accepted, if nobody decided.
    """
    check_docbin_path(target)
    log = target.with_suffix(".log.jsonl")
    for path in (target, log):
        if path.resolve() in (corpus.resolve(), errors.resolve()):
            raise InputError(f"{path}: is the corpus or the list of errors; choose another OUT")
    rows, decided = read_rows(errors), read_decisions(errors)
    if not decided and above is None:
        raise InputError(
            f"{decisions_path(errors)}: there is no decision yet; decide with `spacy-psa serve "
            "MODEL --review`, or accept probable errors with --above"
        )
    if unknown := sorted(decided.keys() - {row["number"] for row in rows}):
        raise InputError(
            f"{decisions_path(errors)}: decides about row {unknown[0]}, which is not in {errors}: "
            "it belongs to another list; use that one, or remove the line"
        )
    least = math.inf if above is None else above
    accepted = [row for row in rows if decided.get(row["number"], row["chance"] >= least)]
    docs = read_docbin(corpus, Vocab())
    correct(docs, accepted)
    write_docbin(docs, target)
    write_rows(accepted, log)
    return accepted


def table(rows: Iterable[Row]) -> list[list[str]]:
    """Describe rows for a terminal: chance, kind, annotation, correction and words."""

    def shown(row: Row, key: str) -> str:
        first = row["first"]
        spans = [
            f"{''.join(row['words'][start - first : end - first]).strip()} ({label})"
            for start, end, label in row[key]
        ]
        return ", ".join(spans) or "nothing"

    return [
        [f"{row['chance']:.2f}", row["kind"], str(row["doc"]), *(shown(row, k) for k in SIDES)]
        for row in rows
    ]


def main(folder: str, gpu_id: str) -> None:
    """Train the config of a folder, or continue; a finished training stays as it is."""
    end_with_starter()
    path = Path(folder, CONFIG)
    try:
        config = read_training_config(path, [])
        run(path, config, path.parent, print, resume=True, gpu_id=int(gpu_id))
    except InputError as error:
        sys.exit(f"error: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main(*sys.argv[1:])
