"""CoNLL-U, the format of Universal Dependencies: words, parts of speech and nested entities.

Entities are in the last column, as CorefUD and GUM write them: `Entity=(1-person` begins one, and
`Entity=1)` ends it. The line `# global.Entity` names the fields between the hyphens.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from spacy.tokens import Doc, Span
from spacy.util import filter_spans
from spacy.vocab import Vocab

from spacy_psa.corpora import tag_schemes
from spacy_psa.corpora.lines import NO_WORD, read_lines
from spacy_psa.corpora.marked_text import BROKEN, KEPT, MISSING, NESTED, Misfits
from spacy_psa.corpora.readers import make_doc
from spacy_psa.errors import InputError

COLUMNS = 10
ACROSS = "goes over a sentence bound"
BLANKED = "sentence(s) whose words are blanked out, left out"
EMPTY = "empty node(s), left out"
UNWRITTEN = "has an empty node instead of a word"
_ENTITY = re.compile(r"(?:^|\|)Entity=([^|]*)")
_BRACKET = re.compile(r"(\()?([^()]+)(\))?")
_OF_PARTS = re.compile(r"\[\d+/\d+\]$")


class Row(NamedTuple):
    """The columns that are read of a word, of words that are written as one, or of an empty node.

    `number` is 1 for a word, 1-2 for words that are written as one, and 1.1 for an empty node.
    """

    number: str
    word: str
    tag: str
    """The part of speech of the treebank (XPOS), or the universal one where it has none."""
    misc: str
    """The last column."""


def split_row(text: str) -> Row:
    """Split a line that is not a comment; a ValueError explains why it is not a row."""
    columns = text.split("\t")
    if len(columns) != COLUMNS:
        raise ValueError(f"{len(columns)} columns instead of {COLUMNS}, between tabs")
    number, word, _, universal, tag, *_, misc = columns
    if not (number.isdecimal() or NO_WORD.fullmatch(number)) or not word.strip():
        raise ValueError(f"{number!r} is not a number of a word, or the word is blank")
    return Row(number, word, universal if tag == "_" else tag, misc)


@dataclass
class Sentence:
    """One sentence of n words."""

    document: str | None
    line: int
    """The line of its first word."""
    words: list[str] = field(default_factory=list)
    spaces: list[bool] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    entities: list[tag_schemes.Span] | None = None
    """Entities, the outer ones first; None in a file that has none."""
    unclear: set[int] = field(default_factory=set)
    """The words of entities that are left out, from 0."""

    @property
    def is_blanked(self) -> bool:
        """Whether all words are underscores, because the text is not free."""
        return not "".join(self.words).strip("_")


def read_docs(
    path: Path,
    vocab: Vocab,
    repairs: Counter[str] | None = None,
    faults: list[str] | None = None,
    misfits: Misfits | None = None,
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence of a plain or .gz file, see `sentence_doc`.

    `repairs` counts repairs and what is left out. For `faults` and `misfits`, see `read_sentences`.
    """
    counts: Counter[str] = Counter() if repairs is None else repairs
    for sentence in read_sentences(str(path), read_lines(path, counts), counts, faults, misfits):
        if sentence.is_blanked:
            counts[BLANKED] += 1
            continue
        if misfits is not None:
            for *_, label in sentence.entities or ():
                misfits.count(label, KEPT)
        yield sentence_doc(vocab, sentence)


def has_entities(path: Path) -> bool:
    """Tell whether a file names the fields of entities; this may read all of it."""
    return any(text.startswith("# global.Entity") for _, text in read_lines(path, Counter()))


def sentence_doc(vocab: Vocab, sentence: Sentence, **groups: list[tag_schemes.Span]) -> Doc:
    """Make the `Doc` of a sentence, with further `groups` of `doc.spans`.

    Entities are in `doc.spans["sc"]`, and those that are in no other in `doc.ents`. The words of
    entities that were left out are in `doc.spans["missing_spans"]`, and missing annotation in
    `doc.ents`. The document is in `doc.user_data["document"]`.
    """
    entities = sentence.entities
    if entities is not None:
        groups = {NESTED: entities, **groups}
        if sentence.unclear:
            groups[MISSING] = [(i, i + 1, "MISSING") for i in sorted(sentence.unclear)]
    doc = make_doc(vocab, sentence.words, sentence.tags, None, sentence.spaces, **groups)
    if entities is not None:
        outer = filter_spans([Span(doc, *entity) for entity in entities])
        inside = {i for span in outer for i in range(span.start, span.end)}
        missing = [doc[i : i + 1] for i in sorted(sentence.unclear - inside)]
        doc.set_ents(outer, missing=missing)
    if sentence.document is not None:
        doc.user_data["document"] = sentence.document
    return doc


