"""The tables on the page of this experiment, and the numbers in its text."""

from collections.abc import Mapping
from typing import Any

from benchmarks.tables import Records, decoders, file_link, number, percent, spread, table

WORDS = {
    "conll2003": 203_621,
    "ontonotes": 1_087_332,
    "parser": 731_677,
    "factored": 731_677,
    "tener": 203_621,
}
"""The words of the training data of each run, by the first part of its name."""
EPOCHS = 100
"""Those of Yan2019."""
TITLES = {
    "conll2003": "`ner/best.cfg`, 400 units, CoNLL-2003",
    "ontonotes": "`ner/best.cfg`, 400 units, OntoNotes",
    "parser": "`parser/best.cfg`, 500 units, WSJ trees",
    "factored": "`parser/factored.cfg`, WSJ trees",
}
ONTONOTES = {
    "ontonotes_alone": "1,500 words a step",
    "ontonotes_dropout": "the same, dropout rates of 0.4",
    "ontonotes_half_batch": "750 words a step",
}
"""The runs on OntoNotes alone."""
TENER_AND_PARSER = {
    "tener": "`ner/tener.cfg`, CoNLL-2003",
    "parser_small_batch": "`parser/best.cfg`, 500 units, WSJ trees",
}
"""The runs of TENER at its full size, and of the parser in the batches of its config."""
CHOSEN = "ontonotes_dropout"
"""That of them with the highest dev F1 in the mean, which was joined."""


def runs(
    records: Records, titles: Mapping[str, str] = TITLES
) -> dict[str, dict[str, Mapping[str, Any]]]:
    """The records of each run, by their names."""
    return {
        run: {
            name: record
            for name, record in sorted(records.items())
            if record["results"].get("run") == run
        }
        for run in titles
    }


def passes(record: Mapping[str, Any]) -> float:
    """How often the training went over its data."""
    found = record["results"]
    words = WORDS[found["run"].partition("_")[0]]
    return float(found["steps"] * found["words_per_step"] / words)


def scores(found: Mapping[str, Mapping[str, Any]], part: str) -> list[float]:
    return [record["results"][part] for record in found.values()]


def mean(found: Mapping[str, Mapping[str, Any]], part: str) -> str:
    return percent(sum(scores(found, part)) / len(found))


def trainings(records: Records, titles: Mapping[str, str] = TITLES) -> str:
    rows = []
    for run, found in runs(records, titles).items():
        for name, record in found.items():
            results = record["results"]
            rows.append([
                titles[run], str(record["seed"]), number(results["seconds"]),
                f"{passes(record):.1f}", percent(results["dev"]), percent(results["test"]),
                file_link(name),
            ])  # fmt: skip
        if len(found) > 1:
            means = [spread(scores(found, part)) for part in ("dev", "test")]
            rows.append([titles[run], "mean ± deviation", "", "", *means, ""])
    head = ["training", "seed", "seconds", "passes", "dev F1", "test F1", "record"]
    return table(head, rows)


def ontonotes(records: Records) -> str:
    return trainings(records, ONTONOTES)


def tener_and_parser(records: Records) -> str:
    return trainings(records, TENER_AND_PARSER)


def timed(records: Records) -> dict[str, Mapping[str, Any]]:
    """The rows of the record of speed that were timed on both devices."""
    rows = records["speed"]["results"]["rows"]
    return {name: row for name, row in rows.items() if "gpu" in row}


def cells(row: Mapping[str, Any], what: str) -> list[str]:
    """A figure on the GPU, on the CPU, and the ratio."""
    here, there = row["gpu"][what], row.get("cpu", {}).get(what)
    if there is None:
        return [number(here), "", ""]
    return [number(here), number(there), f"{here / there:.1f}"]


def speed(records: Records) -> str:
    rows = [
        [f"`{name}`", number(row["gpu"]["steps"]), *cells(row, "words"), *cells(row, "annotation")]
        for name, row in timed(records).items()
    ]
    return table(
        [
            "config",
            "steps a second",
            "words a second in training",
            "one CPU core",
            "ratio",
            "words a second annotated",
            "one CPU core",
            "ratio",
        ],
        rows,
    )


