"""Make the tables on the experiments' pages from their records.

A page, benchmarks/EXPERIMENT/README.md, marks the place of each table by two comments:

    <!-- table: NAME -->
    <!-- end of table -->

The module benchmarks/EXPERIMENT/tables.py makes what stands between them. It has

- `TABLES`: {NAME: function of the records that gives the table}
- `claims`: a function of the records that gives phrases of the page with the numbers in them
- `headline`: a function of the records that gives the experiment's figure for the index

The pages of README.md and docs/ that cite figures are in benchmarks/cited.py.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple, TypeVar

from benchmarks.record import FOLDER, read_record
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError

Records = Mapping[str, dict[str, Any]]
"""The records of an experiment, by name."""
Everything = Mapping[str, Records]
"""The records of all experiments, by the name of the experiment."""
Table = Callable[[Records], str]
Source = TypeVar("Source")
"""What tables are made from: the records of one experiment, or of all."""

PLACE = re.compile(r"<!-- table: (\S+) -->\n.*?<!-- end of table -->", re.DOTALL)


class Experiment(NamedTuple):
    """A folder of `benchmarks` with its records and what its page says of them."""

    name: str
    page: Path
    records: Records
    tables: Mapping[str, Table]
    claims: Callable[[Records], list[str]]
    headline: Callable[[Records], str]


def experiments() -> list[Experiment]:
    """All experiments that have records: the folders with a tables.py, by name.

    Raises:
        InputError: if a record is not in the format.
    """
    found = []
    for tables in sorted(FOLDER.glob("*/tables.py")):
        name, page = tables.parent.name, tables.parent / "README.md"
        module = import_module(f"benchmarks.{name}.tables")
        paths = sorted((page.parent / "results").glob("*.json"))
        records = {path.stem: read_record(path) for path in paths}
        found.append(Experiment(name, page, records, module.TABLES, module.claims, module.headline))
    return found


def render(text: str, tables: Mapping[str, Callable[[Source], str]], records: Source) -> str:
    """A page with its tables made anew.

    Args:
        text: the page.
        tables: the functions that make the tables, by name.
        records: the records, from which the functions make them.

    Raises:
        InputError: if the page does not have a place for each table, and for no other.
    """
    places = [match[1] for match in PLACE.finditer(text)]
    if sorted(places) != sorted(tables):
        raise InputError(f"the page has places for {places}, tables.py makes {list(tables)}")

    def filled(match: re.Match[str]) -> str:
        name = match[1]
        return f"<!-- table: {name} -->\n{tables[name](records)}\n<!-- end of table -->"

    return PLACE.sub(filled, text)


def plain(text: str) -> str:
    """A text on one line, to look for phrases that lines break.

    Examples:
        >>> plain("a\\n  b ")
        'a b'
    """
    return " ".join(text.split())


# What tables are made of.


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    Examples:
        >>> print(table(["system", "F1"], [["psa", "90.73"]]))
        | system | F1 |
        | --- | --- |
        | psa | 90.73 |
    """
    lines = [header, ["---"] * len(header), *rows]
    for line in lines:
        assert len(line) == len(header), line
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(share: float, digits: int = 2) -> str:
    """A fraction of 1 in percent.

    Examples:
        >>> percent(0.90734)
        '90.73'
    """
    return f"{100 * share:.{digits}f}"


DECODERS = {"viterbi": "`viterbi`", "mbr": "`mbr`", "calibrated": "`mbr`, calibrated"}


def decoders(models: Sequence[Mapping[str, Any]]) -> str:
    """The table of models of a record of `benchmarks.decoders`: their means."""
    rows = [
        [said, str(len(models))]
        + [spread([model[name][part] for model in models]) for part in ("dev", "test")]
        for name, said in DECODERS.items()
    ]
    return table(["decoder", "models", "dev F1", "test F1"], rows)


def spread(shares: Sequence[float]) -> str:
    """The mean in percent, with the standard deviation where there are several; empty for none.

    Examples:
        >>> spread([0.25, 0.75]), spread([0.25]), spread([])
        ('50.00 ± 35.36', '25.00', '')
    """
    if not shares:
        return ""
    return percent(mean(shares)) + (f" ± {percent(stdev(shares))}" if len(shares) > 1 else "")


def file_link(name: str) -> str:
    """A link to a result file of the same experiment."""
    return f"[{name}.json](results/{name}.json)"


