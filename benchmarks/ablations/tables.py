"""The tables on the page of this experiment, and the numbers in its text."""

from itertools import combinations
from math import sqrt
from statistics import mean, median, variance
from typing import Any

from benchmarks.tables import Records, percent, spread, table

Paper = dict[str, tuple[str, str]]
"""{run: (what it is, F1 in the paper)}"""

POSITIONS: Paper = {
    "full": ("position bias Ψ", "91.33 ± 0.08"),
    "no_position": ("no positions", "91.15 ± 0.12"),
    "absolute": ("sinusoids at the input", "91.05 ± 0.19"),
}
BIAS: Paper = {
    "full": ("M, P and G", "91.33 ± 0.08"),
    "no_mask": ("without the mask M", "91.12 ± 0.21"),
    "no_token_bias": ("without the token-specific bias P", "91.07 ± 0.05"),
    "no_gaussian": ("without the Gaussian bias G", "91.19 ± 0.24"),
}
FUSION: Paper = {
    "full": ("both", "91.33 ± 0.08"),
    "only_bottom": ("only the first", "91.27 ± 0.05"),
    "only_top": ("only the second", "91.13 ± 0.17"),
    "none": ("none", "91.01 ± 0.21"),
}
SLOTS: Paper = {
    "full": ("attention, BiLSTM, attention, CRF", "91.33 ± 0.08"),
    "attention_bilstm_bilstm": ("attention, BiLSTM, BiLSTM, CRF", "91.19 ± 0.12"),
    "bilstm_bilstm_attention": ("BiLSTM, BiLSTM, attention, CRF", "91.06 ± 0.10"),
    "attention_only": ("attention, attention, attention, CRF", "90.25 ± 0.19"),
    "softmax": ("attention, BiLSTM, attention, softmax", "88.79 ± 0.26"),
}
TRANSFORMER: Paper = {
    "transformer-layers=1-position=absolute": ("1 layer, sinusoids", "88.70 ± 0.23"),
    "transformer-layers=2-position=absolute": ("2 layers, sinusoids", "88.79 ± 0.39"),
    "transformer-layers=3-position=absolute": ("3 layers, sinusoids", "88.57 ± 0.23"),
    "transformer-layers=1-position=psa": ("1 layer, Ψ", "90.69 ± 0.21"),
    "transformer-layers=2-position=psa": ("2 layers, Ψ", "90.70 ± 0.15"),
    "transformer-layers=3-position=psa": ("3 layers, Ψ", "90.60 ± 0.12"),
}
WINDOW: Paper = {
    "none": ("no attention", "91.01 ± 0.21"),
    "window-window=2": ("2", "below no attention"),
    "window-window=5": ("5", "above no attention"),
    "full": ("10", "91.33 ± 0.08, the best"),
    "window-window=15": ("15", "above no attention"),
    "window-window=20": ("20", "above no attention"),
    "window-window=25": ("25", "above no attention"),
    "window-window=30": ("30", "above no attention"),
}
SCALE: Paper = {
    "adatrans-char=char.adatrans": ("without", "91.33 ± 0.05"),
    "scaled": ("with", "91.06 ± 0.09"),
}
CHARACTERS = {
    "none": "none",
    "bilstm": "BiLSTM",
    "cnn": "CNN",
    "transformer": "Transformer",
    "adatrans": "AdaTrans",
}
WORDS = ("BiLSTM", "ID-CNN", "AdaTrans")
GRID = """
88.34 87.30 88.37
91.32 89.99 91.29
91.22 90.17 91.45
91.12 90.05 91.23
91.38 89.99 91.33
"""
PAPER = (POSITIONS, BIAS, FUSION, SLOTS, TRANSFORMER, WINDOW)
COMPARED = (POSITIONS, BIAS, FUSION, SLOTS, TRANSFORMER, SCALE)
"""The tables with the paper's numbers of all rows."""
NONE = "not yet"
DEVIATIONS = 2.0
"""Standard errors of a difference from which on it counts."""


RATES = {
    "0.0003": ("", "transformer-initial_rate=0.0003", "adatrans-initial_rate=0.0003"),
    "0.0005": ("", "transformer-initial_rate=0.0005", "adatrans-initial_rate=0.0005"),
    "0.001": ("r001", "transformer-initial_rate=0.001", "adatrans-initial_rate=0.001"),
    "0.002": ("r002", "transformer-initial_rate=0.002", "adatrans-initial_rate=0.002"),
    "0.003": ("r003", "", ""),
}
"""{learn rate: the runs of the three systems}"""
PLANS = ("wei2020", "yan2019")


def all_runs(records: Records) -> dict[str, Any]:
    """The runs of both plans."""
    found = [records[plan]["results"]["runs"] for plan in PLANS if plan in records]
    return {run: each for runs in found for run, each in runs.items()}


def scores(records: Records, run: str, part: str = "test") -> list[float]:
    """The F1 of a run, one of each seed."""
    found: dict[str, Any] = all_runs(records).get(run, {})
    return [found[seed][part] for seed in sorted(found)]


