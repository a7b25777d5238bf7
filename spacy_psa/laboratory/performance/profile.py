"""Where the time of a pipeline goes, in annotation and in training."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from spacy.language import Language

from spacy_psa.laboratory.performance.pipelines import Annotation, Sentences, Training
from spacy_psa.laboratory.performance.rooms import ROOMS, Place, Rooms
from spacy_psa.laboratory.performance.sampling import INTERVAL, sampled

MOST_FUNCTIONS = 25
Material = TypeVar("Material")


class Profile(NamedTuple):
    """Where the time went.

    Examples:
        >>> place = Place("encoder", ("lstm.forward", "lstm.step"))
        >>> found = Profile(10, "word", Counter({place: 2e-6}))
        >>> found.rooms()["encoder"], found.functions()
        (2e-06, [('lstm.step', 'encoder', 2e-06)])
    """

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
        found = dict.fromkeys(ROOMS, 0.0)
        for place, seconds in self.seconds.items():
            found[place.room] += seconds
        return found

    def functions(self) -> list[tuple[str, str, float]]:
        """List functions with their rooms and their own seconds, without what they call.

        A call into C counts for the function that calls it.
        """
        own: Counter[tuple[str, str]] = Counter()
        for place, seconds in self.seconds.items():
            own[place.functions[-1] if place.functions else "", place.room] += seconds
        return [(name, room, seconds) for (name, room), seconds in own.most_common()]

    def to_dict(self) -> dict[str, Any]:
        """Give the profile as an object for a JSON file, with the functions that take most."""
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
    """Profile the annotation of words, as `Annotation` does it.

    Args:
        nlp: the pipeline.
        sentences: the words of each doc.
        repeats: the number of runs that count, after a first one that does not.
    """
    row = Annotation("", nlp, sentences)
    words = repeats * sum(map(len, sentences))
    return Profile(words, "word", _sample(nlp, row.docs, row.annotate, repeats))


def profile_training(nlp: Language, train: Path, steps: int, batch: int, repeats: int) -> Profile:
    """Profile steps of training, as `Training` takes them; they change the weights.

    Args:
        nlp: the pipeline.
        train: the `.spacy` file with the training docs.
        steps: the number of batches in a run.
        batch: the number of docs in a batch.
        repeats: the number of runs that count, after a first one that does not.
    """
    row = Training("", nlp, train, steps, batch)
    return Profile(repeats * steps, "step", _sample(nlp, row.batches, row.take, repeats))


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


def markdown(profiles: dict[str, Profile]) -> str:
    """Write tables of the rooms and of the functions that take most.

    Args:
        profiles: {title: profile}.
    """
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
