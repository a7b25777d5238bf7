"""The tables on the page of this experiment, and the numbers in its text."""

from collections.abc import Callable
from statistics import mean
from typing import Any

from benchmarks.record import FOLDER, read_record
from benchmarks.tables import Records, gap, percent, spread, table, test_f
from spacy_psa.scoring.statistics import seed_p_value

ENTITIES = {
    "adamw": "AdamW, rate from 0.001 linearly to 0, 12 passes: as it is",
    "cosine": "rate as a cosine",
    "one_cycle": "one cycle: the rate rises for 30% of the steps",
    "transition": "plain transitions: they do not depend on the token",
    "content_words": "a memory of content words alone",
    "average": "moving average of the weights",
    "constant": "constant rate of 0.002",
    "swa": "constant rate of 0.002, mean of the weights of the last 6 passes (SWA)",
    "swa_linear": "rate from 0.002 linearly to 0, mean of the weights of the last 6 passes (SWA)",
    "sum": "sum of the sentences' losses",
    "label_smoothing-label_smoothing=0.01": "label smoothing of 1%",
    "label_smoothing-label_smoothing=0.05": "label smoothing of 5%",
    "rate-initial_rate=0.0005": "rate of 0.0005",
    "rate-initial_rate=0.002": "rate of 0.002",
    "rate_content_words": "rate of 0.002, a memory of content words alone",
    "rate_width_64": "rate of 0.002, a memory of width 64",
    "words": "500 words a step, half as many steps",
    "6_passes": "6 passes",
    "24_passes": "24 passes",
    "sgd": "SGD as in bilstm_crf.cfg, 12 passes",
}
ENTITIES_WHOLE = {
    "adamw": "AdamW, rate from 0.001 linearly to 0, 15 passes: as it is",
    "fixed_vectors": "word vectors that are not trained",
    "encoder_after": "a second BiLSTM above the memory",
}
ENTITIES_FULL = {
    "word_dropout": "5% of the tokens read as the unknown word",
    "average": "moving average of the weights",
    "sgd": "SGD with momentum, one document a step, rate from 0.02 linearly to 0, 30 passes",
    "intnet": "IntNet over the characters in place of a BiLSTM",
    "sum": "sum of the sentences' losses",
    "transition": "plain transitions: they do not depend on the token",
    "label_smoothing": "label smoothing of 1%",
}
ONTONOTES = {"dropout": "dropout rates of 0.4 in place of 0.55"}
CHUNKS = {
    "bilstm": "BiLSTM-CRF, rate of 0.001",
    "psa": "PSA-BiLSTM-CRF, rate of 0.001",
    "bilstm_high_rate": "BiLSTM-CRF, rate of 0.002",
    "psa_high_rate": "PSA-BiLSTM-CRF, rate of 0.002",
    "bilstm_full": "BiLSTM-CRF, rate of 0.002, whole widths, 12 passes",
    "bilstm_transition": "BiLSTM-CRF, plain transitions, rate of 0.002, whole widths, 12 passes",
    "bilstm_dropout": "the same, dropout rates of 0.4 in place of 0.55",
    "bilstm_smoothed": "whole widths, plain transitions, rate of 0.002, label smoothing of 2%",
    "bilstm_two_layers": "two BiLSTMs and CRF, plain transitions, rate of 0.002, 12 passes",
    "psa_transition": "PSA-BiLSTM-CRF, plain transitions, rate of 0.002, whole widths, 12 passes",
    "bilstm_intnet": "IntNet, BiLSTM-CRF, plain transitions, rate of 0.002, whole width, 12 passes",
    "bilstm_wide": "BiLSTM of 500 units, plain transitions, rate of 0.002, 12 passes",
}
TAGS = {
    "bilstm": "BiLSTM-CRF",
    "psa": "PSA-BiLSTM-CRF",
    "bilstm_transition": "BiLSTM-CRF, plain transitions, rate of 0.002",
    "bilstm_full": "the same, whole widths, 6 passes",
}


