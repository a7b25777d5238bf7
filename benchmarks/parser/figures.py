"""Functions for the figures on the page of this experiment."""

from typing import Any

import numpy

from benchmarks.lookup import Lookup, Values

_records = Lookup("parser")


def passes(record: str) -> tuple[float, float, float]:
    """The best development score of a training, its pass, and the number of passes.

    The small parsers are evaluated twice in a pass.
    """
    steps = [step for step in _records.get(f"{record}:dev:*:step") if step]
    best, a_pass = _records.get(f"{record}:best:step")[0], 2 if "small" in record else 1
    dev = float(_records.dev(record)[0])
    return dev, (steps.index(best) + 1) / a_pass, len(steps) / a_pass


def after_each_pass(record: str) -> tuple[float, ...]:
    """The development scores after each pass of a training that is evaluated twice in a pass."""
    rows = [row for row in _records.raw(f"{record}:dev:*") if row["step"]]
    return tuple(100 * row["score"] for row in rows[1::2])


def of_seeds(part: str, which: str = "*") -> Values:
    """The F1 of `best.cfg`, by the trees of minimum Bayes risk.

    Args:
        part: "dev" or "test".
        which: a seed, "*" for each of them, or "joined" for seeds 1 and 2 together.
    """
    if which == "joined":
        return 100 * _records.get(f"joined-best:{part}")
    first = _records.test("best-0-dev" if part == "dev" else "best-0")
    seeds = numpy.concatenate([first, _records.run("best_seeds", "best", part)])
    return seeds if which == "*" else seeds[[int(which)]]


def dev_after_six(run: str) -> Values:
    """The dev F1 of a parser of Table 5 after six passes."""
    plan, name = ("told_apart", "passes") if run == "chars" else ("table_5", run)
    return _records.run(plan, name, "dev")


def limited(limit: str, value: str | int | None, window: str = "relaxed") -> float:
    """The F1 of `small.cfg` on development data under a limit of its attention.

    Args:
        limit: "disable_content", "disable_position" or "window".
        value: the layers, such as "012", or the width of the window.
        window: "strict" or "relaxed".
    """
    none: dict[str, Any] = {
        "disable_content": [],
        "disable_position": [],
        "window": None,
        "relaxed": True,
    }
    layers = list(map(int, value)) if isinstance(value, str) else value
    wanted = {**none, limit: layers, "relaxed": window == "relaxed"}
    (f1,) = (
        row["f"] for row in _records.raw("small-ablation:rows:*") if wanted.items() <= row.items()
    )
    return 100 * float(f1)
