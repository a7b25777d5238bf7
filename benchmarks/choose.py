"""The tables and figures of docs/how-to/choose.md, made from the records."""

from collections.abc import Callable
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.documents.tables import decoded
from benchmarks.parser.tables import seeds_of_best
from benchmarks.recipes.tables import found as found_recipes
from benchmarks.small_data.tables import cost_effect
from benchmarks.tables import (
    Everything,
    best_score,
    gap,
    number,
    percent,
    spread,
    table,
    test_f,
)

PSA_PAPER, PSA_BASELINE = "91.33 ± 0.08", "91.01 ± 0.21"


class System(NamedTuple):
    """A row of the tables of systems: what it is, its records and the figure of its paper."""

    config: str
    system: str
    experiment: str
    records: tuple[str, ...]
    paper: str = ""


def seeds(name: str, last: int = 3) -> tuple[str, ...]:
    """The names of the records of seeds 1 to `last`."""
    return tuple(f"{name}-{seed}" for seed in range(1, last + 1))


def paper_seeds(name: str) -> tuple[str, ...]:
    """The names of the records of a system in the settings of its paper, seeds 0 to 2."""
    return (name, f"{name}-seed1", f"{name}-seed2")


ENTITIES = (
    System("`memory.cfg`", "BiLSTM-CRF with document memory", "documents", seeds("memory")),
    System("`best.cfg`", "document memory above PSA-BiLSTM, CRF", "documents", seeds("best")),
    System(
        "`best.cfg` without memory dropout",
        "document memory above PSA-BiLSTM, CRF",
        "documents",
        seeds("no_memory_dropout", 4),
    ),
    System(
        "`memory_between.cfg`",
        "document memory between two BiLSTMs, CRF",
        "documents",
        seeds("memory_between"),
    ),
    System(
        "`psa.cfg`",
        "PSA-BiLSTM-CRF",
        "conll2003",
        paper_seeds("psa"),
        PSA_PAPER,
    ),
    System("`bilstm_crf.cfg`", "BiLSTM-CRF", "conll2003", paper_seeds("bilstm_crf"), PSA_BASELINE),
    System(
        "`context.cfg`",
        "the same as `memory.cfg`, with the sentences around a token",
        "documents",
        ("context-1",),
    ),
    System("`cross.cfg`", "Cross-BiLSTM, softmax", "systems", ("conll2003-cross",)),
    System(
        "`self_attentive.cfg`",
        "self-attentive BiLSTM, softmax",
        "systems",
        ("conll2003-self_attentive",),
    ),
    System("`psa.cfg`, half of the units", "PSA-BiLSTM-CRF", "conll2003", ("psa-half-sum",)),
    System(
        "`psa_arxiv.cfg`",
        "PSA-BiLSTM-CRF, arXiv version",
        "conll2003",
        ("psa_arxiv", "psa_arxiv-seed1", "psa_arxiv-seed2"),
        PSA_PAPER,
    ),
    System(
        "`psa_arxiv.cfg`, half of the units",
        "PSA-BiLSTM-CRF, arXiv version",
        "systems",
        ("conll2003-psa_arxiv",),
    ),
    System(
        "`psa_transformer.cfg`",
        "Transformer with the PSA bias",
        "systems",
        ("conll2003-psa_transformer",),
        "90.70 ± 0.15",
    ),
    System(
        "`tener.cfg`, 75 passes",
        "TENER, 8 heads of 64",
        "systems",
        ("conll2003-tener-75_epochs",),
        "91.45 ± 0.07",
    ),
    System(
        "`idcnn.cfg`",
        "iterated dilated convolutions",
        "systems",
        ("conll2003-idcnn",),
        "90.17 ± 0.02",
    ),
    System(
        "`transformer.cfg`",
        "Transformer, 8 heads of 64",
        "systems",
        ("conll2003-transformer",),
        "89.57 ± 0.12",
    ),
)
SPEED = {
    "bilstm_crf-half": "`bilstm_crf`, half of the units",
    "bilstm_crf": "`bilstm_crf`",
    "psa-half": "`psa`, half of the units",
    "spacy-efficiency": "spaCy's `ner`, efficiency config",
    "flair": "Flair's BiLSTM-CRF",
    "psa": "`psa`",
    "spacy-accuracy": "spaCy's `ner`, accuracy config",
}
HIDDEN = {
    "marginal": "`bilstm_crf.cfg`, hidden entities as missing",
    "as_o": "the same, hidden entities as outside (`O`)",
    "spacy_ner": "spaCy's `ner`, hidden entities as missing",
}
ONTONOTES = "named entities, OntoNotes 5"
TAGS = "parts of speech, Wall Street Journal of OntoNotes"


