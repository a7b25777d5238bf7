"""Tables and pictures of records: mean and deviation over seeds, intervals, tests, curves."""

import csv
import io
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy

from spacy_psa.analysis.figures import colours, new_figure, save_figure
from spacy_psa.errors import InputError
from spacy_psa.laboratory.analyses.convergence import epochs
from spacy_psa.laboratory.experiments.record import Evaluation, Record, Scored
from spacy_psa.scoring.statistics import (
    RESAMPLES,
    Table,
    bootstrap_interval,
    mean_f1,
    paired_interval,
    seed_p_value,
    sentence_p_value,
)

Part = Literal["dev", "test"]
Runs = Mapping[str, Sequence[Record]]

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""The characters that begin a formula in a spreadsheet."""


class Spread(NamedTuple):
    """Scores of several seeds."""

    mean: float
    deviation: float | None
    """The standard deviation of a sample (divided by n - 1); None with one seed."""

    def __str__(self) -> str:
        rest = "" if self.deviation is None else f" ± {100 * self.deviation:.2f}"
        return f"{100 * self.mean:.2f}{rest}"


class Row(NamedTuple):
    """The scores of a run, as fractions of 1."""

    run: str
    metric: str
    seeds: int
    dev: Spread | None
    test: Spread | None
    interval: tuple[float, float] | None
    """The 95% interval over sentences."""
    of: Part | None
    """The data of the interval."""


def rows(runs: Runs, resamples: int = RESAMPLES) -> list[Row]:
    """Make the row of each run; records that are not finished do not count."""
    return [_row(name, _finished(records), resamples) for name, records in runs.items()]


def markdown(table: Sequence[Row]) -> str:
    """Write rows as a table in Markdown, in percent."""
    lines = [
        "| run | score | seeds | dev | test | 95% interval |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in table:
        bounds = "" if row.interval is None else " to ".join(f"{100 * b:.2f}" for b in row.interval)
        cells = (row.run, row.metric, row.seeds, row.dev, row.test, f"{bounds} ({row.of})")
        if row.interval is None:
            cells = (*cells[:-1], "")
        lines.append(f"| {' | '.join('' if cell is None else str(cell) for cell in cells)} |")
    return "\n".join(lines)


def csv_text(table: Sequence[Row]) -> str:
    """Write rows as CSV, as fractions of 1."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    ends = ("mean", "deviation")
    scores = [f"{part}_{end}" for part in ("dev", "test") for end in ends]
    writer.writerow(["run", "score", "seeds", *scores, "low", "high", "interval_of"])
    for row in table:
        spreads = [value for spread in (row.dev, row.test) for value in spread or (None, None)]
        interval = row.interval or (None, None)
        texts = [_no_formula(row.run), _no_formula(row.metric)]
        writer.writerow([*texts, row.seeds, *spreads, *interval, row.of])
    return stream.getvalue()


