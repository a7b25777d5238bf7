"""The tables on the page of this experiment, and the numbers in its text."""

from collections.abc import Callable
from statistics import mean
from typing import Any

from benchmarks.tables import (
    Records,
    best_dev,
    best_score,
    dev_list,
    dev_loss,
    dev_rows,
    dev_score,
    file_link,
    gap,
    percent,
    precision_recall_f,
    spread,
    table,
    test_f,
)
from spacy_psa.scoring.statistics import seed_p_value

CLASSES = {
    "unknown": "no vector, not in the training data",
    "without_vector": "in the training data, no vector",
    "untrained": "a vector, not in the training data",
    "known": "both",
}
EARLY = (2, 4, 7)
SYSTEMS = {
    "bilstm_crf": "BiLSTM-CRF",
    "psa": "PSA",
    "psa_arxiv": "arXiv PSA",
}
"""The configured systems, by the name of the config."""


def main_table(records: Records) -> str:
    rows = []
    for name, title, paper in (
        ("bilstm_crf", "BiLSTM-CRF, `configs/ner/bilstm_crf.cfg`", "91.01 ± 0.21"),
        ("psa", "PSA-BiLSTM-CRF, `configs/ner/psa.cfg`", "91.33 ± 0.08"),
    ):
        record = records[name]
        speed = record["results"]["speed"]["words_per_second"]
        figures = [best_dev(record), *precision_recall_f(record), paper, f"{speed:,.0f}"]
        rows.append([title, *figures, file_link(name)])
    header = ["system", "dev F1 (best epoch of)", "test P", "test R", "test F1"]
    return table([*header, "paper, mean of 5", "words/s", "record"], rows)


def seeds(records: Records) -> str:
    """Each training of the configured systems, and the means."""
    rows = []
    for system in SYSTEMS:
        found = trainings(records, system)
        for name in found:
            record = records[name]
            figures = [best_dev(record), percent(test_f(record))]
            rows.append([system, str(record["seed"]), *figures, file_link(name)])
        if len(found) > 1:
            means = [spread(scores(records, system, score)) for score in (best_score, test_f)]
            rows.append([system, f"mean ± standard deviation of {len(found)}", *means, ""])
    return table(["system", "seed", "dev F1 (best epoch of)", "test F1", "record"], rows)


def trainings(records: Records, system: str) -> list[str]:
    """The records of a configured system: NAME with seed 0, NAME-seedN with the others."""
    found = sorted(name for name in records if name.startswith(f"{system}-seed"))
    return [system, *found] if system in records else found


def scores(records: Records, system: str, score: Callable[[Any], float]) -> list[float]:
    """A score of each training of a configured system."""
    return [score(records[name]) for name in trainings(records, system)]


def significance(records: Records) -> str:
    """The differences of the systems, and how sure they are."""
    rows = []
    for one, other in (("psa", "bilstm_crf"), ("psa_arxiv", "bilstm_crf"), ("psa", "psa_arxiv")):
        for part, score in (("development", best_score), ("test", test_f)):
            ours, theirs = scores(records, one, score), scores(records, other, score)
            rows.append(
                [
                    f"{SYSTEMS[one]} less {SYSTEMS[other]}",
                    part,
                    f"{len(ours)} and {len(theirs)}",
                    f"{100 * (mean(ours) - mean(theirs)):+.2f}",
                    "",
                    f"{seed_p_value(ours, theirs):.2f}, permutation over seeds",
                    "",
                ]
            )
    for name in ("significance-dev", "significance"):
        found = records[name]["results"]
        low, high = (100 * bound for bound in found["interval"])
        rows.append(
            [
                "PSA less BiLSTM-CRF",
                "test" if name == "significance" else "development",
                f"{len(found['psa'])} and {len(found['baseline'])}",
                f"{100 * found['difference']:+.2f}",
                f"{low:+.2f} to {high:+.2f}",
                f"{found['p_sentences']:.2f}, permutation over {found['sentences']:,} sentences",
                file_link(name),
            ]
        )
    header = ["systems", "data", "seeds", "difference, F1", "95% interval", "p-value", "record"]
    return table(header, rows)


def open_choices(records: Records) -> str:
    """Development F1 of the baseline under each choice, early in training."""

    def figures(name: str) -> str:
        return dev_list(records[f"bilstm_crf-{name}-stopped"], EARLY)

    def link(*names: str) -> str:
        return ", ".join(file_link(f"bilstm_crf-{name}-stopped") for name in names)

    rows = [
        ["", "(control)", figures("control"), link("control")],
        [
            '"hidden 100 and 300": in each direction, or in both together',
            "in each direction",
            f"half: {figures('half')}",
            link("half"),
        ],
        [
            "sum or mean of the loss over a batch",
            "mean",
            f"sum: {figures('sum')}; sum and half: {figures('half-sum')}",
            link("sum", "half-sum"),
        ],
        [
            "training words without a pretrained vector",
            "a row for each of them; PSA: a row for those with digits",
            f"rows for those with digits only, half: {figures('half-numbers')}",
            link("half-numbers"),
        ],
        [
            "initial scale of the pretrained vectors",
            "unchanged",
            f"each scaled to length 1, half: {figures('half-unit_vectors')}",
            link("half-unit_vectors"),
        ],
        [
            "normaliser of the CRF in training",
            "legal sequences only",
            f"all sequences, half: {figures('half-all_sequences')}",
            link("half-all_sequences"),
        ],
        [
            "length at which words are cut for their characters",
            "50",
            "not compared: three words of the training data are longer, none elsewhere",
            "",
        ],
        [
            "case and digits",
            "lower-cased, digits become 0, for trained rows; the vector of the word as it "
            "stands comes first",
            "not compared",
            "",
        ],
    ]
    return table(["choice", "taken", "development F1 after 2, 4 and 7 epochs", "record"], rows)


