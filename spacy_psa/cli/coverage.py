"""`spacy-psa calibrate --coverage`: the threshold of sets that hold the truth."""

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import srsly
import typer

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from spacy_psa.pipeline.chain.labeler import ChainLabeler


def find_coverage(
    nlp: "Language", model: str, name: str | None, paths: dict[str, Path], level: float
) -> "tuple[ChainLabeler, dict[str, Any]]":
    """Find the threshold on development data, put it on the component, and print what is observed.

    Args:
        nlp: the pipeline.
        model: its name in the record.
        name: the name of the component; None if the pipeline has one.
        paths: the files "dev" and, to report on, "test".
        level: the promised probability.

    Returns:
        The component, and a record for `--json`.

    Raises:
        InputError: if the level is not between 0 and 1, there is no such component, a file has no
            gold annotation for it, or there are too few documents.
    """
    from spacy_psa.analysis.conformal import (
        least_probability,
        observed_coverage,
        truth_probabilities,
    )
    from spacy_psa.loading import find_pipe
    from spacy_psa.pipeline.chain.labeler import ChainLabeler
    from spacy_psa.pipeline.coverage import Coverage
    from spacy_psa.pipeline.upstream import with_upstream
    from spacy_psa.scoring.provenance import checksums, command, commit, machine, versions
    from spacy_psa.scoring.result import read_examples

    if not 0 < level < 1:
        raise InputError(f"--coverage {level:g}: take a number between 0 and 1, such as 0.9")
    kinds = "crf_ner, crf_chunker or crf_tagger"
    pipe: ChainLabeler = find_pipe(nlp, name, ChainLabeler, kinds)
    data = {
        part: with_upstream(nlp, pipe.name, read_examples(nlp, path))
        for part, path in paths.items()
    }
    truths = {}
    for part, examples in data.items():
        found = truth_probabilities(pipe, examples)
        truths[part] = [items for items in found if items]
        if not truths[part]:
            raise InputError(
                f"{paths[part]}: there is no gold annotation for {pipe.name}; give annotated "
                "documents"
            )
    try:
        least = least_probability(truths["dev"], level)
    except InputError as error:
        raise InputError(f"{paths['dev']}: {error}") from error
    least = _as_saved(least)
    pipe.coverage = Coverage(level, least, len(truths["dev"]))
    parts: dict[str, Any] = {
        part: {
            "path": paths[part].as_posix(),
            "documents": len(documents),
            "items": sum(map(len, documents)),
            "coverage": observed_coverage(documents, least),
            "set_size": _set_size(pipe, data[part]),
        }
        for part, documents in truths.items()
    }
    _print(pipe, parts)
    head, modified = commit()
    return pipe, {
        "format": 1,
        "model": {"path": model, "pipe": pipe.name},
        "coverage": pipe.coverage._asdict(),
        "temperature": pipe.temperature,
        "data": parts,
        "checksums": checksums([*paths.values(), nlp.path / pipe.name / "model"]),
        "versions": versions(),
        "machine": machine(),
        "commit": head,
        "modified": modified,
        "command": command(),
    }


def _as_saved(least: float) -> float:
    """Give a number that saved settings, which have 9 decimals, keep; less only adds to sets."""
    billionths = math.floor(least * 1e9)
    read = [srsly.json_loads(srsly.json_dumps(n / 1e9)) for n in (billionths, billionths - 1)]
    return read[0] if read[0] <= least else max(0.0, read[1])


def _set_size(pipe: Any, examples: "list[Example]") -> float | None:
    """The mean number of spans in the sets for each gold span, or of tags in the set of a token."""
    from spacy_psa.pipeline.chain.spans import SpanLabeler

    sets = pipe.prediction_sets(example.predicted for example in examples)
    if isinstance(pipe, SpanLabeler):
        gold = sum(len(pipe.store.reference(pipe.name, eg.reference) or ()) for eg in examples)
        return sum(map(len, sets)) / gold if gold else None
    sizes = [len(tags) for doc in sets for tags in doc]
    return sum(sizes) / len(sizes) if sizes else None


def _print(pipe: Any, parts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    coverage = pipe.coverage
    table = Table()
    for heading in ("", "documents", "gold", "observed coverage", "size of the sets"):
        table.add_column(heading, justify="right" if heading else "left")
    for part, row in parts.items():
        size = "" if row["set_size"] is None else f"{row['set_size']:.3f}"
        counts = f"{row['documents']:,}", f"{row['items']:,}"
        table.add_row(part, *counts, f"{row['coverage']:.4f}", size)
    Console().print(table)
    typer.echo(
        f"{pipe.name}: what is true is in the sets with a probability of at least "
        f"{coverage.level:g}, in documents like those of dev. The least probability in a set is "
        f"{coverage.least:.6g}."
    )


def store_settings(nlp: "Language", component: "ChainLabeler", output: Path | None) -> None:
    """Store the settings of the component, the only part that differs from the loaded pipeline.

    In place, one file is replaced. A new folder is a copy, which appears complete or not at all.
    """
    from tempfile import TemporaryDirectory

    from spacy_psa.corpora.atomic import atomic_folder, atomic_path

    with TemporaryDirectory() as folder:
        component.to_disk(folder, exclude=["model", "vocab"])
        cfg = Path(folder) / "cfg"
        if output is None:
            with atomic_path(nlp.path / component.name / "cfg") as temporary:
                shutil.copyfile(cfg, temporary)
            return
        with atomic_folder(output) as temporary:
            shutil.copytree(nlp.path, temporary, dirs_exist_ok=True)
            shutil.copyfile(cfg, temporary / component.name / "cfg")