def _no_formula(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would compute."""
    return f"'{text}" if text[:1] in FORMULA else text


def unfinished(runs: Runs) -> list[str]:
    """List the trainings without a score, and the reasons."""
    return [
        f"{record.name}: {record.lacking}"
        for records in runs.values()
        for record in records
        if record.lacking
    ]


def comparison(runs: Runs, first: str, second: str, resamples: int = RESAMPLES) -> str:
    """Describe how large and how sure the difference of two runs is, in favour of the first."""
    for name in (first, second):
        if name not in runs:
            raise InputError(
                f"--compare {name}: there is no such run; name one of {', '.join(runs)}"
            )
        if not _finished(runs[name]):
            raise InputError(f"--compare {name}: none of its trainings is finished; run it first")
    a, b = _finished(runs[first]), _finished(runs[second])
    metric, part = a[0].metric, _part([*a, *b])
    left, right = _tables(a, part), _tables(b, part)
    if metric != b[0].metric or left is None or right is None:
        raise InputError(
            f"--compare {first} {second}: they have no score in common that is counted by sentence"
        )
    if left.shape[1] != right.shape[1] or _data(a, part) != _data(b, part):
        raise InputError(f"--compare {first} {second}: they were scored on different data")
    gap = mean_f1(left) - mean_f1(right)
    low, high = paired_interval(left, right, resamples)
    sentences = left.shape[1]
    by_seed = seed_p_value(_scores(a, part), _scores(b, part))
    seeds = "" if by_seed is None else f"; permutation over seeds, p = {by_seed:.3f}"
    return (
        f"{first} less {second}: {100 * gap:+.2f} {part} {metric} ({len(a)} and {len(b)} seeds). "
        f"95% interval by a paired bootstrap over {sentences:,} sentences: {100 * low:+.2f} to "
        f"{100 * high:+.2f}; paired permutation over sentences, "
        f"p = {sentence_p_value(left, right, resamples):.4f}{seeds}."
    )


def _row(name: str, records: Sequence[Record], resamples: int) -> Row:
    if not records:
        return Row(name, "", 0, None, None, None, None)
    part = _part(records)
    table = _tables(records, part)
    interval = None if table is None else bootstrap_interval(table, resamples)
    return Row(
        name,
        records[0].metric,
        len(records),
        _spread(records, "dev"),
        _spread(records, "test"),
        interval,
        None if interval is None else part,
    )


def _finished(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.state == "finished"]


def _part(records: Sequence[Record]) -> Part:
    """Test data if all were scored on it, else development data."""
    return "test" if all(record.tested is not None for record in records) else "dev"


def _scored(record: Record, part: Part) -> Scored | None:
    return record.tested if part == "test" else record.dev


def _scores(records: Sequence[Record], part: Part) -> list[float]:
    scored = [_scored(record, part) for record in records]
    return [
        each.scores[r.metric]
        for each, r in zip(scored, records)
        if each and r.metric in each.scores
    ]


def _spread(records: Sequence[Record], part: Part) -> Spread | None:
    scores = _scores(records, part)
    if not scores or len(scores) < len(records):
        return None
    deviation = statistics.stdev(scores) if len(scores) > 1 else None
    return Spread(statistics.fmean(scores), deviation)


def _tables(records: Sequence[Record], part: Part) -> Table | None:
    """The counts of all seeds; None if they are not there, or of different data."""
    scored = [_scored(record, part) for record in records]
    counts = [each.sentences.get(r.metric, []) for each, r in zip(scored, records) if each]
    if len(counts) < len(records) or len({len(each) for each in counts}) > 1 or not counts[0]:
        return None
    return numpy.array(counts, dtype=numpy.float64)


def _data(records: Sequence[Record], part: Part) -> set[tuple[str, ...]]:
    """The checksums of the data on which records were scored; without any, the path."""
    data = set()
    for record in records:
        scored = _scored(record, part)
        assert scored is not None
        whole = _normal(scored.path)
        sums = [md5 for path, md5 in record.data.items() if _normal(path).is_relative_to(whole)]
        data.add(tuple(sums or [str(whole)]))
    return data


def _normal(path: str) -> Path:
    return Path(os.path.normpath(path))


def curve(evaluations: Sequence[Evaluation]) -> tuple[list[float], list[float]]:
    """The epochs, with fractions, and the scores of the evaluations of a training."""
    places = epochs([(each.epoch, each.step) for each in evaluations])
    return places, [each.score for each in evaluations]


def draw(runs: Mapping[str, Sequence[Record]], path: Path) -> None:
    """Draw the mean development score of each run, the spread over seeds, and each seed."""
    known = {
        name: [curve(record.evaluations) for record in records if record.evaluations]
        for name, records in runs.items()
    }
    known = {name: seeds for name, seeds in known.items() if seeds}
    if not known:
        raise InputError("no training is finished, so there is nothing to draw; run the plan first")
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    for (name, seeds), colour in zip(known.items(), colours(len(known))):
        label = f"{name} ({len(seeds)} seed{'s' if len(seeds) > 1 else ''})"
        for places, scores in seeds:
            axes.plot(places, 100 * numpy.array(scores), color=colour, linewidth=0.6, alpha=0.5)
        shared = min(len(places) for places, _ in seeds)
        together = 100 * numpy.array([each[:shared] for _, each in seeds])
        places, mean = numpy.mean([each[:shared] for each, _ in seeds], 0), together.mean(0)
        axes.plot(places, mean, color=colour, linewidth=1.8, label=label)
        if len(seeds) > 1:
            spread = together.std(0, ddof=1)
            axes.fill_between(places, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
    metrics = {record.metric for records in runs.values() for record in records}
    axes.set(xlabel="epoch", ylabel=f"development {' or '.join(sorted(metrics))}, %")
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)
