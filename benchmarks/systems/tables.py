"""The tables on the page of this experiment, and the numbers in its text."""

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
    table,
    test_f,
)

# Corpus, system, record, figure of the paper.
SYSTEMS = (
    ("CoNLL-2003", "PSA, arXiv version", "conll2003-psa_arxiv", "91.33 ± 0.08"),
    ("", "PSA-Transformer, 2 layers", "conll2003-psa_transformer", "90.70 ± 0.15"),
    ("", "TENER, CNN characters", "conll2003-tener", "91.45 ± 0.07"),
    ("", "the same, 75 epochs", "conll2003-tener-75_epochs", "91.45 ± 0.07"),
    ("", "the same at its authors' size", "conll2003-tener-full_size", "91.45 ± 0.07"),
    ("", "Transformer, CNN characters", "conll2003-transformer", "89.57 ± 0.12"),
    ("", "ID-CNN, CNN characters", "conll2003-idcnn", "90.17 ± 0.02"),
    ("", "Cross-BiLSTM, softmax", "conll2003-cross", "(OntoNotes 88.09 ± 0.16)"),
    ("", "self-attentive BiLSTM, softmax", "conll2003-self_attentive", "(OntoNotes 88.29 ± 0.20)"),
    ("Resume", "TENER", "resume-tener", "95.00 ± 0.25"),
    ("", "Transformer", "resume-transformer", "93.43 ± 0.26"),
    ("Weibo", "TENER", "weibo-tener", "58.17 ± 0.22"),
    ("", "Transformer", "weibo-transformer", "46.38 ± 0.78"),
    ("OntoNotes 5", "PSA", "ontonotes-psa", "88.12 ± 0.22"),
    ("", "PSA by Adam", "ontonotes-psa-adam", "88.12 ± 0.22"),
    ("", "PSA by Adam, with transitions", "ontonotes-psa-12_epochs", "88.12 ± 0.22"),
    ("CoNLL-2000 chunks", "PSA", "conll2000-psa", "95.09 ± 0.04"),
    ("", "PSA by Adam", "conll2000-psa-adam", "95.09 ± 0.04"),
    ("WSJ tags, accuracy", "PSA", "wsj-psa", "97.59 ± 0.02"),
    ("", "PSA, gradients bounded by 50", "wsj-psa-bound_50", "97.59 ± 0.02"),
)
TRIALS = (
    ("TENER on CoNLL-2003, rate 3e-3 instead of 9e-4", "conll2003-tener-high_rate"),
    ("PSA on OntoNotes, bound of 50, mean of the loss, average", "ontonotes-psa-bound_50"),
    ("the same with transitions", "ontonotes-psa-transition"),
)
TRAINED = (
    ("PSA, arXiv version", "conll2003-psa_arxiv"),
    ("PSA-Transformer", "conll2003-psa_transformer"),
    ("TENER, 30 epochs", "conll2003-tener"),
    ("TENER, 75 epochs", "conll2003-tener-75_epochs"),
    ("TENER at its authors' size, 22 epochs", "conll2003-tener-full_size"),
    ("Transformer", "conll2003-transformer"),
    ("TENER on Resume", "resume-tener"),
    ("Transformer on Resume", "resume-transformer"),
)
SHORT = ("ontonotes-psa", "ontonotes-psa-adam", "wsj-psa", "wsj-psa-bound_50")


def main_table(records: Records) -> str:
    rows = []
    for corpus, system, name, paper in SYSTEMS:
        record = records[name]
        figures = [best_dev(record), *precision_recall_f(record), paper]
        rows.append([corpus, system, *figures, file_link(name)])
    header = ["corpus", "system", "dev F1 (best epoch of)", "test P", "test R", "test F1"]
    return table([*header, "paper", "NAME"], rows)


def trials(records: Records) -> str:
    rows = [
        [system, best_dev(records[name]), *precision_recall_f(records[name]), file_link(name)]
        for system, name in TRIALS
    ]
    header = ["system", "dev F1 (best epoch of)", "test P", "test R", "test F1", "NAME"]
    return table(header, rows)


def training_data(records: Records) -> str:
    rows = [
        [system, percent(test_f(records[f"{name}-train"])), file_link(f"{name}-train")]
        for system, name in TRAINED
    ]
    return table(["system", "F1 on its training data", "record"], rows)


def by_epoch(records: Records) -> str:
    rows = [[name, dev_list(records[name], (1, 2, 3))] for name in SHORT]
    return table(["NAME", "development score after 1, 2 and 3 epochs"], rows)


TABLES = {
    "main": main_table,
    "trials": trials,
    "training_data": training_data,
    "by_epoch": by_epoch,
}


