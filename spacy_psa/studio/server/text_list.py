"""The list of the texts of a work: search, filters, and a page at a time."""

from enum import Enum

from spacy_psa.studio.active_learning.decisions import agreement
from spacy_psa.studio.active_learning.store import Note
from spacy_psa.studio.server.annotating import Annotating, Row

PAGE = 50
"""Texts of a page."""
SHOWN = 120
"""Characters of a text in the list."""


class TextFilter(str, Enum):
    """The texts that the list shows."""

    all = "all"
    undecided = "undecided"
    """Those that the annotator has not decided completely."""
    done = "done"
    skipped = "skipped"
    flagged = "flagged"
    """Those that somebody has flagged or commented."""
    disagreed = "disagreed"
    """Those where annotators have decided differently."""


class TextList:
    """The texts of a work in the order of the file. The methods may be called in any thread."""

    def __init__(self, work: Annotating):
        self._work = work
        self._texts = work.store.all_texts()
        self._disagreed: tuple[tuple[int, int], frozenset[int]] | None = None

    def page(self, annotator: str, search: str, which: TextFilter, first: int) -> Row:
        """List some texts, from the one with the rank `first` on, and count all that match.

        Args:
            annotator: who asks.
            search: a part of the text, in upper or lower case; "" for all.
            which: the filter.
            first: how many texts to leave out; if fewer match, those before the last page.
        """
        done = self._work.done(annotator)
        skipped = self._work.store.skipped(annotator, self._work.component.name).keys() - done
        notes = self._work.store.notes()
        chosen = self._chosen(which, done, skipped, notes)
        part = search.strip().casefold()
        matching = [n for n in chosen if part in self._texts[n].casefold()] if part else chosen
        first = min(first, max(0, len(matching) - 1) // PAGE * PAGE)
        rows = [
            {
                "text": number,
                "words": self._texts[number][:SHOWN],
                "state": "done" if number in done else "skipped" if number in skipped else "",
                "flagged": any(note.flag for note in notes.get(number, {}).values()),
                "comments": sum(bool(note.comment) for note in notes.get(number, {}).values()),
            }
            for number in matching[first : first + PAGE]
        ]
        return {"total": len(matching), "first": first, "size": PAGE, "rows": rows}

    def _chosen(
        self,
        which: TextFilter,
        done: set[int],
        skipped: set[int],
        notes: dict[int, dict[str, Note]],
    ) -> list[int]:
        if which is TextFilter.undecided:
            return [number for number in self._texts if number not in done]
        sets = {TextFilter.done: done, TextFilter.skipped: skipped, TextFilter.flagged: {*notes}}
        if which is TextFilter.disagreed:
            return sorted(self._where_annotators_disagree())
        return sorted(sets[which]) if which in sets else [*self._texts]

    def _where_annotators_disagree(self) -> frozenset[int]:
        version = self._work.store.changes()
        if self._disagreed is None or self._disagreed[0] != version:
            shared = self._work.store.all_decided(self._work.component.name, shared=True)
            numbers = (number for number, own in shared.items() if agreement(own.values())[1])
            self._disagreed = version, frozenset(numbers)
        return self._disagreed[1]
