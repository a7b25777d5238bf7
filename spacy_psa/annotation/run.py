"""How a run of annotation goes: its settings, who follows it, and its summary."""

from dataclasses import dataclass, field

from spacy_psa.annotation.rows import ANNOTATION
from spacy_psa.errors import InputError


class Watch:
    """Follows a run; this base class shows nothing."""

    def advance(self, position: int, total: int | None, words: int) -> None:
        """Show how much of the input is done: `position` of `total`, None if that is unknown."""

    def say(self, line: str) -> None:
        """Print a message."""


@dataclass(frozen=True)
class Run:
    """The settings of a run."""

    watch: Watch = field(default_factory=Watch)
    gpu_id: int = -1
    """The number of the GPU; -1 for the CPU."""
    batch_size: int = 256
    """The number of documents in a batch."""
    n_process: int = 1
    """The number of processes; -1 for one per core."""
    skip_bad: bool = False
    """Whether malformed lines are skipped and counted."""

    def check(self, text_key: str) -> None:
        """Raise an InputError if there are no processes, or the annotation has this key."""
        if self.n_process == 0:
            raise InputError("--n-process 0: use a number of processes, or -1 for one per core")
        if text_key in ANNOTATION:
            raise InputError(
                f"--text-key {text_key}: the annotation has this key; rename it in the input"
            )


class NothingAnnotated(RuntimeError):
    """There are documents, and none of them could be annotated."""


@dataclass
class Summary:
    """The numbers of a run.

    Examples:
        >>> print(Summary(docs=2, words=7, failed=1, seconds=0.5))
        2 docs, 7 words, 0.5 s, 14 words/s, 1 failed
    """

    docs: int = 0
    words: int = 0
    failed: int = 0
    """Documents that could not be annotated."""
    bad: int = 0
    """Malformed lines that were skipped."""
    kept: int = 0
    """Shards that were finished before."""
    seconds: float = 0.0
    replaced: frozenset[str] = frozenset()
    """The keys of the input that the annotation has replaced."""

    def check(self) -> None:
        """Raise NothingAnnotated if there are documents, but none was annotated."""
        if (lost := self.failed + self.bad) and not self.docs:
            raise NothingAnnotated(f"none of {lost:,} docs was annotated")

    def __str__(self) -> str:
        parts = [f"{self.docs:,} docs", f"{self.words:,} words", f"{self.seconds:.1f} s"]
        parts.append(f"{self.words / self.seconds:,.0f} words/s")
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        if self.bad:
            parts.append(f"{self.bad:,} malformed lines skipped")
        if self.kept:
            parts.append(f"{self.kept:,} finished shards kept")
        return ", ".join(parts)
