"""The tables on the page of this experiment, and the numbers in its text."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.record import FOLDER, read_record
from benchmarks.tables import (
    Records,
    dev_rows,
    file_link,
    gap,
    number,
    percent,
    rate,
    ratio,
    table,
    test_f,
)

TITLES = {
    "psa-half": "psa, half",
    "bilstm_crf-half": "bilstm_crf, half",
    "int8 psa-half": "int8 psa, half",
}


def section(records: Records, name: str, part: str) -> dict[str, Any]:
    """The rows of a section of a record."""
    return dict(records[name]["results"][part]["rows"])


def cells(row: Mapping[str, Any]) -> list[str]:
    """The median, and the quartiles by the clock."""
    wall = row["per_second"]
    return [number(wall["median"]), f"{number(wall['lower'])} … {number(wall['upper'])}"]


def rates(rows: Mapping[str, Any], unit: str) -> str:
    """A table with the rate of each row, and the ratio to the first."""
    body = [
        [
            TITLES.get(name, name),
            *cells(row),
            number(rate(row)),
            f"{ratio(rows, name, 'bilstm_crf', 'per_cpu_second'):.2f}",
        ]
        for name, row in rows.items()
    ]
    return table([unit, "median", "quartiles", "of processor time", "× bilstm_crf"], body)


def annotation(records: Records) -> str:
    return rates(section(records, "test_set", "annotation"), "words a second")


def training(records: Records) -> str:
    return rates(section(records, "test_set", "training"), "steps a second")


def repeated(records: Records) -> str:
    rows = section(records, "repeated", "annotation")
    order = [
        "bilstm_crf", "psa", "psa-half", "int8 psa", "bilstm_crf, bare PyTorch",
        "psa, bare PyTorch", "spacy-accuracy", "spacy-efficiency", "flair",
    ]  # fmt: skip
    assert sorted(order) == sorted(rows)
    others = ("spacy-accuracy", "spacy-efficiency", "flair")
    body = [
        [
            TITLES.get(name, name),
            *cells(rows[name]),
            *(f"{ratio(rows, name, other):.2f}" for other in others),
        ]
        for name in order
    ]
    return table(["words a second", "median", "quartiles", *(f"× {o}" for o in others)], body)


def encoders(records: Records) -> str:
    words, steps = (section(records, "encoders", part) for part in ("annotation", "training"))
    body = [
        [
            name,
            number(words[name]["per_second"]["median"]),
            f"{steps[name]['per_second']['median']:.{1 if name == 'cross' else 2}f}",
            f"{ratio(steps, name, 'bilstm_crf'):.2f}",
        ]
        for name in ("tener", "transformer", "cross")
    ]
    header = ["", "words a second", "training steps a second"]
    return table([*header, "× bilstm_crf there, in training"], body)


def ontonotes(records: Records) -> str:
    rows = section(records, "ontonotes", "annotation")
    body = [
        [
            TITLES.get(name, name),
            number(row["per_second"]["median"]),
            *(f"{ratio(rows, name, o):.2f}" for o in ("spacy-accuracy", "spacy-efficiency")),
        ]
        for name, row in rows.items()
    ]
    return table(["", "words a second", "× spacy-accuracy", "× spacy-efficiency"], body)


def aims(records: Records) -> str:
    """What the issue on speed asked for, and what was reached."""
    once, again = (section(records, name, "annotation") for name in ("test_set", "repeated"))
    steps, tener = (section(records, name, "training") for name in ("test_set", "tener"))
    large = section(records, "encoders", "training")

    def pair(
        names: Sequence[tuple[str, str]], other: str, digits: int = 2, but: Sequence[str] = ()
    ) -> list[str]:
        """Both cells: how many times as fast as another row some rows are."""
        both = []
        for rows in (once, again):
            told = [
                f"{label}{ratio(rows, name, other):.{digits}f} ×"
                for label, name in names
                if name in rows and name not in but
            ]
            both.append(", ".join(told))
        return both

    psa = [("", "psa"), ("int8 ", "int8 psa"), ("half ", "psa-half")]
    overhead = [
        f"{name} {ratio(steps, f'{name}, bare PyTorch', name):.2f} ×"
        for name in ("bilstm_crf", "psa")
    ]
    own = ratio(steps, "psa-half", "bilstm_crf-half")
    body = [
        [
            "annotation: bilstm_crf at least 8 × the accuracy config of spaCy",
            *pair([("", "bilstm_crf")], "spacy-accuracy", 1),
        ],
        ["psa at least 5 × the same", *pair([psa[0], psa[2]], "spacy-accuracy", 1)],
        ["psa at least 1.0 × the efficiency config of spaCy", *pair(psa, "spacy-efficiency")],
        [
            "bilstm_crf at least 1.5 × Flair",
            *pair([("", "bilstm_crf"), ("half ", "bilstm_crf-half")], "flair"),
        ],
        ["psa at least 1.0 × Flair", *pair(psa, "flair")],
        [
            "training: a step through spaCy takes at most 1.20 × the time of the bare loop",
            ", ".join(overhead),
            "",
        ],
        [
            "PSA at least 0.87 × the steps of its baseline (Wei2020: 20 of 23)",
            f"{ratio(steps, 'psa', 'bilstm_crf'):.2f} ×, half {own:.2f} × of its own baseline",
            f"{ratio(tener, 'psa', 'bilstm_crf'):.2f} × on that machine",
        ],
        [
            "TENER at least 1.0 × the steps of the BiLSTM-CRF",
            f"{ratio(large, 'tener', 'bilstm_crf'):.2f} × at the size of its authors",
            "8 heads of 64 on that machine: "
            f"{ratio(tener, 'tener-8x64', 'bilstm_crf'):.2f} ×, in bfloat16 "
            f"{ratio(tener, 'tener-8x64-bfloat16', 'bilstm_crf'):.2f} ×",
        ],
    ]
    return table(["aim, on one thread", "test set once", "repeated"], body)


def exactness(records: Records) -> str:
    body = []
    for name in ("bilstm_crf", "psa"):
        found = records[f"exactness-{name}"]["results"]
        body.append(
            [
                name,
                f"{found['entities']:,}",
                f"{found['documents_that_differ']} of {found['documents']:,}",
                f"{found['largest_difference_of_potentials']:.1e} of "
                f"{found['largest_potential']:.1f}",
                f"{found['largest_difference_of_log_partitions']:.1e}",
                file_link(f"exactness-{name}"),
            ]
        )
    header = ["", "entities", "documents that differ", "largest difference of potentials"]
    return table([*header, "of log partitions", "record"], body)


def first_document(records: Records) -> str:
    body = []
    for path, found in records["first_document"]["results"]["models"].items():
        name = path.removeprefix("training/").removesuffix("/model-best")
        spans = []
        for key in ("first", "second", "then"):
            seconds = [run[key] for run in found["runs"]]
            digits = 3 if key == "then" else 2
            spans.append(f"{min(seconds):.{digits}f} … {max(seconds):.{digits}f}")
        body.append([f"`{name}`", *spans])
    header = ["seconds, least … most of 3", "after an install", "in a later process"]
    return table([*header, "a further document"], body)


def products(records: Records) -> str:
    found = records["products"]["results"]["multiplications_e9"]
    body = [[size, f"{value:.1f}"] for size, value in found.items()]
    return table(["rows × width", "10⁹ multiplications a second"], body)


def side_by_side(record: Mapping[str, Any]) -> str:
    """Two versions: the median rate of each, and the median ratio over the rounds."""
    body = [
        [name, unit, *(number(median(row[unit][key])) for key in ("before", "after")), ratio_cell]
        for name, row in record["results"]["rows"].items()
        for unit in ("words", "steps")
        for ratio_cell in [f"{row[unit]['ratio']:.2f}"]
    ]
    named = record["results"]["versions"]
    header = ["", "a second", named["before"], named["after"], "after / before"]
    return table(header, body)


def versions(records: Records) -> str:
    return side_by_side(records["versions"])


def pairs(records: Records) -> str:
    return side_by_side(records["pairs"])


def head(records: Records) -> str:
    rows = section(records, "pairs-head", "training")
    body = [[name, number(rate(row)), f"{head_gain(rows, name):.2f}"] for name, row in rows.items()]
    return table(["", "training steps a second", "× label_pair"], body)


def head_gain(rows: Mapping[str, Any], name: str) -> float:
    """How many times the steps of the same system with `label_pair` a row makes."""
    return ratio(rows, name, name.removesuffix("-transition"), "per_cpu_second")


def int8(records: Records) -> str:
    body = [
        [name, percent(test_f(records[f"{name}-int8"])), file_link(f"{name}-int8")]
        for name in ("bilstm_crf", "psa")
    ]
    return table(["weights in int8", "test F1", "record"], body)


def int8_beside(records: Records, name: str) -> str:
    """Pipelines in int8 beside themselves in float32."""
    body = []
    for row, found in records[name]["results"]["rows"].items():
        words = [number(rate(found[form])) for form in ("float32", "int8")]
        cells = [row, *words, f"{found['ratio']:.2f}", f"{found['loading_ratio']:.2f}"]
        if scores := found["scores"]:
            cells.append(" → ".join(percent(scores[form]["tree_f"]) for form in scores))
        body.append(cells)
    header = ["", "words a second", "in int8", "×", "time to load, ×"]
    trained = any(len(cells) > len(header) for cells in body)
    header += ["dev F1"] if trained else []
    return table(header, [[*cells, *[""] * (len(header) - len(cells))] for cells in body])


def int8_encoders(records: Records) -> str:
    return int8_beside(records, "int8-encoders")


def int8_parser(records: Records) -> str:
    return int8_beside(records, "int8-parser")


def bound(records: Records) -> str:
    """Training steps beside the least time of the linear layers."""
    rows = records["bound"]["results"]["rows"]
    body = [
        [
            name,
            f"{row['multiplications'] / 1e6:.1f}" if row["layers"] else "",
            number(rate(row["steps"])),
            f"{row['ratio']:.2f}",
            *(f"{ms:.1f}" if row["layers"] else "" for ms in row["least"].values()),
            f"{row['bound']:.2f}" if row["bound"] else "",
        ]
        for name, row in rows.items()
    ]
    header = ["", "million multiplications a word in linear layers", "steps a second"]
    header += ["× bilstm_crf", "products, ms", "conversions, ms", "optimizer, ms", "at most ×"]
    return table(header, body)


def bfloat16(records: Records) -> str:
    """Each system in both precisions, beside its own float32."""
    parts = [
        section(records, "bfloat16", "annotation"),
        section(records, "bfloat16", "training"),
        section(records, "bfloat16-50", "training"),
    ]
    body = []
    for name in parts[0]:
        cells = [name]
        for rows in parts:
            own = ratio(rows, name, name.removesuffix("-bfloat16"), "per_cpu_second")
            cells += [number(rows[name]["per_cpu_second"]["median"]), f"{own:.2f}"]
        body.append(cells)
    header = ["", "words a second", "× float32"]
    for batch in (10, 50):
        header += [f"steps a second, batches of {batch}", "× float32"]
    return table(header, body)


def cores(records: Records) -> str:
    rows = records["cores"]["results"]["rows"]["4000"]
    body = [
        [name, number(median(row["words"])), f"{row['ratio']:.2f}"] for name, row in rows.items()
    ]
    return table(["row", "words a second", "ratio to 1 thread"], body)


TABLES = {
    "annotation": annotation,
    "training": training,
    "repeated": repeated,
    "ontonotes": ontonotes,
    "encoders": encoders,
    "aims": aims,
    "int8": int8,
    "int8_encoders": int8_encoders,
    "int8_parser": int8_parser,
    "bfloat16": bfloat16,
    "bound": bound,
    "products": products,
    "exactness": exactness,
    "first_document": first_document,
    "versions": versions,
    "pairs": pairs,
    "head": head,
    "cores": cores,
}


def headline(records: Records) -> str:
    rows = section(records, "test_set", "annotation")
    told = [f"{name} {number(rate(rows[name]))}" for name in ("bilstm_crf", "psa", "int8 psa")]
    return f"words a second on one thread: {', '.join(told)}"


def claims(records: Records) -> list[str]:
    steps, tener = (section(records, name, "training") for name in ("test_set", "tener"))
    once, again = (section(records, name, "annotation") for name in ("test_set", "repeated"))
    most = max(records["products"]["results"]["multiplications_e9"].values())
    narrow = records["products"]["results"]["multiplications_e9"]["145 x 600"]
    version = records["test_set"]["versions"]
    psa = again["psa"]["per_second"]["median"]
    middle = {name: row["per_second"]["median"] for name, row in tener.items()}
    bound = 12_200  # words a second: most / 4.8 million, as the page says
    assert round(most * 1e9 / 4.8e6, -2) == bound
    waits = {
        name: [
            sorted(round(run[key], 2) for run in found["runs"])
            for path, found in records["first_document"]["results"]["models"].items()
            if name in path
            for key in ("first", "second")
        ]
        for name in ("psa", "bilstm_crf")
    }
    later = sorted(waits["psa"][1] + waits["bilstm_crf"][1])
    lost = gap(
        test_f(read_record(FOLDER / "conll2003" / "results" / "psa.json")),
        test_f(records["psa-int8"]),
    )
    step = records["bound"]["results"]
    ms = {name: 1e3 / rate(row["steps"]) for name, row in step["rows"].items()}
    layers = {name: sum(row["least"].values()) for name, row in step["rows"].items()}
    own = ms["psa"] / (ms["bilstm_crf"] + layers["psa-bfloat16"])
    spare = ms["bilstm_crf"] * step["encoder_share"] - layers["tener-8x64"]
    heads = section(records, "pairs-head", "training")
    gain = {name: head_gain(heads, f"{name}-transition") for name in ("bilstm_crf", "psa")}
    paired = records["pairs"]["results"]["rows"]
    most_steps = {name: gain[name] * paired[name]["steps"]["ratio"] for name in gain}
    large = rate(section(records, "tener_full_size", "training")["tener"])
    whole = read_record(FOLDER / "systems" / "results" / "conll2003-tener-full_size.json")
    batch = whole["config"]["training"]["batcher"]["size"]
    assert records["tener_full_size"]["results"]["training"]["batch"] == batch
    last = dev_rows(whole)[-1]
    hours = last["step"] / large / 3600
    epoch_hours = hours / last["epoch"]
    on_cores = records["cores"]["results"]["rows"]["4000"]
    quicker = on_cores["2 processes, codecs known"]["ratio"] / on_cores["2 processes"]["ratio"]
    return [
        f"bilstm_crf makes {gain['bilstm_crf']:.2f} × and psa {gain['psa']:.2f} × the steps",
        f"would be {most_steps['bilstm_crf']:.2f} × and {most_steps['psa']:.2f} ×",
        f"a step of 10 sentences ({step['words']} words)",
        f"outside of its encoder, {step['encoder_share']:.0%} of its step",
        f"{step['rows']['psa-bfloat16']['bound']:.2f} × is the most",
        f"would make {own:.2f} × its own steps",
        f"would leave {spare:.1f} ms",
        f"the two processes are {quicker:.2f} × as fast",
        f"all {records['test_set']['results']['annotation']['words']:,} words",
        f"takes {1 / ratio(once, 'psa', 'bilstm_crf'):.1f} times the time in annotation and "
        f"{1 / ratio(steps, 'psa', 'bilstm_crf'):.2f} times in training",
        f"{number(middle['tener-8x64'])} training steps a second, beside "
        f"{number(middle['bilstm_crf'])} of the BiLSTM-CRF",
        f"PSA makes {number(middle['psa'])} there",
        f"makes at most {most:.0f} · 10⁹ multiplications a second",
        f"the {narrow:.0f} · 10⁹ that the processor makes with so few rows",
        f"{psa:,.0f} words a second measured there are {100 * psa / bound:.0f}% of it, and 5 × the "
        "accuracy config of spaCy would be "
        f"{500 * again['spacy-accuracy']['per_second']['median'] / bound:.0f}%",
        f"The step of the baseline on that machine takes {1000 / middle['bilstm_crf']:.0f} ms",
        f"which is {ratio(tener, 'tener-8x64', 'bilstm_crf'):.2f} ×. With products in bfloat16 it "
        f"makes {number(middle['tener-8x64-bfloat16'])}, "
        f"{ratio(tener, 'tener-8x64-bfloat16', 'bilstm_crf'):.2f} ×",
        f"there, {ratio(tener, 'psa', 'bilstm_crf'):.2f} ×",
        f"TENER makes {large:.2f} training steps a second",
        f"That is {60 * epoch_hours:.0f} minutes for an epoch of CoNLL-2003. Six hours of one core "
        f"pay for {6 // epoch_hours:.0f} epochs, and the {last['epoch']} of [systems]"
        f"(../systems/README.md) would take {hours:.1f}",
        f"takes {waits['psa'][0][0]:.1f} to {waits['psa'][0][-1]:.1f} seconds with psa and "
        f"{waits['bilstm_crf'][0][0]:.1f} to {waits['bilstm_crf'][0][-1]:.1f} with bilstm_crf, in "
        f"later processes {later[0]:.2f} to {later[-1]:.2f}",
        f"{lost} points less than with float32 for psa",
        f"torch {version['torch']}",
    ]
