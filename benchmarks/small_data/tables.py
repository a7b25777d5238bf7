"""The tables on the page of this experiment, and the numbers in its text."""

from statistics import mean
from typing import Any, NamedTuple

from benchmarks.active.tables import scores
from benchmarks.tables import Records, file_link, number, percent, spread, table

CORPORA = {"wnut17": "WNUT-17", "wikigold": "Wikigold", "conll2003": "CoNLL-2003"}
SYSTEMS = {"ours": "ours", "efficiency": "spaCy, efficiency", "accuracy": "spaCy, accuracy"}
SAMPLE = ["corpus", "vectors", "sentences", "seeds"]


class Cell(NamedTuple):
    """The rows of one size of sample, one of each seed."""

    corpus: str
    vectors: bool
    size: str
    rows: list[dict[str, Any]]


def cells(records: Records) -> list[Cell]:
    """All sizes of samples, those of a corpus together."""
    found: dict[tuple[str, bool, str], list[dict[str, Any]]] = {}
    for name, record in sorted(records.items()):
        corpus, *vectors, _ = name.split("-")
        for size, row in record["results"]["samples"].items():
            found.setdefault((corpus, bool(vectors), size), []).append(row)
    order = [(corpus, vectors) for corpus in CORPORA for vectors in (False, True)]
    return [Cell(*key, rows) for place in order for key, rows in found.items() if key[:2] == place]


def sample_scores(
    records: Records, corpus: str, vectors: bool, size: str, system: str, part: str
) -> list[float]:
    """The F1 of a system on one size of sample, one of each seed."""
    (rows,) = (cell.rows for cell in cells(records) if cell[:3] == (corpus, vectors, size))
    return scores(rows, system, part)


def curves(records: Records) -> str:
    columns = [(system, part) for system in SYSTEMS for part in ("dev", "test")]
    body = [
        [*sample_of(cell), *(spread(scores(cell.rows, *column)) for column in columns)]
        for cell in cells(records)
    ]
    return table(SAMPLE + [f"{SYSTEMS[system]}, {part} F1" for system, part in columns], body)


def costs(records: Records) -> str:
    """The scores with a cost of missed entities and without it, where both were trained."""
    body = []
    for cell in cells(records):
        dev, test = (with_and_without(cell, part) for part in ("dev", "test"))
        if dev:
            body.append([*sample_of(cell), *map(spread, dev + test)])
    heads = [f"{cost}, {part} F1" for part in ("dev", "test") for cost in ("cost of 3", "no cost")]
    return table(SAMPLE + heads, body)


def with_and_without(cell: Cell, part: str) -> list[list[float]]:
    """The F1 of all seeds with the cost, and without it; empty if one was not trained."""
    other = {name for name in ("cost", "no_cost") if all(name in row for row in cell.rows)}
    names = [name if name in other else "ours" for name in ("cost", "no_cost")]
    return [scores(cell.rows, name, part) for name in names] if other else []


def sample_of(cell: Cell) -> list[str]:
    return [
        CORPORA[cell.corpus],
        "GloVe" if cell.vectors else "none",
        cell.size if cell.size == "all" else f"{int(cell.size):,}",
        str(len(cell.rows)),
    ]


def runs(records: Records) -> str:
    return table(["run", "record"], [[name, file_link(name)] for name in sorted(records)])


TABLES = {"curves": curves, "costs": costs, "runs": runs}


def wins(records: Records, system: str, part: str = "test") -> tuple[int, int]:
    """How many of all samples ours is at or above a system on, and how many there are."""
    pairs = [
        (row["ours"][part]["ents_f"], row[system][part]["ents_f"])
        for cell in cells(records)
        for row in cell.rows
        if system in row
    ]
    return sum(one >= other for one, other in pairs), len(pairs)


def mean_wins(records: Records, system: str) -> tuple[int, int]:
    """How many mean test F1 of ours are at or above those of a system, and how many there are."""
    pairs = [
        (mean(scores(cell.rows, "ours", "test")), mean(theirs))
        for cell in cells(records)
        if (theirs := scores(cell.rows, system, "test"))
    ]
    return sum(one >= other for one, other in pairs), len(pairs)


def headline(records: Records) -> str:
    parts = [f"{SYSTEMS[name]}, on {won} of {of}" for name, (won, of) in beaten(records)]
    return f"test F1 at or above that of {'; '.join(parts)} samples"


def beaten(records: Records) -> list[tuple[str, tuple[int, int]]]:
    return [(name, wins(records, name)) for name in SYSTEMS if name != "ours"]


def steps(records: Records) -> tuple[float, float]:
    """The least and greatest steps of the accuracy config, as shares of those of efficiency."""
    shares = [
        row["accuracy"]["steps"] / row["efficiency"]["steps"]
        for cell in cells(records)
        for row in cell.rows
        if "accuracy" in row
    ]
    return min(shares), max(shares)


def cost_effect(records: Records, corpus: str, part: str) -> tuple[float, float]:
    """The least and greatest change of a corpus's mean F1 by the cost, in points."""
    changes = [
        100 * (mean(pair[0]) - mean(pair[1]))
        for cell in cells(records)
        if cell.corpus == corpus and (pair := with_and_without(cell, part))
    ]
    return min(changes), max(changes)


def claims(records: Records) -> list[str]:
    least, greatest = steps(records)
    low, high = cost_effect(records, "wnut17", "dev")
    lowest, highest = cost_effect(records, "wikigold", "dev")
    test_low, test_high = cost_effect(records, "wnut17", "test")
    whole = records["conll2003-vectors-1"]["results"]["samples"]["all"]
    ours, theirs = (number(whole[system]["seconds"]) for system in ("ours", "efficiency"))
    return [
        f"took {ours} seconds of processor time, and spaCy's efficiency config had {theirs}",
        f"dev F1 of WNUT-17 is {low:.1f} to {high:.1f} points higher",
        f"and test F1 changes by {test_low:+.1f} to {test_high:+.1f} points",
        f"dev F1 of Wikigold changes by {lowest:+.1f} to {highest:+.1f} points",
        *(
            "in {} of {} samples, and in {} of {} means over the seeds".format(
                *found, *mean_wins(records, name)
            )
            for name, found in beaten(records)
        ),
        f"makes {percent(least, 0)}% to {percent(greatest, 0)}% of the steps",
    ]