def noise(records: Records) -> float:
    """The standard deviation of the test F1 over seeds, as all runs together tell it."""
    runs = [scores(records, run) for run in all_runs(records)]
    parts = [(len(run) - 1, variance(run)) for run in runs if len(run) > 1]
    return sqrt(sum(n * each for n, each in parts) / sum(n for n, _ in parts)) if parts else 0.0


def counts(records: Records, one: str, other: str) -> bool:
    """Whether the test F1 of two runs differ by more than the noise of their means."""
    found = scores(records, one), scores(records, other)
    error = noise(records) * sqrt(sum(1 / len(run) for run in found))
    return abs(mean(found[0]) - mean(found[1])) > DEVIATIONS * error > 0


def judged(records: Records, one: str, other: str) -> str:
    """Whether a difference is more than noise, in a word."""
    if not noise(records):
        return "not known"
    return "yes" if counts(records, one, other) else "no"


def ablation(paper: Paper, reference: str, header: str) -> Any:
    """A function that makes the table of one table of the paper."""

    def make(records: Records) -> str:
        body = []
        for run, (said, theirs) in paper.items():
            ours = scores(records, run)
            other = scores(records, reference)
            told = run != reference and bool(ours and other)
            gap = mean(ours) - mean(other) if told else 0.0
            body.append(
                [
                    said,
                    theirs,
                    spread(ours) or NONE,
                    spread(scores(records, run, "dev")),
                    str(len(ours)),
                    f"{100 * gap:+.2f}" if told else "",
                    judged(records, run, reference) if told else "",
                ]
            )
        titles = [header, "paper's test F1", "our test F1", "our dev F1", "seeds"]
        return table([*titles, "difference in test F1", "more than noise"], body)

    return make


def grid(records: Records) -> str:
    """Yan2019 Table 5: each cell has the paper's test F1, and ours."""
    paper = [line.split() for line in GRID.split("\n") if line]
    body = []
    for (char, said), row in zip(CHARACTERS.items(), paper):
        runs = [f"grid-char=char.{char}-word=word.{word}" for word in ("bilstm", "idcnn")]
        found = [scores(records, run) for run in [*runs, f"adatrans-char=char.{char}"]]
        body.append([said, *(f"{one}; {spread(ours) or NONE}" for one, ours in zip(row, found))])
    return table(["characters", *(f"words: {word}" for word in WORDS)], body)


def rates(records: Records) -> str:
    """What development data says about the learn rate."""
    runs = records["rate"]["results"]["runs"]
    body = [
        [rate, *(percent(runs[run]["1"]["dev"]) if run in runs else "" for run in each)]
        for rate, each in RATES.items()
    ]
    return table(["learn rate", "PSA-BiLSTM", "Transformer", "AdaTrans"], body)


TABLES = {
    "rates": rates,
    "positions": ablation(POSITIONS, "full", "positions"),
    "bias": ablation(BIAS, "full", "position bias"),
    "fusion": ablation(FUSION, "none", "attention layers"),
    "slots": ablation(SLOTS, "full", "slots and head"),
    "transformer": ablation(
        TRANSFORMER, "transformer-layers=2-position=absolute", "Transformer encoder"
    ),
    "window": ablation(WINDOW, "none", "window"),
    "grid": grid,
    "scale": ablation(SCALE, "adatrans-char=char.adatrans", "scale"),
}


def agreement(records: Records) -> tuple[int, int]:
    """Of the pairs of runs in a table that differ by more than noise: how many are ordered as in
    the paper, and how many there are."""
    pairs = [
        (one, other, paper)
        for paper in COMPARED
        for one, other in combinations(paper, 2)
        if scores(records, one) and scores(records, other) and counts(records, one, other)
    ]

    def ordered(one: str, other: str, paper: Paper) -> bool:
        theirs = [float(paper[run][1].split()[0]) for run in (one, other)]
        ours = [mean(scores(records, run)) for run in (one, other)]
        return (theirs[0] - theirs[1]) * (ours[0] - ours[1]) > 0

    return sum(ordered(*pair) for pair in pairs), len(pairs)


def progress(records: Records) -> tuple[int, int]:
    """The number of runs and of trainings that have a result."""
    runs = all_runs(records).values()
    return len(runs), sum(map(len, runs))


def headline(records: Records) -> str:
    if not noise(records):
        return "{} runs, {} trainings so far".format(*progress(records))
    same, of = agreement(records)
    return f"{same} of the {of} differences that exceed noise are ordered as in the papers"


def claims(records: Records) -> list[str]:
    trainings = [each for run in all_runs(records).values() for each in run.values()]
    seconds = [each["seconds"] for each in trainings if each["seconds"] is not None]
    told = [f"takes {median(seconds) / 60:.0f} minutes in the median"] if seconds else []
    if not noise(records):
        return [*told, "{} runs have {} trainings".format(*progress(records))]
    same, of = agreement(records)
    return [
        *told,
        f"{same} of {of} are ordered as in the papers",
        f"test F1 deviates by {percent(noise(records))} points",
    ]