def decoders_table(records: Records) -> str:
    return decoders(records["decoders-ontonotes"]["results"]["models"])


TABLES = {
    "speed": speed,
    "trainings": trainings,
    "ontonotes": ontonotes,
    "tener_and_parser": tener_and_parser,
    "decoders": decoders_table,
}


def ratios(records: Records, what: str) -> list[float]:
    """How many times as fast as a CPU core the GPU is, in each row that has both."""
    both = [row for row in timed(records).values() if "cpu" in row]
    return [row["gpu"][what] / row["cpu"][what] for row in both]


def told(records: Records, what: str) -> str:
    """The least and the greatest of the ratios."""
    found = ratios(records, what)
    return f"{min(found):.1f} to {max(found):.0f} times as"


def gains(records: Records, part: str, name: str = "calibrated") -> list[float]:
    """The points of F1 that `mbr` brings to each model, calibrated or not (`mbr`)."""
    models = records["decoders-ontonotes"]["results"]["models"]
    return [100 * (model[name][part] - model["viterbi"][part]) for model in models]


def gained(records: Records, part: str, name: str = "calibrated") -> str:
    """The points of F1 that `mbr` brings in the mean."""
    points = gains(records, part, name)
    return f"{sum(points) / len(points):.2f}"


def headline(records: Records) -> str:
    return f"an H200 annotates {told(records, 'annotation')} fast as a CPU core"


def claims(records: Records) -> list[str]:
    own, alone = runs(records), runs(records, ONTONOTES)
    later = runs(records, TENER_AND_PARSER)
    least, most = sorted(passes(record) for record in later["tener"].values())
    small = later["parser_small_batch"]
    assert all(round(passes(record)) == 6 for record in small.values())
    (parser,) = own["parser"].values()
    tener = records["speed"]["results"]["rows"]["ner/tener.cfg"]["gpu"]["words"]
    minutes = EPOCHS * WORDS["conll2003"] / tener / 60
    joined = records["joined-ontonotes"]["results"]
    cut = [
        1 - record["results"]["steps"] / record["results"]["planned_steps"]
        for found in alone.values()
        for record in found.values()
    ]
    assert min(gains(records, "dev", "mbr") + gains(records, "test", "mbr")) > 0.2
    assert max(alone, key=lambda run: sum(scores(alone[run], "dev"))) == CHOSEN
    return [
        f"for {EPOCHS} epochs takes {minutes:.0f} minutes",
        f"the GPU trains on {told(records, 'words')} many words a second as one CPU core",
        f"annotates {told(records, 'annotation')} many words",
        f"a test F1 of {mean(own['conll2003'], 'test')} in the mean",
        f"{mean(own['ontonotes'], 'test')} after less than five passes",
        f"has a test F1 of {percent(parser['results']['test'])} after {passes(parser):.1f} passes",
        f"After {least:.0f} to {most:.0f} passes, the test F1 is {mean(later['tener'], 'test')} in "
        "the mean of two seeds",
        f"has a test F1 of {mean(small, 'test')} in the mean after about 6 passes",
        f"has {percent(parser['results']['test'])} after {passes(parser):.1f} (above)",
        f"{sum(share > 0 for share in cut)} trainings made up to {max(cut):.0%} fewer steps",
        f"a dev F1 of {mean(alone[CHOSEN], 'dev')} and a test F1 of {mean(alone[CHOSEN], 'test')}",
        f"{gained(records, 'dev', 'mbr')} points of dev F1 and {gained(records, 'test', 'mbr')} of "
        "test F1",
        f"with the temperature, {gained(records, 'dev')} and {gained(records, 'test')}",
        f"have a dev F1 of {percent(joined['dev'])} and a test F1 of {percent(joined['test'])}",
    ]
