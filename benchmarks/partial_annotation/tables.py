"""The tables on the page of this experiment, and the numbers in its text."""

from benchmarks.record import FOLDER, read_record
from benchmarks.tables import (
    Records,
    best_dev,
    dev_rows,
    file_link,
    gap,
    percent,
    precision_recall_f,
    table,
    test_f,
)

SYSTEMS = (
    ("mentions-marginal", "BiLSTM-CRF, `configs/ner/bilstm_crf.cfg`", "missing, summed out"),
    ("mentions-as_o", "the same", "outside (`O`)"),
    (
        "mentions-spacy_ner",
        "spaCy's `ner`, `spacy init config -o accuracy`, the same vectors",
        "missing",
    ),
)


def main_table(records: Records) -> str:
    rows = [
        [
            system,
            hidden,
            best_dev(records[name], records[name]["config"]["training"]["max_epochs"]),
            *precision_recall_f(records[name]),
            file_link(name),
        ]
        for name, system, hidden in SYSTEMS
    ]
    header = ["system", "training takes hidden entities as", "dev F1 (best epoch of)"]
    return table([*header, "test P", "test R", "test F1", "record"], rows)


TABLES = {"main": main_table}


def headline(records: Records) -> str:
    figures = {"summed out": "mentions-marginal", "taken for `O`": "mentions-as_o"}
    told = [f"{percent(test_f(records[name]))} {how}" for how, name in figures.items()]
    return f"test F1 with hidden entities {', '.join(told)}"


def claims(records: Records) -> list[str]:
    marginal, as_o, theirs = (records[name] for name, _, _ in SYSTEMS)
    setup = marginal["results"]["setup"]
    epochs = marginal["config"]["training"]["max_epochs"]
    whole = read_record(FOLDER / "conll2003" / "results" / "bilstm_crf.json")
    best = max(row["score"] for row in dev_rows(whole) if row["epoch"] <= epochs)
    return [
        f"{setup['kept'] + setup['hidden']:,} entities of the training data",
        f"hides {setup['hidden']:,} of",
        f"brings {gap(test_f(marginal), test_f(as_o), 1)} points over taking it for `O`",
        f"{gap(test_f(marginal), test_f(theirs), 1)} points over spaCy's `ner`",
        f"{percent(best)} on development data as the best of {epochs} epochs",
    ]
