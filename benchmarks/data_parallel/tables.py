"""The tables on the page of this experiment."""

from statistics import median
from typing import Any

from benchmarks.tables import Records, file_link, table

RECORD = "bilstm_crf"


SPEED = {
    "bilstm_crf": "BiLSTM-CRF",
    "bilstm_crf-32": "BiLSTM-CRF",
    "bilstm_crf-64": "BiLSTM-CRF",
    "psa": "PSA-BiLSTM-CRF",
}


def speed_table(records: Records) -> str:
    body = []
    for name, title in SPEED.items():
        found = records[name]["results"]
        speed = found["speed"]
        row = [title, str(found["batch"])]
        for key in ("one", "several", "apart"):
            row.append(_spread(speed[key]) if key in speed else "not measured")
        body.append([*row, f"{_ratio(found):.2f} ×", file_link(name)])
    header = ["config", "sentences of a process in a step", "one process", "two"]
    return table([*header, "two unconnected", "two against one", "record"], body)


def _spread(rounds: list[float]) -> str:
    return f"{median(rounds):.0f} ({min(rounds):.0f} to {max(rounds):.0f})"


def _ratio(found: dict[str, Any]) -> float:
    speed = found["speed"]
    return median(speed["several"]) / median(speed["one"])


def losses_table(records: Records) -> str:
    losses = records[RECORD]["results"]["losses"]
    body = [
        [str(step), f"{losses['one'][step]:.6f}", f"{losses['several'][step]:.6f}"]
        for step in (0, 1, 5, 10, 20)
    ]
    body.append(["largest difference", f"{losses['difference']:.1e} of the loss", ""])
    return table(["step", "loss, one process with batches twice as large", "several"], body)


def death_table(records: Records) -> str:
    death = records[RECORD]["results"]["death"]
    body = [[str(len(death["seconds"])), f"{max(death['seconds']):.2f}", death["said"][:200]]]
    return table(["kills", "seconds until the other one ended, at most", "it said"], body)


TABLES = {"speed": speed_table, "losses": losses_table, "death": death_table}


def headline(records: Records) -> str:
    ratios = [_ratio(records[name]["results"]) for name in SPEED]
    return f"{min(ratios):.2f} to {max(ratios):.2f} × the sentences a second"


def claims(records: Records) -> list[str]:
    found = records[RECORD]["results"]
    seconds = found["death"]["seconds"]
    speed = records["bilstm_crf-32"]["results"]["speed"]
    return [
        f"{median(speed['apart']) / median(speed['one']):.2f} × (batches of 32)",
        f"with 64 it is {_ratio(records['bilstm_crf-64']['results']):.2f} ×",
        f"differ by at most {found['losses']['difference']:.1e} of a loss",
        f"After each of {len(seconds)} kills, the other process ended within {max(seconds):.2f} s",
    ]