def scores(everything: Everything, system: System, score: Callable[[Any], float]) -> list[float]:
    """A score of each training of a system."""
    return [score(everything[system.experiment][name]) for name in system.records]


def of_seeds(values: list[float]) -> str:
    """`, N seeds`, where there are several."""
    return f", {len(values)} seeds" if len(values) > 1 else ""


def entities(everything: Everything) -> str:
    rows = []
    for system in ENTITIES:
        dev, test = (scores(everything, system, score) for score in (best_score, test_f))
        config = f"{system.config}{of_seeds(test)}"
        figures = [spread(dev), spread(test), system.paper]
        rows.append((mean(dev), [config, system.system, *figures]))
    dev, test = (decoded(everything["documents"], "calibrated", part) for part in ("dev", "test"))
    config = f"`best.cfg`, calibrated, `mbr`{of_seeds(test)}"
    said = "document memory above PSA-BiLSTM, CRF; entities of the highest expected F1"
    rows.append((mean(dev), [config, said, spread(dev), spread(test), ""]))
    rows.sort(key=lambda row: -row[0])
    header = ["config", "system", "dev F1", "test F1", "paper, test F1"]
    return table(header, [cells for _, cells in rows])


def speed(everything: Everything) -> str:
    rows = test_set(everything)
    words = {name: rows[name]["per_second"]["median"] for name in rows}
    body = [
        [title, *(number(words[row]) if row in words else "" for row in (name, f"int8 {name}"))]
        for name, title in SPEED.items()
    ]
    return table(["pipeline", "words a second", "with weights in int8"], body)


def test_set(everything: Everything) -> dict[str, Any]:
    """The timed annotation of CoNLL-2003's test set, by row."""
    return dict(everything["speed"]["test_set"]["results"]["annotation"]["rows"])


def other_tasks(everything: Everything) -> str:

    def trained(experiment: str, *names: str, score: str = "F1") -> tuple[str, list[float]]:
        return score, [test_f(everything[experiment][name]) for name in names]

    def recipe(plan: str, run: str = "best", score: str = "F1") -> tuple[str, list[float]]:
        return score, found_recipes(everything["recipes"], plan, run, "test")

    by_seed = trained("documents", *seeds("ontonotes-no_memory_dropout"))
    of_mbr = "F1", decoded(everything["documents"], "calibrated", "test", "ontonotes")
    smoothed = trained("documents", *seeds("ontonotes-smoothed"))
    bfloat16 = trained("documents", "ontonotes-bfloat16-1")
    tags = trained("systems", "wsj-psa-bound_50", score="accuracy")
    rows: list[tuple[str, str, tuple[str, list[float]], str]] = [
        (ONTONOTES, "`ner/best.cfg` without memory dropout, 12 passes", by_seed, ""),
        (ONTONOTES, "the same, trained again, calibrated, `mbr`", of_mbr, ""),
        (
            ONTONOTES,
            "`ner/best.cfg` without memory dropout, label smoothing, `mbr`, 10 passes",
            smoothed,
            "",
        ),
        (ONTONOTES, "the same, with development data", recipe("train_dev_ontonotes"), ""),
        (ONTONOTES, "`ner/memory.cfg` in bfloat16, 12 passes", bfloat16, ""),
        (
            ONTONOTES,
            "PSA by Adam, 12 passes",
            trained("systems", "ontonotes-psa-12_epochs"),
            "88.12 ± 0.22",
        ),
        (
            "named entities, Resume (Chinese)",
            "TENER, no pretrained vectors",
            trained("systems", "resume-tener"),
            "95.00 ± 0.25",
        ),
        (
            "named entities, Weibo (Chinese)",
            "TENER, no pretrained vectors",
            trained("systems", "weibo-tener"),
            "58.17 ± 0.22",
        ),
        (
            "chunks, CoNLL-2000",
            "`chunker/best.cfg`, BiLSTM-CRF",
            recipe("best_chunks"),
            "",
        ),
        (
            "chunks, CoNLL-2000",
            "the same of 500 units, with development data, distilled over raw text",
            recipe("distilled_wide_chunks", "raw"),
            "",
        ),
        (
            "chunks, CoNLL-2000",
            "PSA by Adam, 12 passes",
            trained("systems", "conll2000-psa-adam"),
            "95.09 ± 0.04",
        ),
        (TAGS, "`tagger/best.cfg`, BiLSTM-CRF", recipe("best_tags", score="accuracy"), ""),
        (TAGS, "PSA, 3 passes", tags, "97.59 ± 0.02"),
        (
            "trees, Wall Street Journal of OntoNotes",
            "`parser/best.cfg`, BiLSTM and tree CRF",
            ("F1", [test for _, test in seeds_of_best(everything["parser"]).values()]),
            "93.55, on the Penn Treebank, full size",
        ),
    ]
    body = [
        [task, f"{system}{of_seeds(values)}", f"{score} {spread(values)}", paper]
        for task, system, (score, values), paper in rows
    ]
    return table(["task and corpus", "system", "test score", "paper"], body)