PARTS = ("dev", "test")
BEST = {
    "best_chunks": ("chunks of CoNLL-2000", "`configs/chunker/best.cfg`", "F1"),
    "smoothed_chunks": ("chunks of CoNLL-2000", "the same with label smoothing of 2%", "F1"),
    "best_tags": ("tags of the Wall Street Journal", "`configs/tagger/best.cfg`", "accuracy"),
}
"""What the plans of the whole configs train: task, config, score."""


def runs(records: Records, plan: str) -> dict[str, Any]:
    """What a plan has trained: {run: {seed: scores}}."""
    return dict(records[plan]["results"]["runs"]) if plan in records else {}


def found(records: Records, plan: str, run: str, part: str = "dev") -> list[float]:
    """The F1 or accuracy of a run on development or test data, one of each seed."""
    return [scores[part] for _, scores in sorted(runs(records, plan).get(run, {}).items())]


def entities_alone(records: Records, seed: str) -> float:
    """The test F1 of `ner/best.cfg` without memory dropout, trained on the training data alone."""
    return test_f(read_record(FOLDER / "documents" / "results" / f"no_memory_dropout-{seed}.json"))


def ontonotes_alone(records: Records, seed: str) -> float:
    """The test F1 of `ner/best.cfg`, smoothed, with `mbr`, on OntoNotes' training data alone."""
    name = f"ontonotes-smoothed-{seed}.json"
    return test_f(read_record(FOLDER / "documents" / "results" / name))


def chunks_alone(records: Records, seed: str) -> float:
    """The test F1 of `chunker/best.cfg`, trained on the training data alone."""
    return float(runs(records, "best_chunks")["best"][seed]["test"])


TRAIN_DEV = {
    "train_dev_entities": (
        "entities of CoNLL-2003",
        "`configs/ner/best.cfg`, no memory dropout",
        entities_alone,
    ),
    "train_dev_ontonotes": (
        "entities of OntoNotes",
        "the same, with label smoothing and `mbr`",
        ontonotes_alone,
    ),
    "train_dev_chunks": ("chunks of CoNLL-2000", "`configs/chunker/best.cfg`", chunks_alone),
}
"""What is trained on the development data, too: task, config, its test F1 without."""


def whole(records: Records) -> str:
    """The table of the configs that the recipes led to, with their test scores."""
    body = []
    for plan, (task, config, score) in BEST.items():
        scores = [found(records, plan, "best", part) for part in PARTS]
        body.append([task, config, score, *map(spread, scores), str(len(scores[1]))])
    return table(["task", "config", "score", "dev", "test", "seeds"], body)


def train_dev(records: Records) -> str:
    """The table of test F1 with the development data in the training data, and without it."""
    body = []
    for plan, (task, config, of_seed) in TRAIN_DEV.items():
        there = runs(records, plan).get("best", {})
        alone = [of_seed(records, seed) for seed in sorted(there)]
        both = found(records, plan, "best", "test")
        body.append([task, config, spread(alone), spread(both) or "not yet", str(len(both))])
    data = ["test F1, training data alone", "test F1, and development data"]
    return table(["task", "config", *data, "seeds"], body)


def distilled(records: Records) -> str:
    """The table of the chunkers that learned from joined ones, beside these."""
    three = records["joined_train_dev_chunks"]["results"]
    alone, student, more, student_of_more, wide = (
        [found(records, plan, run, part) for part in PARTS]
        for plan, run in (
            ("best_chunks", "best"),
            ("distilled_chunks", "raw"),
            ("train_dev_chunks", "best"),
            ("distilled_train_dev_chunks", "raw"),
            ("distilled_wide_chunks", "raw"),
        )
    )
    two = [[records["joined_teachers"]["results"][part]] for part in PARTS]
    less, more_data = "training data alone", "and development data"
    rows: list[tuple[str, str, list[float], list[float]]] = [
        (less, "`best.cfg`", alone[0], alone[1]),
        (less, "two teachers, joined", two[0], two[1]),
        (less, "`best.cfg`, distilled from the two over raw text", student[0], student[1]),
        (more_data, "`best.cfg`", [], more[1]),
        (more_data, "three teachers, joined", [], [three["test"]]),
        (more_data, "`best.cfg`, distilled from the three over raw text", [], student_of_more[1]),
        (more_data, "the same, of 500 units", [], wide[1]),
    ]
    body = [
        [data, system, spread(dev), spread(test), str(len(test))]
        for data, system, dev, test in rows
    ]
    return table(["data", "system", "dev F1", "test F1", "seeds"], body)


