"""Pictures of development scores against epochs, from records."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy

from spacy_psa.analysis.figures import colours, new_figure, save_figure
from spacy_psa.errors import InputError
from spacy_psa.laboratory.analyses.convergence import epochs
from spacy_psa.laboratory.experiments.record import Evaluation, Record


def curve(evaluations: Sequence[Evaluation]) -> tuple[list[float], list[float]]:
    """Give the epochs and the scores of the evaluations of a training.

    An evaluation within an epoch has a fraction of it.

    Examples:
        >>> made = dict(scores={}, losses={})
        >>> steps = [(0, 0, 0.0), (0, 5, 0.4), (1, 10, 0.6)]
        >>> curve([Evaluation(epoch=e, step=s, score=f, **made) for e, s, f in steps])
        ([0.0, 0.5, 1.0], [0.0, 0.4, 0.6])
    """
    places = epochs([(each.epoch, each.step) for each in evaluations])
    return places, [each.score for each in evaluations]


def draw(runs: Mapping[str, Sequence[Record]], path: Path) -> None:
    """Draw the mean development score of each run, the spread over seeds, and each seed.

    Args:
        runs: the records of each run.
        path: the picture; its ending gives the format.

    Raises:
        InputError: if there is no finished training, matplotlib is not installed, or the picture
            cannot be written.
    """
    known = {
        name: [curve(record.evaluations) for record in records if record.evaluations]
        for name, records in runs.items()
    }
    known = {name: seeds for name, seeds in known.items() if seeds}
    if not known:
        raise InputError("no training is finished, so there is nothing to draw; run the plan first")
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    for (name, seeds), colour in zip(known.items(), colours(len(known))):
        label = f"{name} ({len(seeds)} seed{'s' if len(seeds) > 1 else ''})"
        for places, scores in seeds:
            axes.plot(places, 100 * numpy.array(scores), color=colour, linewidth=0.6, alpha=0.5)
        shared = min(len(places) for places, _ in seeds)
        together = 100 * numpy.array([each[:shared] for _, each in seeds])
        places, mean = numpy.mean([each[:shared] for each, _ in seeds], 0), together.mean(0)
        axes.plot(places, mean, color=colour, linewidth=1.8, label=label)
        if len(seeds) > 1:
            spread = together.std(0, ddof=1)
            axes.fill_between(places, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
    metrics = {record.metric for records in runs.values() for record in records}
    axes.set(xlabel="epoch", ylabel=f"development {' or '.join(sorted(metrics))}, %")
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)
