"""Count what a GPU does in a training step: kernels, and the time in which it waits for the host.

Each CONFIG is a row of `benchmarks.gpu.speed`, with random weights. After `WARM` steps, torch's
profiler follows `STEPS` steps. With `--times 8`, batches are eight times as large. On a CPU
(`--gpu-id -1`) only the host is followed.

The record has `times` and `rows`: {config: the figures of a step}. They are `milliseconds`, from
the first event to the last; `kernels`, `copies` and `launches`, their numbers; `waits`, how often
the host waited for the GPU; `busy`, the milliseconds in which a kernel or copy ran, and `idle`, the
others; `longest_gaps` [milliseconds]; `slowest` {kernel: milliseconds}; and `host` {operation of
torch: its own milliseconds}. The profiler itself takes time on the host, so `idle` is an upper
bound.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu.speed import ROWS, make_steps, training_of
from benchmarks.gpu.timed import synchronize
from benchmarks.gpu.without import WITHOUT, switch_off
from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.scoring.provenance import provenance

WARM, STEPS, MOST = 5, 10, 12
LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch")
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")


class Event(NamedTuple):
    """Something that ran from `start` to `end`, in microseconds."""

    name: str
    on_gpu: bool
    start: float
    end: float
    own: float = 0.0
    """The time without that of the events inside."""


def followed(work: Any) -> list[Event]:
    """Let the profiler follow a function."""
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_initialized():
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as profiler:
        work()
    return [
        Event(e.name, on_gpu, e.time_range.start, e.time_range.end, e.self_cpu_time_total)
        for e in profiler.events() or ()
        for on_gpu in [e.device_type == DeviceType.CUDA]
        if not (on_gpu and e.is_user_annotation)
    ]


def summary(events: Iterable[Event], steps: int) -> dict[str, Any]:
    """Sum up the events of some steps; see the docstring of the module."""
    events = sorted(events, key=lambda e: e.start)
    device = [e for e in events if e.on_gpu]
    host = [e for e in events if not e.on_gpu]
    kernels = [e for e in device if not e.name.startswith(("Memcpy", "Memset"))]
    gaps, busy, end = [], 0.0, events[0].start
    for e in device:
        gaps.append(max(0.0, e.start - end))
        busy += max(0.0, e.end - max(e.start, end))
        end = max(end, e.end)
    whole = max(e.end for e in events) - events[0].start
    slowest: Counter[str] = Counter()
    own: Counter[str] = Counter()
    for e in kernels:
        slowest[e.name[:80]] += e.end - e.start  # type: ignore[assignment]  # a float
    for e in host:
        own[e.name[:80]] += e.own  # type: ignore[assignment]

    def milliseconds(counter: "Counter[str]") -> dict[str, float]:
        return {n: round(each / steps / 1000, 4) for n, each in counter.most_common(MOST)}

    return {
        "milliseconds": round(whole / steps / 1000, 3),
        "kernels": len(kernels) / steps,
        "copies": (len(device) - len(kernels)) / steps,
        "launches": sum(e.name.startswith(LAUNCHES) for e in host) / steps,
        "waits": sum(e.name.startswith(WAITS) for e in host) / steps,
        "busy": round(busy / steps / 1000, 3),
        "idle": round((whole - busy) / steps / 1000, 3),
        "longest_gaps": [round(gap / 1000, 3) for gap in sorted(gaps, reverse=True)[:MOST]],
        "slowest": milliseconds(slowest),
        "host": milliseconds(own),
    }


def measure(config: str, gpu: int, times: int) -> dict[str, Any]:
    """Follow the steps of a config on a device."""
    training = training_of(config, gpu, times, WARM + STEPS)
    batches = training.batches
    make_steps(training, batches[:WARM])
    synchronize()

    def work() -> None:
        make_steps(training, batches[WARM:])
        synchronize()

    return summary(followed(work), len(batches[WARM:]))


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    options.add_argument("configs", nargs="+", choices=[*ROWS], metavar="CONFIG")
    options.add_argument("--times", type=int, default=1, help="size of batches (1)")
    options.add_argument("--without", nargs="*", default=[], choices=[*WITHOUT])
    options.add_argument("--gpu-id", type=int, default=0, help="number of the GPU (0); -1: the CPU")
    given = options.parse_args()
    switch_off(given.without)
    rows = {config: measure(config, given.gpu_id, given.times) for config in given.configs}
    for config, row in rows.items():
        shown = itertools.islice(row.items(), 7)
        print(config, ", ".join(f"{name} {value:g}" for name, value in shown), flush=True)
    with atomic_path(given.out) as temporary:
        result = {"times": given.times, "without": given.without, "rows": rows}
        text = json.dumps({**result, "source": provenance()}, indent=1)
        temporary.write_text(text, encoding="utf8")


if __name__ == "__main__":
    main()