def ontonotes(records: Records) -> str:
    """The table of what `ner/best.cfg` reaches on OntoNotes with a change."""
    folder = FOLDER / "documents" / "results"
    as_it_is = [
        read_record(path)["results"]["best"]["score"]
        for path in sorted(folder.glob("ontonotes-no_memory_dropout-*.json"))
    ]
    scores = {"as it is": as_it_is} | {
        said: found(records, "ontonotes", run) for run, said in ONTONOTES.items()
    }
    body = [[said, spread(each) or "not yet", str(len(each))] for said, each in scores.items()]
    return table(["recipe", "dev F1", "seeds"], body)


def recipes(plan: str, rows: dict[str, str], score: str = "dev F1") -> Callable[[Records], str]:
    """A function that makes the table of a plan."""

    def make(records: Records) -> str:
        body = []
        for run, said in rows.items():
            scores = found(records, plan, run)
            body.append([said, spread(scores) if scores else "not yet", str(len(scores))])
        return table(["recipe", score, "seeds"], body)

    return make


TABLES = {
    "best": whole,
    "train_dev": train_dev,
    "distilled": distilled,
    "entities": recipes("entities", ENTITIES),
    "entities_whole": recipes("entities_whole", ENTITIES_WHOLE),
    "entities_full": recipes("entities_full", ENTITIES_FULL),
    "ontonotes": ontonotes,
    "chunks": recipes("chunks", CHUNKS),
    "tags": recipes("tags", TAGS, "dev accuracy"),
}


def best(records: Records, plan: str, rows: dict[str, str]) -> tuple[str, float]:
    """The recipe with the best mean F1 on development data, and that F1."""
    scores = {said: found(records, plan, run) for run, said in rows.items()}
    means = [(said, mean(each)) for said, each in scores.items() if each]
    return max(means, key=lambda pair: pair[1])


def headline(records: Records) -> str:
    dev, test = (mean(found(records, "best_chunks", "best", part)) for part in PARTS)
    return f"`chunker/best.cfg`: dev F1 {percent(dev)}, test F1 {percent(test)}"


