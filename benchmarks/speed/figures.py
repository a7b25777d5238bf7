"""Functions for the figures on the page of this experiment."""

from benchmarks.lookup import Lookup

_records = Lookup("speed")
_BOUND = 12_200
"""The words per second that the fastest product allows: 58.4e9 / 4.8e6, rounded."""


def rate(section: str, row: str, unit: str = "per_second") -> float:
    """The median rate of a row in a section, "RECORD:SECTION".

    Args:
        unit: "per_second" by the clock, "per_cpu_second" by processor time.
    """
    return float(_records.get(f"{section}:rows:{row}:{unit}:median")[0])


def quartiles(section: str, row: str) -> tuple[float, float]:
    """The quartiles of the rate of a row, by the clock."""
    spread = _records.get(f"{section}:rows:{row}:per_second:*")
    return spread[1], spread[2]


def times(section: str, row: str, other: str, unit: str = "per_second") -> float:
    """How many times as fast as another row a row is."""
    return rate(section, row, unit) / rate(section, other, unit)


def of_bound(row: str, factor: float = 1.0) -> float:
    """The words per second of a row, in percent of those that the products allow."""
    return 100 * factor * rate("repeated:annotation", row) / _BOUND


def most_steps(name: str) -> float:
    """The training steps with a head that takes no time, as a multiple of those of 0.1.0."""
    gain = times("pairs-head:training", f"{name}-transition", name, "per_cpu_second")
    return gain * float(_records.get(f"pairs:rows:{name}:steps:ratio")[0])


def without_attention() -> float:
    """The steps of PSA in bfloat16 if only its products took time, as a multiple of float32."""
    layers = sum(_records.get("bound:rows:psa-bfloat16:least:*"))
    return _step("psa") / (_step("bilstm_crf") + layers)


def left_for_attention() -> float:
    """The milliseconds of a step of the baseline that remain for TENER after its products."""
    share = _records.get("bound:encoder_share")[0]
    return float(_step("bilstm_crf") * share - sum(_records.get("bound:rows:tener-8x64:least:*")))


def _step(row: str) -> float:
    """The milliseconds of a step."""
    return step_of("bound", row)


def step_of(record: str, row: str) -> float:
    """The milliseconds of processor time of a training step."""
    return float(1e3 / _records.get(f"{record}:rows:{row}:steps:per_cpu_second:median")[0])


def rest_of(record: str, row: str) -> float:
    """The milliseconds of a step beyond the baseline's, without layers and attention."""
    layers = sum(_records.get(f"{record}:rows:{row}:least:*"))
    attention = _records.get(f"{record}:rows:{row}:attention:now")[0]
    return float(step_of(record, row) - step_of(record, "bilstm_crf") - layers - attention)


def bound_of(record: str, row: str) -> float:
    """The largest possible ratio to the steps of the baseline, with attention at its least."""
    least = sum(_records.get(f"{record}:rows:{row}:least:*"))
    least += _records.get(f"{record}:rows:{row}:attention:least")[0]
    base = step_of(record, "bilstm_crf")
    return float(base / (base + least))


def hours_of_tener() -> float:
    """The hours for the epochs of TENER at full size in float32."""
    steps = max(_records.get("systems/conll2003-tener-full_size:dev:*:step"))
    return float(steps / rate("tener_full_size:training", "tener", "per_cpu_second") / 3600)