def to_the_end(records: Records) -> str:
    rows = []
    for name, title, loss, units, words in (
        ("bilstm_crf", "BiLSTM-CRF, as configured", "mean", "100, 300", "all"),
        ("bilstm_crf-half-sum", "BiLSTM-CRF", "sum", "50, 150", "all"),
        ("psa", "PSA, as configured", "mean", "100, 300", "digits"),
        ("psa-half-sum", "PSA", "sum", "50, 150", "all"),
    ):
        record = records[name]
        figures = [best_dev(record), percent(test_f(record))]
        rows.append([title, loss, units, words, *figures, file_link(name)])
    header = ["system", "loss", "units in each direction", "rows without a vector"]
    return table([*header, "dev F1 (best epoch of)", "test F1", "record"], rows)


def psa_choices(records: Records) -> str:
    dropout = "psa-dropout_before_lstm-stopped"
    averages = "psa-averages-stopped"
    psa = records["psa"]
    last = dev_rows(records[averages])[-1]["epoch"]
    best = max(row["score"] for row in dev_rows(psa) if row["epoch"] <= last)
    rows = [
        [
            'place of the dropout of 0.55 "on the input of BiLSTM"',
            "before the bottom attention (`input_dropout`)",
            "right before the BiLSTM, together with rows for all training words: "
            f"{percent(best_score(records[dropout]))} at best in 12 epochs (training loss of the "
            f"12th {dev_loss(records[dropout], 12):.0f}); as taken, {percent(dev_score(psa, 12))} "
            f"after 12 epochs ({dev_loss(psa, 12):.0f})",
            file_link(dropout),
        ],
        [
            "weights that are evaluated and saved",
            "the last ones",
            "a moving average (`use_averages = true` of `SGD.v1`; the weights themselves take "
            f"the same course): {percent(dev_score(records[averages], 3))} after 3 epochs, "
            f"against {percent(dev_score(psa, 3))}; {percent(best_score(records[averages]))} as "
            f"the best of {last} epochs, against {percent(best)}. The average is ahead early and "
            "level at the end.",
            file_link(averages),
        ],
    ]
    return table(["choice", "taken", "development F1", "record"], rows)


def stopped(records: Records) -> str:
    rows = [
        [title, best_dev(records[name]), file_link(name)]
        for name, title in (
            ("psa-half-stopped", "PSA, mean loss, 50 and 150 units in each direction"),
            ("psa-half-sum-stopped", "PSA, summed loss, 50 and 150 units in each direction"),
        )
    ]
    return table(["training", "dev F1 (best epoch of)", "record"], rows)


def by_vocabulary(records: Records) -> str:
    names = ["bilstm_crf-by_vocabulary", "psa-by_vocabulary"]
    scores = [records[name]["results"]["scores"] for name in names]
    rows = [
        [title, f"{scores[0][key]['gold']:,}", *(percent(each[key]["f"]) for each in scores)]
        for key, title in CLASSES.items()
    ]
    rows.append(["record", "", *(file_link(name) for name in names)])
    return table(["words", "gold entities", "bilstm_crf", "psa"], rows)


TABLES = {
    "main": main_table,
    "seeds": seeds,
    "significance": significance,
    "open_choices": open_choices,
    "to_the_end": to_the_end,
    "psa_choices": psa_choices,
    "stopped": stopped,
    "by_vocabulary": by_vocabulary,
}


def headline(records: Records) -> str:
    psa, baseline = (scores(records, name, test_f) for name in ("psa", "bilstm_crf"))
    return f"test F1 {spread(psa)} for PSA-BiLSTM-CRF, {spread(baseline)} for BiLSTM-CRF"


def claims(records: Records) -> list[str]:
    psa, baseline = records["psa"], records["bilstm_crf"]
    half = records["psa-half-sum"]
    unit, plain = (
        dev_loss(records[f"bilstm_crf-{name}-stopped"], 7) for name in ("half-unit_vectors", "half")
    )
    systems = ("psa", "bilstm_crf")
    dev, test = ([scores(records, each, by) for each in systems] for by in (best_score, test_f))
    order = "higher" if min(dev[0]) > max(dev[1]) else "overlapping"
    low, high = (100 * bound for bound in records["significance"]["results"]["interval"])
    arxiv = min(
        seed_p_value(scores(records, "psa_arxiv", by), scores(records, other, by)) or 0.0
        for other in systems
        for by in (best_score, test_f)
    )
    loss = gap(best_score(psa), best_score(half)), gap(test_f(psa), test_f(half))
    return [
        f"after {dev_rows(baseline)[-1]['epoch']} and {dev_rows(psa)[-1]['epoch']} epochs",
        f"the training loss of the 7th epoch is {unit:.0f}, against {plain:.0f} for half",
        f"ended by hand after {dev_rows(half)[-1]['epoch']} epochs",
        f"costs {loss[0]} points of F1 on development data and {loss[1]} on test data",
        f"{100 * (mean(dev[0]) - mean(dev[1])):.2f} points above its baseline on development data "
        f"in the mean (p = {seed_p_value(*dev):.2f}), and "
        f"{100 * (mean(test[0]) - mean(test[1])):.2f} on test data (p = {seed_p_value(*test):.2f})",
        f"arXiv version of PSA is {'not ' if arxiv > 0.05 else ''}told apart from its baseline",
        f"Each seed of PSA has a {order} development F1",
        f"within the 95% interval from {low:+.2f} to {high:+.2f}",
        f"Here they are {percent(mean(test[1]))} and {percent(mean(test[0]))} over three seeds",
    ]