def claims(records: Records) -> list[str]:
    said, score = best(records, "chunks", CHUNKS)
    chunks = mean(found(records, "best_chunks", "best", "test"))
    joined, teachers, joined_more = (
        records[name]["results"]
        for name in ("joined_chunks", "joined_teachers", "joined_train_dev_chunks")
    )
    more = mean(found(records, "train_dev_chunks", "best", "test"))
    student = runs(records, "distilled_chunks")["raw"]["1"]
    (narrow,) = found(records, "distilled_train_dev_chunks", "raw", "test")
    wide = found(records, "distilled_wide_chunks", "raw", "test")
    lost = mean(
        entities_alone(records, seed) - scores["test"]
        for seed, scores in runs(records, "train_dev_entities")["best"].items()
    )
    with_dev = found(records, "train_dev_ontonotes", "best", "test")
    seeds = sorted(runs(records, "train_dev_ontonotes")["best"])
    without = [ontonotes_alone(records, seed) for seed in seeds]
    gains = [gap(*pair) for pair in zip(with_dev, without, strict=True)]
    smoothed_dev, smoothed_test = (
        found(records, "smoothed_chunks", "best", part) for part in PARTS
    )
    for smoothed_part, part in ((smoothed_dev, "dev"), (smoothed_test, "test")):
        p_value = seed_p_value(smoothed_part, found(records, "best_chunks", "best", part))
        assert p_value is not None and p_value > 0.3
    side = "above" if mean(with_dev) > 0.883 else "not above"
    (intnet,) = found(records, "entities_full", "intnet")
    (plain,) = found(records, "entities_full", "transition")
    (smoothed,) = found(records, "entities_full", "label_smoothing")
    for run in ENTITIES_FULL.keys() - {"intnet", "transition", "label_smoothing"}:
        assert max(found(records, "entities_full", run)) < min(intnet, plain, smoothed)
    (entities,) = records["decoders-distilled_entities"]["results"]["models"]
    assert found(records, "distilled_entities", "raw") == [entities["viterbi"]["dev"]]
    of_teachers = read_record(FOLDER / "documents" / "results" / "joined-best.json")["results"]
    constant, averaged, linear = (
        mean(found(records, "entities", run))
        for run in ("constant", "swa", "rate-initial_rate=0.002")
    )
    tags = {run: mean(found(records, "tags", run)) for run in TAGS}
    as_it_is, above = (found(records, "entities_whole", run) for run in ("adamw", "encoder_after"))
    return [
        f"Its dev F1 is {percent(entities['viterbi']['dev'])}, with one seed",
        f"that of its teachers is {percent(of_teachers['dev'])}. With `mbr`, calibrated, it has a "
        f"dev F1 of {percent(entities['calibrated']['dev'])} and a test F1 of "
        f"{percent(entities['calibrated']['test'])}",
        f"(`SWA.v1`) brings {percent(averaged - constant)} points where the rate is constant",
        f"reaches without it: {percent(averaged)} and {percent(linear)}",
        f"It brings {percent(mean(above) - mean(as_it_is))} points",
        f"With one seed each, label smoothing of 1% reaches {percent(smoothed)}, IntNet over the "
        f"characters {percent(intnet)}, and plain transitions {percent(plain)}",
        f"test F1 is {percent(lost)} points lower",
        f"On OntoNotes, test F1 is {percent(mean(with_dev))} in the mean of {len(with_dev)} seeds, "
        f"{side} the aim of 88.3, and {gap(mean(with_dev), mean(without))} points higher than "
        f"without: they gain {gains[0]}, {gains[1]} and {gains[2]} points",
        f"The chunks gain {percent(more - chunks)} points in the mean of 3 seeds",
        f"the {joined_more['models']} chunkers reach a test F1 of {percent(joined_more['test'])}",
        f"It is {percent(more)} in the mean of 3 seeds on all training data; these models reach "
        f"{percent(joined_more['test'])} together, and students of them more",
        f"student of the two, with one seed, has a dev F1 of {percent(student['dev'])} and a "
        f"test F1 of {percent(student['test'])}. Its teachers, joined, have "
        f"{percent(teachers['dev'])} and {percent(teachers['test'])}",
        f"that of 300 units, with one seed, has a test F1 of {percent(narrow)}. Those of 500 units "
        f"have {percent(mean(wide))} in the mean of {len(wide)} seeds",
        f"alone has a test F1 of {percent(chunks_alone(records, '1'))} with this seed",
        f"best of these is {said}: {percent(score)}",
        f"reaches {percent(mean(found(records, 'best_chunks', 'best')))} in the mean of 3 seeds",
        f"in the mean of 3 seeds, and with it {percent(mean(smoothed_dev))} (above)",
        f"mean test F1 for chunks, {percent(chunks)}, is above",
        f"the dev F1 for chunks is {percent(mean(smoothed_dev))} in the mean of "
        f"{len(smoothed_dev)} seeds, and the test F1 {percent(mean(smoothed_test))}: no",
        f"PSA is {gap(tags['psa'], tags['bilstm'])} points above the BiLSTM",
        f"are {gap(tags['bilstm_transition'], tags['bilstm'])} above it. Whole widths and 6 passes "
        f"bring {gap(tags['bilstm_full'], tags['bilstm_transition'])} more",
        f"test accuracy of tags is {percent(mean(found(records, 'best_tags', 'best', 'test')))}",
        f"the {joined['models']} models reach a dev F1 of {percent(joined['dev'])} and a "
        f"test F1 of {percent(joined['test'])}",
    ]