def dev_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The evaluations on development data after the first step."""
    return [row for row in record["results"]["dev"] if row["step"]]


def dev_score(record: Mapping[str, Any], epoch: int) -> float:
    """The development score after an epoch; of several evaluations, the last."""
    return float(_after(record, epoch)["score"])


def dev_loss(record: Mapping[str, Any], epoch: int) -> float:
    """The sum of the training loss over an epoch, for one evaluation an epoch."""
    (loss,) = _after(record, epoch)["losses"].values()
    return float(loss)


def _after(record: Mapping[str, Any], epoch: int) -> dict[str, Any]:
    return [row for row in dev_rows(record) if row["epoch"] == epoch][-1]


def dev_list(record: Mapping[str, Any], epochs: Sequence[int]) -> str:
    """Development scores after some epochs, in percent."""
    return ", ".join(percent(dev_score(record, epoch)) for epoch in epochs)


def best_dev(record: Mapping[str, Any], epochs: int = 0) -> str:
    """The best development score, its epoch and the number of epochs: "94.70 (42 of 42)".

    Args:
        record: the record of a training.
        epochs: the number of epochs; 0 for the last one that was evaluated.
    """
    best = record["results"]["best"]
    return (
        f"{percent(best['score'])} ({best['epoch']} of {epochs or dev_rows(record)[-1]['epoch']})"
    )


def best_score(record: Mapping[str, Any]) -> float:
    """The best development score."""
    return float(record["results"]["best"]["score"])


def test_f(record: Mapping[str, Any]) -> float:
    """The F1 of entities or chunks, or the accuracy of tags, on the data that was scored."""
    scores = record["results"]["scores"]
    for key in ("ents_f", "spans_chunks_f", "chunks_f", "constituents_f", "tag_acc"):
        if key in scores:
            return float(scores[key])
    raise InputError(f"no F1 and no accuracy among the scores {list(scores)}")


def gap(one: float, other: float, digits: int = 2) -> str:
    """The difference of two fractions of 1 in points, from their two printed decimals.

    Examples:
        >>> gap(0.907324, 0.906852), gap(0.4638, 0.4033, 1)
        ('0.04', '6.1')
    """
    difference = Decimal(percent(one)) - Decimal(percent(other))
    return str(difference.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def precision_recall_f(record: Mapping[str, Any]) -> list[str]:
    """Precision, recall and F1 in percent; of tags two empty cells and the accuracy."""
    scores = record["results"]["scores"]
    for key in ("ents", "spans_chunks", "chunks", "constituents"):
        if f"{key}_f" in scores:
            return [percent(scores[f"{key}_{kind}"]) for kind in "prf"]
    return ["", "", percent(scores["tag_acc"])]


def number(value: float) -> str:
    """A rate: whole from 100 on, else with three digits.

    Examples:
        >>> number(15612.4), number(9.04)
        ('15,612', '9.04')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rate(row: Mapping[str, Any]) -> float:
    """The median rate of processor time of a timed row, which other processes do not change."""
    return float(row["per_cpu_second"]["median"])


def ratio(rows: Mapping[str, Any], one: str, other: str, unit: str = "per_second") -> float:
    """How many times as fast as another row a row is.

    Args:
        rows: the timed rows, by name.
        one: the row.
        other: the other row.
        unit: "per_second" by the clock, "per_cpu_second" by processor time.
    """
    return float(rows[one][unit]["median"] / rows[other][unit]["median"])


def write_pages(check: bool) -> list[str]:
    """Make the tables of all pages anew.

    Args:
        check: change nothing.

    Returns:
        The pages that were not up to date.

    Raises:
        InputError: if a page does not fit its tables.
    """
    found, stale = experiments(), []
    everything = {each.name: each.records for each in found}
    fill: dict[Path, Callable[[str], str]] = {
        each.page: partial(render, tables=each.tables, records=each.records) for each in found
    }
    for name, cited in import_module("benchmarks.cited").PAGES.items():
        fill[FOLDER.parent / name] = partial(render, tables=cited.tables, records=everything)
    for page, filled in fill.items():
        text = page.read_text(encoding="utf8")
        made = filled(text)
        if made != text:
            stale.append(page.relative_to(FOLDER.parent).as_posix())
            if not check:
                with atomic_path(page) as temporary:
                    temporary.write_text(made, encoding="utf8")
    return stale


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m benchmarks.tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument(
        "--check", action="store_true", help="change nothing; fail if a page is not up to date"
    )
    return found


def main() -> None:
    given = parser().parse_args()
    stale = write_pages(given.check)
    for page in stale:
        print(f"{page}: {'not up to date' if given.check else 'written'}")
    if given.check and stale:
        sys.exit("run `python -m benchmarks.tables`")


if __name__ == "__main__":
    main()
