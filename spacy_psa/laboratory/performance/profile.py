"""Where the time of a pipeline goes, in annotation and in training."""

import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from spacy.language import Language

from spacy_psa.errors import InputError
from spacy_psa.laboratory.performance.pipelines import Annotation, Sentences, Training
from spacy_psa.laboratory.performance.rooms import ROOMS, Place, Rooms

INTERVAL = 0.002
"""Seconds between two samples."""
MOST_FUNCTIONS = 25
Material = TypeVar("Material")
Key = TypeVar("Key")


class Profile(NamedTuple):
    """Where the time went."""

    amount: int
    """The number of units of work."""
    unit: str
    """A unit of work: "word" or "step"."""
    seconds: "Counter[Place]"
    """The processor time at each place, in seconds."""

    @property
    def total(self) -> float:
        """The processor time of all places, in seconds."""
        return float(sum(self.seconds.values()))

    def rooms(self) -> dict[str, float]:
        """Sum the seconds of each room, in the order of `ROOMS`."""
        rooms = dict.fromkeys(ROOMS, 0.0)
        for place, seconds in self.seconds.items():
            rooms[place.room] += seconds
        return rooms

    def functions(self) -> list[tuple[str, str, float]]:
        """List functions with their rooms and their own seconds, without what they call.

        A call into C counts for the function that calls it.
        """
        own: Counter[tuple[str, str]] = Counter()
        for place, seconds in self.seconds.items():
            own[place.functions[-1] if place.functions else "", place.room] += seconds
        return [(name, room, seconds) for (name, room), seconds in own.most_common()]

    def to_dict(self) -> dict[str, Any]:
        """The profile as an object for a JSON file, with the slowest functions."""
        return {
            "unit": self.unit,
            "amount": self.amount,
            "seconds": round(self.total, 6),
            "rooms": {room: round(seconds, 6) for room, seconds in self.rooms().items()},
            "functions": [
                {"function": name, "room": room, "seconds": round(seconds, 6)}
                for name, room, seconds in self.functions()[:MOST_FUNCTIONS]
            ],
        }


def profile_annotation(nlp: Language, sentences: Sentences, repeats: int) -> Profile:
    """Profile the annotation of the words of docs, as `Annotation` does it.

    `repeats` is the number of runs that count, after a first one that does not.
    """
    row = Annotation("", nlp, sentences)
    words = repeats * sum(map(len, sentences))
    return Profile(words, "word", _sample(nlp, row.docs, row.annotate, repeats))


def profile_training(nlp: Language, train: Path, steps: int, batch: int, repeats: int) -> Profile:
    """Profile the steps of `Training`, which change the weights, as `profile_annotation` does."""
    row = Training("", nlp, train, steps, batch)
    return Profile(repeats * steps, "step", _sample(nlp, row.batches, row.make_steps, repeats))


def _sample(
    nlp: Language, prepare: Callable[[], Material], work: Callable[[Material], None], repeats: int
) -> "Counter[Place]":
    rooms = Rooms(nlp)
    work(prepare())
    total: Counter[Place] = Counter()
    for _ in range(repeats):
        material = prepare()
        with rooms.marked(), sampled(rooms.place) as seconds:
            work(material)
        total += seconds
    return total


@contextmanager
def sampled(read: Callable[[FrameType | None], Key]) -> Iterator[Counter[Key]]:
    """Count the processor time of the block by the code that the main thread runs in it.

    A timer interrupts the block every `INTERVAL`. Each time, the processor time of the process
    since the interrupt before counts for the code that runs then. Python answers an interrupt at
    the end of a call into C, so a long matrix product counts in full, and for the function that
    called it. The time of the samples themselves does not count.

    `read` is called with the frame that runs; it returns the key for which its time counts. Yields
    {key: seconds of processor time}, which is complete after the block. Windows has no such timers.
    """
    if not hasattr(signal, "setitimer"):
        raise InputError("a profile needs the timers of Linux or macOS: use one of these systems")
    if threading.current_thread() is not threading.main_thread():
        raise InputError("a profile is made in the main thread of a program: call it there")
    seconds: Counter[Key] = Counter()
    last = time.process_time()

    def sample(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.process_time()
        seconds[read(frame)] += now - last  # type: ignore[assignment]  # a float
        signal.setitimer(signal.ITIMER_REAL, INTERVAL)  # only now, so samples never nest
        last = time.process_time()

    before = signal.signal(signal.SIGALRM, sample)
    signal.setitimer(signal.ITIMER_REAL, INTERVAL)
    try:
        yield seconds
    finally:
        sample(signal.SIGALRM, sys._getframe(2))
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def markdown(profiles: dict[str, Profile]) -> str:
    """Write tables of the rooms and of the slowest functions of profiles, by title."""
    return "\n\n".join(_table(title, profile) for title, profile in profiles.items()) + "\n"


def _table(title: str, profile: Profile) -> str:
    total = profile.total or 1.0
    micros = 1e6 / profile.amount
    lines = [
        f"### {title}",
        "",
        f"Sampled every {1000 * INTERVAL:.0f} ms, over {profile.total:.2f} s of processor time.",
        "",
        f"| room | µs a {profile.unit} | share | |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {room} | {seconds * micros:,.2f} | {seconds / total:.1%} | {ROOMS[room]} |"
        for room, seconds in profile.rooms().items()
    ]
    lines += [
        f"| all | {profile.total * micros:,.2f} | 100% | |",
        "",
        "| function, without those it calls | room | share |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| `{name or room}` | {room} | {seconds / total:.1%} |"
        for name, room, seconds in profile.functions()[:15]
    ]
    return "\n".join(lines)