def hidden(everything: Everything) -> str:
    records = everything["partial_annotation"]
    body = [[title, percent(test_f(records[f"mentions-{name}"]))] for name, title in HIDDEN.items()]
    return table(["training", "test F1"], body)


def lost_by_int8(everything: Everything) -> str:
    """The points of test F1 that PSA loses by weights in int8."""
    int8 = everything["speed"]["psa-int8"]
    return gap(test_f(everything["conll2003"]["psa"]), test_f(int8))


def claims(everything: Everything) -> list[str]:
    conll2003, setup = everything["conll2003"], everything["partial_annotation"]
    psa, baseline = (
        [[score(conll2003[each]) for each in paper_seeds(name)] for score in (best_score, test_f)]
        for name in ("psa", "bilstm_crf")
    )
    above = [f"{100 * (mean(own) - mean(its)):.2f}" for own, its in zip(psa, baseline, strict=True)]
    half = conll2003["psa-half-sum"]
    counts = setup["mentions-marginal"]["results"]["setup"]
    words = everything["speed"]["test_set"]["results"]["annotation"]["words"]
    configs = [each for each in ENTITIES if each.config.endswith(".cfg`")]
    by = [[mean(scores(everything, each, of)) for each in configs] for of in (best_score, test_f)]
    highest = [configs[values.index(max(values))].config.strip("`") for values in by]
    rare, _ = cost_effect(everything["small_data"], "wnut17", "dev")
    _, frequent = cost_effect(everything["small_data"], "wikigold", "dev")
    return [
        f"`configs/ner/{' and '.join(dict.fromkeys(highest))}`: it has the highest F1 on English "
        "news, on development and on test data",
        f"in the mean of {len(psa[0])} seeds it was {above[0]} points above `bilstm_crf.cfg` on "
        f"development data and {above[1]} on test data",
        f"on the {words:,} words of CoNLL-2003's test set",
        f"costs PSA {gap(best_score(conll2003['psa']), best_score(half))} points of development F1 "
        f"and {gap(test_f(conll2003['psa']), test_f(half))} of test F1",
        f"int8 cost PSA {lost_by_int8(everything)} points of test F1",
        f"raises development F1 for {'each' if rare > 0 else 'not each'} number of sentences",
        f"it raises {'none' if frequent <= 0 else 'some'}",
        f"has {counts['kept'] + counts['hidden']:,} entities. Here {counts['hidden']:,} of them",
    ]


TABLES = {"entities": entities, "speed": speed, "other_tasks": other_tasks, "hidden": hidden}
