"""How soon trainings reach their best development score (Yan2019 Fig. 5)."""

from collections.abc import Mapping, Sequence
from typing import Any

from spacy_psa.analysis.figures import Figure, colours, new_figure

SHARES = (0.9, 0.95, 0.99)


def epochs(evaluations: Sequence[tuple[int, int]]) -> list[float]:
    """Estimate the epochs of evaluations; one within an epoch has a fraction of it.

    An evaluation is the epoch, counted from 0, and the step. A log does not have the number of
    steps in an epoch. Its bounds, from step s of epoch e, are (s + 1) / (e + 1) and s / e. Where
    evaluations fall on ends of epochs it is the upper bound, else the middle of both. A training
    that never left epoch 0 stays below 1.
    """
    size = _steps_of_an_epoch(evaluations) if evaluations else 1.0
    return [step / size for _, step in evaluations]


def _steps_of_an_epoch(evaluations: Sequence[tuple[int, int]]) -> float:
    least = max((step + 1) / (epoch + 1) for epoch, step in evaluations)
    bounds = [step / epoch for epoch, step in evaluations if epoch]
    if not bounds:
        return least
    most = max(1.0, min(bounds))
    (_, first), (_, second) = evaluations[0], evaluations[min(1, len(evaluations) - 1)]
    apart = second - first or second  # a single evaluation is as far from the start
    if apart and most.is_integer() and (most % apart == 0 or apart % most == 0):
        return most
    return (least + most) / 2


def convergence(log: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Compute the curve of a training, and when it comes near its best score.

    Args:
        log: its evaluations, as `spacy_psa.scoring.result.read_log` returns them.

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


def draw_convergence(trainings: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw the `convergence` of trainings against epochs; a dot marks 99% of the best score."""
    figure = new_figure(7.0, 4.2)
    axes, lines = figure.subplots(), []
    for each, colour in zip(trainings.values(), colours(len(trainings))):
        percent = [100 * score for score in each["scores"]]
        lines += axes.plot(each["epochs"], percent, color=colour)
        near = each["reached"]["99"]
        if near is not None:
            axes.plot(near, percent[each["epochs"].index(near)], "o", color=colour)
    axes.set(xlabel="epoch", ylabel="development score, %")
    axes.grid(alpha=0.3)
    # With handles, since of its own matplotlib leaves out names that begin with "_".
    axes.legend(lines, trainings, title="dot: 99% of the best score")
    return figure
