"""The figures that README.md and docs/ cite, made from the records.

`python -m benchmarks.tables` makes the tables of these pages anew. The tests look for the phrases
of `Cited.claims` in the text of a page.
"""

from collections.abc import Callable, Mapping
from statistics import mean
from typing import Any, NamedTuple

from benchmarks import choose
from benchmarks.choose import lost_by_int8, seeds, test_set
from benchmarks.documents.tables import (
    by_decoder,
    decoded,
    gained_on_sentences,
    mbr_speed,
    memory_speed,
)
from benchmarks.gpu.tables import gained as gained_by_mbr
from benchmarks.gpu.tables import told as faster_on_gpu
from benchmarks.parser.tables import seeds_of_best
from benchmarks.parser_speed.tables import rows_of_speed
from benchmarks.recipes.tables import found
from benchmarks.small_data.tables import sample_scores
from benchmarks.tables import (
    Everything,
    gap,
    number,
    percent,
    ratio,
    spread,
    table,
    test_f,
)


def parser_speed(everything: Everything) -> str:
    header = ["sentences a second", "whole", "encoder and span scores", "chart (CKY)"]
    rows = [row[:-1] for row in rows_of_speed(everything["parser_speed"])]
    return table([*header, "the chart's share"], rows)


def ensembles(everything: Everything) -> list[str]:
    records, recipes = everything["documents"], everything["recipes"]
    chunkers = [percent(f1) for f1 in found(recipes, "train_dev_chunks", "best", "test")]
    joined_chunkers = percent(recipes["joined_train_dev_chunks"]["results"]["test"])
    student = spread(found(recipes, "distilled_wide_chunks", "raw", "test"))
    two, three, between, best = (
        percent(records[name]["results"]["test"])
        for name in ("ensemble", "joined-content_words", "joined-memory_between", "joined-best")
    )

    def told(names: tuple[str, ...]) -> str:
        *first, last = (percent(test_f(records[name])) for name in names)
        return f"{', '.join(first)} and {last}"

    trees = seeds_of_best(everything["parser"])
    parsers = [percent(trees[seed][1]) for seed in ("1", "2")]
    joined_parsers = percent(everything["parser"]["joined-best"]["results"]["test"])
    return [
        f"reach {parsers[0]} and {parsers[1]} on OntoNotes' Wall Street Journal; joined, "
        f"{joined_parsers}",
        f"reach a test F1 of {told(seeds('best'))} on CoNLL-2003; joined, {best}",
        f"reach {told(seeds('memory', 2))}; joined, {two}",
        f"reach {told(seeds('content_words'))}; joined, {three}",
        f"reach {told(seeds('memory_between'))}; joined, {between}",
        f"F1 of {', '.join(chunkers[:-1])} and {chunkers[-1]}; joined, {joined_chunkers}",
        f"500 units that learns from the three, also on raw text, reaches {student}",
    ]


def graphics_card(everything: Everything) -> list[str]:
    records = everything["gpu"]
    found = [records[f"conll2003-{seed}"]["results"] for seed in (1, 2, 3)]
    assert max(row["seconds"] for row in found) < 6 * 60
    return [
        f"trains on {faster_on_gpu(records, 'words')} many words a second as one CPU core",
        f"annotates {faster_on_gpu(records, 'annotation')} many words",
        f"a test F1 of {percent(mean(row['test'] for row in found))} in the mean",
    ]


def confidence(everything: Everything) -> list[str]:
    records = everything["gpu"]
    models = len(records["decoders-ontonotes"]["results"]["models"])
    dev, test = (gained_by_mbr(records, part) for part in ("dev", "test"))
    viterbi, mbr, calibrated = (
        percent(mean(decoded(everything["documents"], name, "test")))
        for name in ("viterbi", "mbr", "calibrated")
    )
    return [
        f'a test F1 of {viterbi} with `"viterbi"`, {mbr} with `"mbr"`, and {calibrated} with '
        '`"mbr"` at the fitted temperature',
        f"annotates {mbr_speed(everything['documents']):.2f} × the words a second",
        f"On OntoNotes, the two bring {dev} points of dev F1 and {test} of test F1 in the mean of "
        f"{models} models",
    ]


def documents(everything: Everything) -> list[str]:
    best, memory = (memory_speed(everything["documents"][name]) for name in ("speed-best", "speed"))
    gained = gained_on_sentences(everything["documents"], "test")
    return [
        f"On single sentences of CoNLL-2003, it brings {gained:.1f} points of test F1",
        f"`configs/ner/best.cfg` annotates {best:.2f} × the words a second of the same pipeline "
        f"without its memory, one of `memory.cfg` {memory:.2f} ×",
    ]


def partial_annotation(everything: Everything) -> list[str]:
    records = everything["partial_annotation"]
    marginal, as_o = (percent(test_f(records[f"mentions-{name}"])) for name in ("marginal", "as_o"))
    return [f'test F1 of {marginal}; training that takes them as "no entity" reaches {as_o}']


