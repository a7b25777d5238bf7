"""The tables on the page of this experiment, and the numbers in its text."""

from typing import Any

from benchmarks.tables import Records, file_link, rate, table

GIGA = 1e9


def _rows(records: Records, name: str, section: str) -> dict[str, Any]:
    return dict(records[name]["results"][section]["rows"])


def loading(records: Records) -> str:
    body = [
        [name, *(f"{1 / row[unit]['median']:.2f}" for unit in ("per_second", "per_cpu_second"))]
        for name, row in _rows(records, "memory", "loading").items()
    ]
    return table(["to import spaCy and open the pipeline", "seconds", "of processor time"], body)


def memory(records: Records) -> str:
    body = [
        [
            name,
            title,
            f"{run['words']:,}",
            f"{run['loaded_bytes'] / GIGA:.2f}",
            f"{run['peak_bytes'] / GIGA:.2f}",
            f"{1e6 * run['seconds'] / run['words']:.0f}",
        ]
        for name, row in _rows(records, "memory", "memory").items()
        for kind, title in (("stream", "stream"), ("long", "one doc"))
        for run in row[kind]
    ]
    return table(["", "", "words", "GB when open", "GB at most", "µs a word"], body)


def _growth(records: Records, section: str, unit: str) -> str:
    rows = _rows(records, "growth", section)
    counts = list(next(iter(rows.values())))
    body = [
        [name, *(f"{1e6 / rate(row[count]):.0f}" for count in counts)] for name, row in rows.items()
    ]
    return table([f"µs a word, by {unit}", *counts], body)


def lengths(records: Records) -> str:
    return _growth(records, "lengths", "words in a sentence")


def labels(records: Records) -> str:
    return _growth(records, "labels", "tags")


def training(records: Records) -> str:
    found = records["training-ontonotes-psa"]["results"]
    row = [f"{found['steps']:,}", f"{found['seconds']:.1f}", f"{found['peak_bytes'] / GIGA:.2f}"]
    return table(
        ["steps", "seconds", "GB at most", "record"], [[*row, file_link("training-ontonotes-psa")]]
    )


STREAMS = {
    "annotate": "`spacy-psa annotate`",
    "annotate-2": "`spacy-psa annotate --n-process 2`",
    "pipe": "`nlp.pipe` in a memory zone",
}
WARM = 300
"""Seconds after which memory is to be flat."""


def _stream(records: Records, mode: str) -> tuple[dict[str, Any], list[int]]:
    """The results of a stream, and the bytes of all its processes, from `WARM` seconds on."""
    found = records[f"stream-{mode}"]["results"]
    return found, [
        sum(sample["resident"]) for sample in found["samples"] if sample["seconds"] >= WARM
    ]


def streams(records: Records) -> str:
    body = []
    for mode, title in STREAMS.items():
        found, resident = _stream(records, mode)
        files = [sum(found["samples"][place]["files"]) for place in (0, -1)]
        body.append(
            [
                title,
                f"{found['seconds'] / 60:.0f}",
                f"{found['words']:,}",
                f"{found['new_words']:,}",
                f"{resident[0] / 1e6:,.0f}",
                f"{min(resident) / 1e6:,.0f} to {max(resident) / 1e6:,.0f}",
                f"{100 * (max(resident) / resident[0] - 1):+.1f} %",
                " → ".join(map(str, files)),
                file_link(f"stream-{mode}"),
            ]
        )
    header = [
        "", "minutes", "words", "of them new", "MB after 5 minutes", "MB from then on",
        "at most", "open files", "record",
    ]  # fmt: skip
    return table(header, body)


def aims(records: Records) -> str:
    opened = _rows(records, "memory", "loading")
    slower = (
        opened["spacy-accuracy"]["per_second"]["median"] / opened["psa"]["per_second"]["median"]
    )
    peaks = _rows(records, "memory", "memory")

    def streams(name: str) -> str:
        few, many = (f"{run['peak_bytes'] / GIGA:.2f}" for run in peaks[name]["stream"])
        return f"{name} {many} GB ({few} at 200,000 words)"

    def micros(run: dict[str, Any]) -> str:
        return f"{1e6 * run['seconds'] / run['words']:.0f}"

    def giga(run: dict[str, Any]) -> str:
        return f"{run['peak_bytes'] / GIGA:.2f}"

    short, *_, long = peaks["psa"]["long"]
    trained = records["training-ontonotes-psa"]["results"]["peak_bytes"] / GIGA
    body = [
        [
            "loading takes at most 2 × the time of the spaCy model with the same vectors",
            f"psa {slower:.2f} ×",
        ],
        [
            "a million words in at most 1.2 GB, no growth from 200,000 on",
            f"{streams('psa')}, {streams('bilstm_crf')}",
        ],
        [
            "one doc of 100,000 words without sentences in less than 2 GB, in linear time",
            f"psa {giga(long)} GB, {micros(long)} µs a word ({micros(short)} at 25,000 words); "
            f"bilstm_crf {giga(peaks['bilstm_crf']['long'][-1])} GB",
        ],
        ["training psa on OntoNotes in less than 4 GB", f"{trained:.2f} GB"],
    ]
    return table(["aim", "reached"], body)


TABLES = {
    "aims": aims,
    "loading": loading,
    "streams": streams,
    "memory": memory,
    "training": training,
    "lengths": lengths,
    "labels": labels,
}


def headline(records: Records) -> str:
    run = _rows(records, "memory", "memory")["psa"]["stream"][-1]
    return f"psa annotates {run['words']:,} words in {run['peak_bytes'] / GIGA:.2f} GB at most"


def claims(records: Records) -> list[str]:
    steps = records["training-ontonotes-psa"]["results"]["steps"]
    most = max(max(found) / found[0] - 1 for _, found in (_stream(records, m) for m in STREAMS))
    return [f"{steps:,} training steps", f"at most {100 * most:.1f} % above"]
