"""The tables on the page of this experiment, and the numbers in its text."""

from statistics import mean
from typing import Any

from benchmarks.tables import (
    Records,
    best_score,
    dev_rows,
    file_link,
    gap,
    percent,
    precision_recall_f,
    spread,
    table,
    test_f,
)

# Record, its row, and how often it is evaluated in a pass.
TRAINED = (
    ("best-0", "`best.cfg`", 1),
    ("small-log_likelihood", "`small.cfg`, as it is now", 2),
    ("small-max_margin", "`small.cfg`, as it was", 2),
)
# Row of Kitaev2018, what it is here, record, figure of the paper.
TABLE_5 = (
    ("LSTM", "`lstm.cfg`: two BiLSTM layers of 250, words and letters", "lstm", "92.24"),
    (
        "self-attentive",
        "not factored, inputs added, words and predicted tags",
        "unfactored",
        "92.67",
    ),
    ("+ factored", "words and predicted tags", "factored", "93.15"),
    ("+ CharLSTM", "`small.cfg`: letters alone", "chars", "93.61"),
)
# Run of told_apart.toml, and its row.
TOLD_APART = (
    ("now", "as it is now"),
    ("max_margin", "max-margin loss in place of the tree CRF"),
    ("dropouts", "dropouts of 0.2 in place of 0.1"),
    ("batches", "batches of 100 in place of 50, so half as many steps"),
    ("passes", "six passes in place of three"),
)
LAYERS = 4
TOKENS = ("treebank", "spacy", "treebank, differ", "spacy, differ")
COUNTS = ("words", "found", "split", "joined", "sentences", "constituents", "reachable")
WINDOWS = (5, 10, 15, 20, 30, 40)


def trained(records: Records) -> str:
    rows = []
    for name, title, evaluations in TRAINED:
        record = records[name]
        passes = [dev_rows(record).index(record["results"]["best"]) + 1, len(dev_rows(record))]
        best, last = (f"{count / evaluations:g}" for count in passes)
        exact = percent(record["results"]["scores"]["constituents_exact"])
        dev = f"{percent(best_score(record))} ({best} of {last})"
        rows.append([title, dev, *precision_recall_f(record), exact, file_link(name)])
    header = ["config", "dev F1 (best pass of)", "test P", "test R"]
    return table([*header, "test F1", "exact", "record"], rows)


def table_5(records: Records) -> str:
    rows = []
    for row, here, name, paper in TABLE_5:
        # Two evaluations a pass.
        scores = ", ".join(
            percent(each["score"]) for each in dev_rows(records[f"table5-{name}"])[1::2]
        )
        rows.append([row, here, scores, paper, file_link(f"table5-{name}")])
    header = ["Kitaev2018, Table 5", "here", "dev F1 after 1, 2 and 3 passes"]
    return table([*header, "Kitaev2018, full size, to the end", "record"], rows)


def seeds_of_best(records: Records) -> dict[str, tuple[float, float]]:
    """The dev and test F1 of each training of `best.cfg`, by its seed."""
    found = {"0": (test_f(records["best-0-dev"]), test_f(records["best-0"]))}
    runs = records["best_seeds"]["results"]["runs"]["best"]
    return found | {seed: (scores["dev"], scores["test"]) for seed, scores in runs.items()}


def best_seeds(records: Records) -> str:
    found = seeds_of_best(records)
    rows = [[seed, *map(percent, scores)] for seed, scores in sorted(found.items())]
    rows.append(["mean ± deviation", *(spread(part) for part in zip(*found.values()))])
    joined = records["joined-best"]["results"]
    rows.append(["1 and 2, joined", percent(joined["dev"]), percent(joined["test"])])
    return table(["seed of `best.cfg`", "dev F1", "test F1"], rows)


def told_apart(records: Records) -> str:
    runs = records["told_apart"]["results"]["runs"]
    base = runs["now"]["1"]["dev"]
    rows = []
    for name, title in TOLD_APART:
        if name not in runs:
            rows.append([title, "not yet", ""])
            continue
        dev = runs[name]["1"]["dev"]
        rows.append([title, percent(dev), "" if name == "now" else f"{100 * (dev - base):+.2f}"])
    return table(["`small.cfg`", "dev F1", "difference"], rows)