def read_sentences(
    name: str,
    lines: Iterable[tuple[int, str]],
    repairs: Counter[str],
    faults: list[str] | None = None,
    misfits: Misfits | None = None,
) -> Iterator[Sentence]:
    """Yield the sentences of a file, as a stream; a file without sentences is an error.

    Words are the syntactic ones ("du" of French is "de" and "le"). `repairs` counts empty nodes,
    which are left out, and entities that are left out, as they are discontinuous, go over the end
    of a sentence or have no words but empty nodes; if `misfits` is set, it has these entities
    instead. `faults` gets the errors of lines, and their sentences are left out.
    """
    reader = _Reader(name, repairs, misfits)
    empty, whole = True, True
    for number, text in chain(lines, [(0, "")]):
        try:
            if text.startswith("#"):
                reader.take_comment(text)
            elif text and whole:
                reader.take_row(number, split_row(text))
        except ValueError as error:
            message = f"{name}:{number}: {error}; correct the line"
            if faults is None:
                raise InputError(message) from error
            faults.append(message)
            reader.forget()
            whole = False
        if not text:
            if (sentence := reader.finish()) is not None:
                empty = False
                yield sentence
            whole = True
    if empty:
        if faults:
            raise InputError(faults[0])
        raise InputError(f"{name}:1: no sentences in the file; check that it is complete")


class _Reader:
    """Reads one file, line by line."""

    def __init__(self, name: str, repairs: Counter[str], misfits: Misfits | None) -> None:
        self.name, self.repairs, self.misfits = name, repairs, misfits
        self.document: str | None = None
        self.sentence: Sentence | None = None
        self.label: int | None = None
        """The place of the label among the fields of an entity; None before the line with them."""
        self.open: list[tuple[str, int, str]] = []
        """The name, first word and label of each entity that is open."""
        self.across: Counter[str] = Counter()
        """The names of the entities that go over the end of a sentence."""
        self.whole_word = (0, True)
        """The last syntactic word of a word that has several, and whether a space follows it."""

    def take_comment(self, text: str) -> None:
        key, _, value = text[1:].partition("=")
        if key.strip() in ("newdoc", "newdoc id"):
            self.document = value.strip() or None
        elif key.strip() == "global.Entity":
            fields = value.strip().split("-")
            if "etype" not in fields:
                raise ValueError(f"there is no field etype in {value.strip()!r}")
            self.label = fields.index("etype")

    def take_row(self, line: int, row: Row) -> None:
        space = "SpaceAfter=No" not in row.misc.split("|")
        if "-" in row.number:
            self.whole_word = (int(row.number.partition("-")[2]), space)
            return
        self.sentence = sentence = self.sentence or Sentence(self.document, line)
        if self.label is not None:
            sentence.entities = sentence.entities or []
        here = len(sentence.words)
        if "." in row.number:
            self.repairs[EMPTY] += 1
        else:
            self.take_word(sentence, row, space)
        if entity := _ENTITY.search(row.misc):
            self.take_entities(sentence, here, entity[1])

    def take_word(self, sentence: Sentence, row: Row, space: bool) -> None:
        number, expected = int(row.number), len(sentence.words) + 1
        if number != expected:
            raise ValueError(f"the word number is {number} instead of {expected}")
        if number <= self.whole_word[0]:
            space = self.whole_word[1] and number == self.whole_word[0]
        sentence.words.append(row.word)
        sentence.spaces.append(space)
        sentence.tags.append(row.tag)

    def take_entities(self, sentence: Sentence, here: int, text: str) -> None:
        """Read the entities that begin or end at a row; those that begin have the word `here`."""
        if self.label is None or sentence.entities is None:
            raise ValueError("there are entities, but no line '# global.Entity' names their fields")
        for begins, name, ends in _BRACKET.findall(text):
            fields = name.split("-")
            if begins:
                if len(fields) <= self.label:
                    raise ValueError(f"the entity {name!r} has no label")
                self.open.append((fields[0], here, fields[self.label]))
            if ends:
                places = [i for i, each in enumerate(self.open) if each[0] == fields[0]]
                if places:
                    self.close(sentence, *self.open.pop(places[-1]))
                elif self.across[fields[0]]:
                    self.across[fields[0]] -= 1
                    sentence.unclear.update(range(len(sentence.words)))
                else:
                    raise ValueError(f"the entity {name!r} ends, but has not begun")

    def close(self, sentence: Sentence, name: str, start: int, label: str) -> None:
        end = len(sentence.words)
        if _OF_PARTS.search(name):
            if "[1/" in name:
                self.leave_out(sentence, BROKEN, start, label)
            sentence.unclear.update(range(start, end))
        elif start == end:
            self.leave_out(sentence, UNWRITTEN, start, label)
        elif sentence.entities is not None:
            sentence.entities.append((start, end, label))

    def leave_out(self, sentence: Sentence, kind: str, start: int, label: str) -> None:
        if self.misfits is None:
            self.repairs[f"mark(s) left out: {kind}"] += 1
        else:
            text = " ".join(sentence.words[start:])
            self.misfits.add(f"{self.name}:{sentence.line}", kind, f"{text!r} ({label})", "")
            self.misfits.count(label, kind)

    def forget(self) -> None:
        """Forget the sentence that is being read."""
        self.sentence = None
        self.open.clear()

    def finish(self) -> Sentence | None:
        sentence, self.sentence = self.sentence, None
        self.whole_word = (0, True)
        if sentence is not None:
            for name, start, label in self.open:
                self.leave_out(sentence, ACROSS, start, label)
                self.across[name] += 1
                sentence.unclear.update(range(start, len(sentence.words)))
            self.open.clear()
            if sentence.entities is not None:
                sentence.entities.sort(key=lambda span: (span[0], -span[1]))
        return sentence