def headline(records: Records) -> str:
    names = {"PSA-Transformer": "conll2003-psa_transformer", "TENER": "conll2003-tener-75_epochs"}
    first = [f"{percent(test_f(records[name]))} for {title}" for title, name in names.items()]
    ontonotes = percent(test_f(records["ontonotes-psa-12_epochs"]))
    return f"CoNLL-2003 test F1 {', '.join(first)}; OntoNotes {ontonotes} for PSA"


def claims(records: Records) -> list[str]:
    def ahead(corpus: str, digits: int) -> str:
        one, other = (records[f"{corpus}-{name}"] for name in ("tener", "transformer"))
        return gap(test_f(one), test_f(other), digits)

    def lag(name: str) -> str:
        paper = next(float(row[3].split()[0]) / 100 for row in SYSTEMS if row[2] == name)
        return gap(paper, test_f(records[name]), 1)

    tener, transformer = records["conll2003-tener"], records["conll2003-transformer"]
    long, fast = records["conll2003-tener-75_epochs"], records["conll2003-tener-high_rate"]
    full = records["conll2003-tener-full_size"]
    ratios = [dev_loss(fast, epoch) / dev_loss(tener, epoch) for epoch in range(2, 16)]
    learned = {name: percent(test_f(records[f"{name}-train"])) for _, name in TRAINED}
    apart = 100 * max(abs(ratio - 1) for ratio in ratios)
    late = [row["score"] for row in dev_rows(long) if row["epoch"] >= 36]
    sgd, adam = records["ontonotes-psa"], records["ontonotes-psa-adam"]
    twelve = records["ontonotes-psa-12_epochs"]
    return [
        f"by {ahead('weibo', 1)} points on Weibo (11.8 in the paper)",
        f"by {ahead('resume', 2)} on Resume (1.57)",
        f"by {gap(best_score(tener), best_score(transformer))} on the development data and "
        f"{ahead('conll2003', 2)} on the test data of CoNLL-2003 (1.88)",
        f"{lag('conll2003-tener-75_epochs')} below after 75 epochs, {lag('conll2003-tener')} "
        f"after 30, {lag('conll2003-tener-full_size')} after 22 at its authors' size",
        f"{gap(best_score(long), best_score(tener), 1)} more on development data and "
        f"{gap(test_f(long), test_f(tener), 1)} more on test data",
        f"its F1 there is {learned['conll2003-tener']}. The arXiv version of PSA has "
        f"{learned['conll2003-psa_arxiv']} there, and the PSA-Transformer, which is as wide, "
        f"{learned['conll2003-psa_transformer']}",
        f"after 75 it has {learned['conll2003-tener-75_epochs']} on its training data",
        f"its F1 is {percent(best_score(full))} on development data and "
        f"{learned['conll2003-tener-full_size']} on training data, where the smaller one has "
        f"{percent(best_score(tener))} and {learned['conll2003-tener']} after 30",
        f"TENER has an F1 of {learned['resume-tener']} and the Transformer of "
        f"{learned['resume-transformer']}",
        f"differs by at most {apart:.0f}% from the second epoch on",
        f"development F1 is lower ({percent(best_score(fast))} at best)",
        f"between {percent(min(late))} and {percent(max(late))} from the 36th epoch on",
        f"{lag('conll2003-transformer')} below the figure in the paper of TENER",
        f"{gap(0.8879, test_f(transformer), 1)} below the figure in the paper of PSA",
        f"Resume, {lag('resume-tener')} and {lag('resume-transformer')}, and Weibo, "
        f"{lag('weibo-tener')} and {lag('weibo-transformer')} below",
        f"OntoNotes, {lag('ontonotes-psa')} below after 3 epochs by the SGD of the paper, "
        f"{lag('ontonotes-psa-12_epochs')} after 12 by Adam",
        f"bring {gap(test_f(adam), test_f(sgd), 1)} points of test F1 over three of SGD",
        f"bring {gap(test_f(twelve), test_f(adam), 1)} more",
        f"development F1 is {percent(dev_score(records['ontonotes-psa-bound_50'], 1))} (with the "
        "mean of the loss and a moving average",
        f"with transitions in addition, it is "
        f"{percent(dev_score(records['ontonotes-psa-transition'], 1))}",
        f"far from {percent(dev_score(sgd, 1))}",
        f"CoNLL-2000, {lag('conll2000-psa')} below by SGD, {lag('conll2000-psa-adam')} by Adam",
        f"WSJ tags, {lag('wsj-psa')} below, {lag('wsj-psa-bound_50')} with another bound",
    ]