def table_5_longer(records: Records) -> str:
    runs = dict(records["table_5"]["results"]["runs"]) if "table_5" in records else {}
    runs |= {"chars": records["told_apart"]["results"]["runs"].get("passes")}
    rows = []
    for row, here, name, paper in TABLE_5:
        found = runs.get(name)
        rows.append([row, here, percent(found["1"]["dev"]) if found else "not yet", paper])
    header = ["Kitaev2018, Table 5", "here", "dev F1 after six passes"]
    return table([*header, "Kitaev2018, full size, to the end"], rows)


def _limited(records: Records, **limits: Any) -> str:
    """F1 under limits of the attention."""
    none: dict[str, Any] = {
        "disable_content": [],
        "disable_position": [],
        "window": None,
        "relaxed": True,
    }
    wanted = {**none, **limits}
    for row in records["small-ablation"]["results"]["rows"]:
        if all(row[key] == value for key, value in wanted.items()):
            return percent(row["f"])
    raise KeyError(f"no row for {limits}")


def layers(records: Records) -> str:
    every = list(range(LAYERS))
    sets = [every, *(every[:n] for n in (1, 2, 3)), *(every[LAYERS - n :] for n in (1, 2, 3))]
    rows = []
    for chosen in sets:
        name = "all four" if chosen == every else f"{chosen[0] + 1}-{chosen[-1] + 1}"
        if len(chosen) == 1:
            name = f"{chosen[0] + 1}"
        content = _limited(records, disable_content=chosen)
        rows.append([name, content, _limited(records, disable_position=chosen)])
    return table(["layers", "without content", "without position"], rows)


def windows(records: Records) -> str:
    rows = [
        [title, *(_limited(records, window=window, relaxed=relaxed) for window in WINDOWS)]
        for title, relaxed in (
            ("strict", False),
            ("relaxed: all words see the first and last ones", True),
        )
    ]
    return table(["window", *map(str, WINDOWS)], rows)


def quotes(records: Records) -> str:
    found = records["quotes"]["results"]["rows"]
    ways = list(found["treebank"])
    rows = [
        [f"trained on {title}", *(percent(found[name][way]) for way in ways)]
        for name, title in (("treebank", "the treebank's marks"), ("mixed", "mixed marks"))
    ]
    return table(["F1", *(f"test: {way}" for way in ways)], rows)


def raw_text(records: Records) -> str:
    found = records["raw_text"]["results"]["rows"]
    rows = [
        [f"trained on {title}", marks, *(percent(scores[key]) for key in TOKENS)]
        for name, title in (("treebank", "the treebank's marks"), ("mixed", "mixed marks"))
        for marks, scores in found[name].items()
    ]
    header = ["F1", "marks of the text", "treebank's tokens", "spaCy's tokens"]
    differ = ["where they differ: treebank's", "where they differ: spaCy's"]
    return table([*header, *differ], rows)


def raw_tokens(records: Records) -> str:
    rows = [
        [marks, *(f"{count[key]:,}" for key in COUNTS)]
        for marks, count in records["raw_text"]["results"]["tokens"].items()
        if marks in ("treebank", "straight")  # curly marks give the same
    ]
    header = ["marks", "words", "found", "split", "joined", "sentences without a difference"]
    return table([*header, "constituents", "reachable"], rows)


TABLES = {
    "trained": trained,
    "best_seeds": best_seeds,
    "table_5": table_5,
    "told_apart": told_apart,
    "table_5_longer": table_5_longer,
    "layers": layers,
    "windows": windows,
    "quotes": quotes,
    "raw_text": raw_text,
    "raw_tokens": raw_tokens,
}


def headline(records: Records) -> str:
    tests = [test for _, test in seeds_of_best(records).values()]
    return f"test F1 {spread(tests)} for `best.cfg`"


def claims(records: Records) -> list[str]:
    count = records["raw_text"]["results"]["tokens"]["straight"]
    documents = records["small-log_likelihood"]["results"]["test"]["documents"]
    joined, found = records["joined-best"]["results"], seeds_of_best(records)
    means = map(mean, zip(found["1"], found["2"]))
    gained = [gap(*parts) for parts in zip((joined["dev"], joined["test"]), means)]
    vectors = records["best"]["results"]["runs"]["lstm_vectors"]["1"]["dev"]
    return [
        f"It has a dev F1 of {percent(vectors)}, less",
        f"`best.cfg` has {percent(dev_rows(records['best-0'])[2]['score'])} after three",
        f"has {percent(test_f(records['best-0-dev']))} on development data",
        f"{_limited(records)} without limits",
        f"F1 {gained[0]} points above their mean, and {gained[1]} points of test F1",
        f"{documents:,} of section 23 to test",
        f"{count['found'] / count['words']:.1%} of the words are tokens",
    ]
