"""Probable errors of a corpus, by one pipeline or by cross-fitted ones."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from spacy.tokens import Doc
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
from spacy_psa.corpora.docbin import check_docbin_path, read_docbin, write_docbin
from spacy_psa.errors import InputError
from spacy_psa.laboratory.cross_fit import Fold, train_folds
from spacy_psa.loading import find_pipe, load_pipeline
from spacy_psa.pipeline.component import StructuredPipe

FACTORIES = "crf_ner, crf_spans, crf_chunker, crf_tagger or constituency_parser"
SIDES = ("annotated", "proposed")


def find_errors(
    corpus: Path,
    output: Path,
    folds: Callable[[list[Doc]], list[Fold]],
    name: str | None = None,
    gpu_id: int = -1,
    watch: Callable[..., Any] = lambda docs, what: docs,
) -> tuple[list[Row], Found]:
    """Find probable errors of a `.spacy` file, and write them as JSON lines.

    `folds` returns pipelines for the docs that they have not learned from, and `name` is the
    component; None if there is only one of these kinds. Returns the rows that were written, the
    most suspicious first, and the results of all folds.
    """
    docs = read_docbin(corpus, Vocab())
    result = Found([], [], 0)
    models = folds(docs)
    for numbers, model in models:
        nlp = load_pipeline(str(model), gpu_id)
        pipe = find_pipe(nlp, name, StructuredPipe, FACTORIES)
        of_fold = [docs[i] for i in numbers]
        whole, shown = len(models) == 1, partial(watch, what="documents")
        suspects, failed, bare = find_suspects(nlp, pipe.name, of_fold, numbers, whole, shown)
        result = Found(result.suspects + suspects, result.failed + failed, result.bare + bare)
    if result.bare == len(docs):
        raise InputError(
            f"{corpus}: no document has annotation of {pipe.name}; use annotated documents"
        )
    rows = make_rows(ranked(result.suspects, pipe, docs), layer_of(pipe), docs)
    write_rows(rows, output)
    return rows, result


def by_model(model: str) -> Callable[[list[Doc]], list[Fold]]:
    """Ask one pipeline about all docs."""
    return lambda docs: [Fold(list(range(len(docs))), Path(model))]


def cross_fitted(config: Config, folder: Path, **options: Any) -> Callable[..., list[Fold]]:
    """Ask pipelines that `train_folds` trains; the options are its further arguments."""
    return lambda docs: train_folds(config, docs, folder, **options)


def correct_file(corpus: Path, errors: Path, target: Path, above: float | None) -> list[Row]:
    """Write a corpus with the accepted corrections, which are returned, and a log of them.

    Args:
        corpus: the `.spacy` file in which the errors were found.
        errors: the file that `find_errors` wrote; the decisions of the page are next to it.
        target: the `.spacy` file to write. The log has the same name and ends in `.log.jsonl`.
        above: corrections of at least this chance are also accepted, if nobody decided.
    """
    check_docbin_path(target)
    rows, decided = read_rows(errors), read_decisions(errors)
    if not decided and above is None:
        raise InputError(
            f"{decisions_path(errors)}: there is no decision yet; decide with `spacy-psa serve "
            "MODEL --review`, or accept probable errors with --above"
        )
    accepted = [row for row in rows if _accepted(row, decided, above)]
    docs = read_docbin(corpus, Vocab())
    correct(docs, accepted)
    write_docbin(docs, target)
    write_rows(accepted, target.with_suffix(".log.jsonl"))
    return accepted


def _accepted(row: Row, decided: dict[int, bool], above: float | None) -> bool:
    likely = above is not None and row["chance"] >= above
    return decided.get(row["number"], likely)


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