def faster(everything: Everything) -> list[str]:
    records, rows = everything["speed"], test_set(everything)
    parts = [records["bfloat16"]["results"]["annotation"]["rows"]]
    parts += [records[name]["results"]["training"]["rows"] for name in ("bfloat16", "bfloat16-50")]
    psa, baseline = (
        [f"{ratio(part, f'{name}-bfloat16', name, 'per_cpu_second'):.2f}" for part in parts]
        for name in ("psa", "bilstm_crf")
    )
    memory, in_bfloat16 = (
        [test_f(everything["documents"][each]) for each in seeds(name)]
        for name in ("memory", "bfloat16")
    )
    systems = everything["systems"]
    adam, sgd = (test_f(systems[name]) for name in ("ontonotes-psa-adam", "ontonotes-psa"))
    return [
        f"becomes {ratio(rows, 'int8 psa', 'psa'):.1f} times as fast and loses "
        f"{lost_by_int8(everything)} points of F1; the BiLSTM-CRF becomes "
        f"{ratio(rows, 'int8 bilstm_crf', 'bilstm_crf'):.1f} times as fast",
        f"make PSA {ratio(rows, 'psa-half', 'psa'):.1f} times as fast",
        f"annotates {psa[0]} times as many words a second as in float32, and trains {psa[1]} times "
        f"as many steps in batches of 10 sentences, {psa[2]} times in batches of 50",
        f"The BiLSTM-CRF gains {baseline[0]}, {baseline[1]} and {baseline[2]}",
        f"trained in bfloat16 has a test F1 of {spread(in_bfloat16)} on CoNLL-2003, and of "
        f"{spread(memory)} in float32",
        f"three passes of Adam gave {gap(adam, sgd, 1)} points more of test F1 than three of SGD",
    ]


def treebank(everything: Everything) -> list[str]:
    speeds, parser = everything["parser_speed"], everything["parser"]
    whole = {name: rate_of(record) for name, record in speeds.items() if name in SIZES}
    small, best = parser["small-log_likelihood"], parser["best-0"]
    tags = parser["table_5"]["results"]["runs"]["factored"]["1"]["dev"]
    letters = parser["told_apart"]["results"]["runs"]["passes"]["1"]["dev"]
    return [
        f"after six passes (dev F1 {percent(tags)}, letters alone {percent(letters)})",
        f"parses {whole['small']} sentences a second on two cores | {percent(test_f(small))} |",
        f"parses {number(best['results']['speed']['words_per_second'])} words a second on one core "
        f"| {spread([test for _, test in seeds_of_best(parser).values()])} |",
        f"it parses {whole['factored']} sentences a second on two cores, "
        f"{whole['factored-bfloat16']} in bfloat16",
    ]


SIZES = ("small", "factored", "factored-bfloat16")


def rate_of(record: Mapping[str, Any]) -> str:
    """The sentences a second of a parser."""
    return number(record["results"]["rows"]["whole"]["per_second"]["median"])


def parser(everything: Everything) -> list[str]:
    records = everything["parser"]
    treebank, mixed = (records["quotes"]["results"]["rows"][name] for name in ("treebank", "mixed"))
    raw = records["raw_text"]["results"]
    tokens, weak = raw["tokens"]["straight"], raw["rows"]["mixed"]["straight"]
    timed = everything["parser_speed"]["factored"]["results"]
    return [
        f"falls from F1 {percent(treebank['treebank'])} to {percent(treebank['straight'])} with "
        f"straight ones, and is at {percent(treebank['straight, mapped'])} with",
        f"has {percent(mixed['treebank'])} with the treebank's and {percent(mixed['straight'])}",
        f"finds {tokens['found'] / tokens['words']:.1%} of the treebank's words",
        f"({percent(weak['treebank'])} to {percent(weak['spacy'])} for the one",
        f"{timed['sentences']:,} sentences of {timed['words'] / timed['sentences']:.0f} words",
    ]


def machines(everything: Everything) -> list[str]:
    found = everything["many_machines"]["simulation"]["results"]
    return [
        f"v = {number(found['speed'])}",
        f"d = {1e3 * found['driver']:.1f} ms",
        f"{number(found['start'])} s to start a worker",
        *(
            f"| {number(each['hours'])} | {number(each['core_hours'])} | {number(each['money'])} | "
            f"{100 * each['driver_busy']:.1f} |"
            for each in found["collections"]
            if each["shard_words"] == 1e6
        ),
    ]


def readme(everything: Everything) -> list[str]:
    ours, theirs = (
        mean(sample_scores(everything["small_data"], "conll2003", True, "1000", name, "test"))
        for name in ("ours", "efficiency")
    )
    best = [test_f(everything["documents"][name]) for name in seeds("best")]
    joined = by_decoder(everything["documents"])[-1]["calibrated"]["test"]
    calibrated = decoded(everything["documents"], "calibrated", "test")
    row = everything["gpu"]["speed"]["results"]["rows"]["ner/best.cfg"]
    gpu, core = (number(row[device]["annotation"]) for device in ("gpu", "cpu"))
    return [
        f"`best.cfg` annotates {gpu} words a second, and {core} on one core",
        f"reaches a test F1 of {spread(best)} on CoNLL-2003",
        f"they reach {spread(calibrated)}; joined, {percent(joined)}",
        f"test F1 is {percent(ours, 1)}. spaCy's `ner` reaches {percent(theirs, 1)} after the same "
        "time",
    ]


class Cited(NamedTuple):
    """A page that cites figures: its tables, by name, and the phrases with figures in its text."""

    claims: Callable[[Everything], list[str]]
    tables: Mapping[str, Callable[[Everything], str]] = {}


PAGES = {
    "README.md": Cited(readme),
    "docs/how-to/choose.md": Cited(choose.claims, choose.TABLES),
    "docs/how-to/confidence.md": Cited(confidence),
    "docs/how-to/documents.md": Cited(documents),
    "docs/how-to/ensembles.md": Cited(ensembles),
    "docs/how-to/gpu.md": Cited(graphics_card),
    "docs/how-to/many-machines.md": Cited(machines),
    "docs/how-to/own-treebank.md": Cited(treebank),
    "docs/how-to/parser.md": Cited(parser, {"speed": parser_speed}),
    "docs/how-to/partial-annotation.md": Cited(partial_annotation),
    "docs/how-to/speed.md": Cited(faster),
}
