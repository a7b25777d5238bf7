"""How soon trainings reach their best development score (Yan2019 Fig. 5)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spacy_psa.analysis.figures import colours, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = (0.9, 0.95, 0.99)


def epochs(evaluations: Sequence[tuple[int, int]]) -> list[float]:
    """Give the epochs of evaluations; one within an epoch has a fraction of it.

    Args:
        evaluations: the epoch, counted from 0, and the step of each evaluation.

    Examples:
        >>> epochs([(0, 0), (0, 5), (1, 10)])
        [0.0, 0.5, 1.0]
    """
    sizes = [step / epoch for epoch, step in evaluations if epoch]
    last = evaluations[-1][1] if evaluations else 0
    size = min(sizes, default=float(last or 1))
    return [step / size for _, step in evaluations]


def convergence(log: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Give the curve of a training, and when it comes near its best score.

    Args:
        log: its evaluations, as `spacy_psa.scoring.result.read_log` gives them.

    Returns:
        `epochs` and `scores` of the evaluations; `best`, the highest score; and `reached`, the
        first epoch with so many hundredths of the best score: {"90": …, "95": …, "99": …}.

    Examples:
        >>> log = [{"epoch": n, "step": 9 * n, "score": s} for n, s in enumerate([0.0, 0.76, 0.8])]
        >>> convergence(log)["reached"]
        {'90': 1.0, '95': 1.0, '99': 2.0}
    """
    places = epochs([(row["epoch"], row["step"]) for row in log])
    scores = [row["score"] for row in log]
    best = max(scores, default=0.0)
    reached = {
        f"{share:.0%}".rstrip("%"): next(
            (place for place, score in zip(places, scores) if score >= share * best - 1e-12), None
        )
        for share in SHARES
    }
    return {"epochs": places, "scores": scores, "best": best, "reached": reached}


def draw_convergence(trainings: Mapping[str, Mapping[str, Any]]) -> "Figure":
    """Draw the development score of each training against epochs; a dot marks its 99%.

    Args:
        trainings: what `convergence` gives, by name.

    Raises:
        InputError: if matplotlib is not installed.
    """
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    for (name, each), colour in zip(trainings.items(), colours(len(trainings))):
        percent = [100 * score for score in each["scores"]]
        axes.plot(each["epochs"], percent, color=colour, label=name)
        near = each["reached"]["99"]
        if near is not None:
            axes.plot(near, percent[each["epochs"].index(near)], "o", color=colour)
    axes.set(xlabel="epoch", ylabel="development score, %")
    axes.grid(alpha=0.3)
    axes.legend(title="dot: 99% of the best score")
    return figure
