"""The tables on the page of this experiment."""

from statistics import mean, median, stdev
from typing import Any

from benchmarks.tables import Records, best_dev, best_score, file_link, percent, table, test_f


def seeds_table(records: Records) -> str:
    body = [
        [str(record["seed"]), best_dev(record), percent(test_f(record)), file_link(name)]
        for name, record in _trained(records)
    ]
    body.append(["mean ± deviation", _spread(_dev(records)), _spread(_test(records)), ""])
    return table(["seed", "dev F1 (evaluation of how many)", "test F1", "record"], body)


def _trained(records: Records) -> list[tuple[str, Any]]:
    return [(name, records[name]) for name in sorted(records) if name.startswith("memory-")]


def _dev(records: Records) -> list[float]:
    return [best_score(record) for _, record in _trained(records)]


def _test(records: Records) -> list[float]:
    return [test_f(record) for _, record in _trained(records)]


def _cost(speed: dict[str, Any]) -> float:
    return median(speed["results"]["memory"]) / median(speed["results"]["sentences"])


def _spread(scores: list[float]) -> str:
    return f"{percent(mean(scores))} ± {percent(stdev(scores))}"


TABLES = {"seeds": seeds_table}


def headline(records: Records) -> str:
    return f"test F1 {_spread(_test(records))}"


def claims(records: Records) -> list[str]:
    scores = _test(records)
    joined = records["ensemble"]["results"]
    return [
        f"the {len(joined['seeds'])} models reach a dev F1 of {percent(joined['dev'])} "
        f"and a test F1 of {percent(joined['test'])}",
        f"test F1 is {percent(mean(scores))} in the mean of {len(scores)} seeds",
        f"annotates {_cost(records['speed']):.2f} × the words a second",
        f"and {_cost(records['speed-bfloat16']):.2f} × in bfloat16",
        f"dev F1 is {best_dev(records['bfloat16-1'])}, and test F1 "
        f"{percent(test_f(records['bfloat16-1']))}",
    ]
