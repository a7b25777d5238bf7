"""The labels of entities that a user wants to keep, and under which names."""

from collections.abc import Iterable
from typing import NamedTuple

from spacy.tokens import Doc, Span

from spacy_psa.corpora.marked_text import INCORRECT, NESTED
from spacy_psa.errors import InputError


class OwnLabels(NamedTuple):
    """What `--label` says."""

    kept: frozenset[str] = frozenset()
    """The only labels to keep, after renaming; all if there are none."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Labels and their new names."""
    numbers: tuple[str, ...] = ()
    """The names of tags that are numbers, in their order."""

    @classmethod
    def parse(cls, values: Iterable[str]) -> "OwnLabels":
        """Read values such as `PER`, `person=PER` and `O,B-PER,I-PER`."""
        kept, renamed, numbers = set(), [], []
        for value in values:
            if "," in value:
                numbers += [name.strip() for name in value.split(",")]
            elif "=" in value:
                old, _, new = value.partition("=")
                renamed.append((old.strip(), new.strip()))
            else:
                kept.add(value.strip())
        if not all((*kept, *numbers, *(name for pair in renamed for name in pair))):
            raise InputError("--label: a name is blank; write PER, person=PER or O,B-PER,I-PER")
        return cls(frozenset(kept), tuple(renamed), tuple(numbers))

    @property
    def only(self) -> str:
        """The label of tags without one: the only label to keep, if there is one."""
        return next(iter(self.kept)) if len(self.kept) == 1 else ""

    def changed(self, doc: Doc) -> Doc:
        """Rename the labels of a doc, and leave out entities of others than those to keep."""
        if self.kept or self.renamed:
            missing = [doc[i : i + 1] for i in range(len(doc)) if doc[i].ent_iob == 0]
            doc.set_ents(self._spans(doc.ents), missing=missing)
            for key in (NESTED, INCORRECT):
                if key in doc.spans:
                    doc.spans[key] = self._spans(doc.spans[key])
        return doc

    def _spans(self, spans: Iterable[Span]) -> list[Span]:
        names = dict(self.renamed)
        named = ((span, names.get(span.label_, span.label_)) for span in spans)
        return [
            Span(span.doc, span.start, span.end, label)
            for span, label in named
            if not self.kept or label in self.kept
        ]

    def check(self, labels: Iterable[str]) -> None:
        """Raise an InputError if a label to keep or to rename is not among those of the files."""
        labels = set(labels)
        wanted = {old for old, _ in self.renamed}
        wanted |= self.kept - {new for _, new in self.renamed}
        absent = sorted(wanted - labels)
        if absent:
            known = ", ".join(sorted(labels)) or "none"
            raise InputError(f"--label {absent[0]}: no entity has this label; there are: {known}")
