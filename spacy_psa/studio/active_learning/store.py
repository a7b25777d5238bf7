"""A file of texts and of the decisions about them, in SQLite."""

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from spacy_psa.corpora.held_file import held
from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.decisions import Decided, Decision
from spacy_psa.studio.active_learning.tokens import Tokens

VERSION = 1
APPLICATION = 0x70736131  # of spacy-psa: SQLite keeps it in the head of the file
SCHEMA = """
CREATE TABLE texts (
    id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, length INTEGER NOT NULL,
    words TEXT NOT NULL, spaces TEXT NOT NULL, starts TEXT NOT NULL, meta TEXT NOT NULL
);
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, action INTEGER NOT NULL, time TEXT NOT NULL,
    annotator TEXT NOT NULL, text INTEGER NOT NULL REFERENCES texts, component TEXT NOT NULL,
    verdict TEXT NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL, label TEXT NOT NULL
);
CREATE INDEX decisions_of_text ON decisions (text);
CREATE TABLE undone (
    action INTEGER PRIMARY KEY, time TEXT NOT NULL, annotator TEXT NOT NULL
);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
LATER = """
CREATE TABLE IF NOT EXISTS notes (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, annotator TEXT NOT NULL,
    text INTEGER NOT NULL REFERENCES texts, flag INTEGER NOT NULL, comment TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS keys (
    annotator TEXT NOT NULL, key TEXT NOT NULL, text INTEGER NOT NULL REFERENCES texts,
    PRIMARY KEY (annotator, key)
);
CREATE INDEX IF NOT EXISTS decisions_of_annotator
ON decisions (annotator, component, verdict, action);
"""
"""Files of the first versions do not have these, and those versions do not read the tables."""
STANDING = "FROM decisions WHERE action NOT IN (SELECT action FROM undone)"


class StoredText(NamedTuple):
    """A text of a store."""

    number: int
    tokens: Tokens
    meta: dict[str, Any]
    """The other keys of its record."""


class Note(NamedTuple):
    """The note of an annotator about a text."""

    flag: bool = False
    comment: str = ""


class Component(NamedTuple):
    """The component that the decisions are about, as exports need it."""

    name: str
    labels: tuple[str, ...]
    spans_key: str | None
    """The span group of a chunker; None for entities and tags."""
    tags: bool = False
    """Whether the labels are tags, one for each token."""


class AnnotationStore:
    """The texts and decisions of a file. Threads may share it.

    All decisions stay in the file as they were made, with annotator and time. Undo adds to the log
    that they are undone. Each call of `decide` and `undo` is on the disk, whole, when it returns.

    `open_store` opens one. If the file cannot be written, a method raises an `InputError` and
    changes nothing.
    """

    def __init__(self, database: sqlite3.Connection, path: Path):
        self.path = path
        self._database = database
        self._lock = threading.Lock()

    # Texts

    def add(self, texts: Iterable[tuple[Tokens, dict[str, Any]]]) -> int:
        """Add texts, each with the other keys of its record, and count the new ones.

        Texts that are there already, and empty ones, are left out.
        """
        rows = (
            (
                sha256(tokens.text.encode("utf8", "surrogatepass")).hexdigest(),
                len(tokens.words),
                *(json.dumps(part, ensure_ascii=False) for part in tokens),
                json.dumps(meta),  # which may have half of a surrogate pair
            )
            for tokens, meta in texts
            if tokens.text.strip()
        )
        insert = (
            "INSERT OR IGNORE INTO texts (digest, length, words, spaces, starts, meta) "
            "VALUES (?, ?, ?, ?, ?, ?)"
        )
        with self._transaction() as database:
            return database.executemany(insert, rows).rowcount

    def lengths(self) -> dict[int, int]:
        """Read the number of tokens of each text."""
        return dict(self._rows("SELECT id, length FROM texts ORDER BY id"))

    def text(self, number: int) -> StoredText:
        """Read a text."""
        for text in self.texts([number]):
            return text
        raise InputError(f"{self.path}: has no text {number}: ask for another")

    def texts(self, numbers: Iterable[int]) -> Iterator[StoredText]:
        """Read some texts."""
        query = "SELECT words, spaces, starts, meta FROM texts WHERE id = ?"
        for number in numbers:
            for *parts, meta in self._rows(query, number):
                tokens = Tokens(*(tuple(json.loads(part)) for part in parts))
                yield StoredText(number, tokens, json.loads(meta))

    def all_texts(self) -> dict[int, str]:
        """Read the words of all texts."""
        rows = self._rows("SELECT id, words, spaces FROM texts ORDER BY id")
        return {number: _joined(words, spaces) for number, words, spaces in rows}

    # Notes

    def note(self, text: int, annotator: str, note: Note) -> None:
        """Replace the note of an annotator about a text; old ones stay in the file."""
        with self._transaction() as database:
            database.execute(
                "INSERT INTO notes (time, annotator, text, flag, comment) VALUES (?, ?, ?, ?, ?)",
                (_now(), annotator, text, *note),
            )

    def notes(self, text: int | None = None) -> dict[int, dict[str, Note]]:
        """Read the notes that are not empty, by text and annotator; of one text or of all."""
        rows = self._rows(
            "SELECT text, annotator, flag, comment FROM notes WHERE id IN (SELECT max(id) "
            "FROM notes WHERE ? IS NULL OR text = ? GROUP BY text, annotator) ORDER BY id",
            text,
            text,
        )
        notes: dict[int, dict[str, Note]] = {}
        for text, annotator, flag, comment in rows:
            if flag or comment:
                notes.setdefault(text, {})[annotator] = Note(bool(flag), comment)
        return notes

    # Decisions

    def done(self, annotator: str, key: str) -> int | None:
        """Find the text of the action that an annotator did with a key; None if there is none."""
        rows = self._rows("SELECT text FROM keys WHERE annotator = ? AND key = ?", annotator, key)
        return int(rows[0][0]) if rows else None

    def decide(
        self,
        text: int,
        annotator: str,
        component: str,
        decisions: Sequence[Decision],
        key: str = "",
    ) -> None:
        """Save decisions that are made, and undone, together, and the key of this action."""
        now = _now()
        with self._transaction() as database:
            query = "SELECT coalesce(max(action), 0) + 1 FROM decisions"
            (action,) = database.execute(query).fetchone()
            database.executemany(
                "INSERT INTO decisions (action, time, annotator, text, component, verdict, start, "
                '"end", label) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
                [(action, now, annotator, text, component, *decision) for decision in decisions],
            )
            _keep(database, annotator, key, text)

    def undo(self, annotator: str, component: str, key: str = "") -> int | None:
        """Undo the last decisions of an annotator, and return the number of their text.

        None if nothing is left to undo. The key of this action is saved.
        """
        # The "+" keeps the index out, so that the table is read from its end.
        query = (
            f"SELECT action, text {STANDING} AND +annotator = ? AND component = ? "
            "ORDER BY id DESC LIMIT 1"
        )
        with self._transaction() as database:
            last = database.execute(query, (annotator, component)).fetchone()
            if last is None:
                return None
            database.execute("INSERT INTO undone VALUES (?, ?, ?)", (last[0], _now(), annotator))
            _keep(database, annotator, key, last[1])
        return int(last[1])

    def decided(self, text: int, annotator: str, component: str) -> Decided:
        """Read the decisions of an annotator about a text."""
        rows = self._rows(
            f'SELECT verdict, start, "end", label {STANDING} AND text = ? AND annotator = ? '
            "AND component = ? ORDER BY id",
            text,
            annotator,
            component,
        )
        return Decided().then(Decision(*row) for row in rows)

    def all_decided(self, component: str, *, shared: bool = False) -> dict[int, dict[str, Decided]]:
        """Read the decisions of each annotator about each text, by text and annotator.

        `shared` leaves out texts about which only one annotator has decided.
        """
        several = "SELECT text FROM decisions GROUP BY text HAVING count(DISTINCT annotator) > 1"
        rows: dict[int, dict[str, list[Decision]]] = {}
        for text, annotator, *row in self._rows(
            f'SELECT text, annotator, verdict, start, "end", label {STANDING} '
            f"AND component = ? AND verdict != 'skipped' "
            f"{f'AND text IN ({several}) ' * shared}ORDER BY id",
            component,
        ):
            rows.setdefault(text, {}).setdefault(annotator, []).append(Decision(*row))
        return {
            text: {name: Decided().then(decisions) for name, decisions in own.items()}
            for text, own in rows.items()
        }

    def skipped(self, annotator: str, component: str) -> dict[int, int]:
        """Read the texts that an annotator has skipped, each with a number that grows with time."""
        query = (
            f"SELECT text, max(id) {STANDING} AND verdict = 'skipped' AND annotator = ? "
            "AND component = ? GROUP BY text"
        )
        return dict(self._rows(query, annotator, component))

    def count(self, annotator: str, component: str) -> int:
        """Count the standing decisions of an annotator."""
        query = (
            f"SELECT count(*) {STANDING} AND verdict IN ('accepted', 'rejected', 'complete') "
            "AND annotator = ? AND component = ?"
        )
        return int(self._rows(query, annotator, component)[0][0])

    def changes(self) -> tuple[int, int]:
        """Count what was ever decided and undone: other counts, other decisions."""
        query = "SELECT (SELECT count(*) FROM decisions), (SELECT count(*) FROM undone)"
        ((decided, undone),) = self._rows(query)
        return decided, undone

    def labels(self, component: str) -> set[str]:
        """Read the labels of the standing decisions."""
        query = f"SELECT DISTINCT label {STANDING} AND component = ? AND label != ''"
        return {label for (label,) in self._rows(query, component)}

    # The component

    @property
    def component(self) -> Component | None:
        """The component that the decisions are about; None in a new file."""
        rows = self._rows("SELECT value FROM facts WHERE name = 'component'")
        if not rows:
            return None
        name, labels, *kind = json.loads(rows[0][0])
        return Component(name, tuple(labels), *kind)

    @property
    def added(self) -> tuple[str, ...]:
        """The labels that annotators have added to those of the model."""
        rows = self._rows("SELECT value FROM facts WHERE name = 'added'")
        return tuple(json.loads(rows[0][0])) if rows else ()

    def use(self, component: Component, added: str = "") -> None:
        """Set the component that the decisions are about, and note a label that was added to it.

        Raises:
            InputError: if decisions are about another, or have labels that it does not know.
        """
        before = self.component
        if before and before.name != component.name and self.all_decided(before.name):
            raise InputError(
                f"{self.path}: its decisions are about the component {before.name!r}, and this "
                f"one is {component.name!r}: use a pipeline with {before.name!r}, or another file"
            )
        unknown = sorted(self.labels(component.name) - set(component.labels))
        if unknown:
            raise InputError(
                f"{self.path}: its decisions have labels that {component.name} does not know, "
                f"{', '.join(unknown)}: use a pipeline that was trained with them, or another file"
            )
        # Versions before 0.2 know three values, and no tags.
        rows = [("component", json.dumps(component if component.tags else component[:3]))]
        if added:
            rows.append(("added", json.dumps([*self.added, added])))
        with self._transaction() as database:
            database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    # SQLite

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _as_input_error(self.path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file, when no other thread is reading it any more."""
        with self._lock:
            self._database.close()

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock, _as_input_error(self.path):
            return self._database.execute(query, values).fetchall()


@contextmanager
def open_store(path: Path, *, reading: bool = False) -> Iterator[AnnotationStore]:
    """Open a file of decisions; it is made if it does not exist.

    Args:
        reading: whether it is only read. Then it must exist, and a server may have it open.

    Raises:
        InputError: if another process has it open to write, it is not such a file, a newer version
            wrote it, or the folder cannot be written.
    """
    if path.is_dir() or (reading and not path.exists()):
        what = "is a folder" if path.is_dir() else "there is no such file"
        raise InputError(f"{path}: {what}; name a file of decisions")
    with _held(path, reading):
        store = None
        try:
            with _as_input_error(path):
                # A read-only connection could not open a log that a crash has left.
                mode = "rw" if reading else "rwc"
                database = sqlite3.connect(
                    f"{path.absolute().as_uri()}?mode={mode}",
                    uri=True,
                    isolation_level=None,
                    check_same_thread=False,
                    timeout=30,
                )
                store = AnnotationStore(database, path)
                _prepare(database, path, reading)
            yield store
        finally:
            if store is not None:
                store.close()


@contextmanager
def _held(path: Path, reading: bool) -> Iterator[None]:
    """Hold the file against other writers; the system lets it go if the process is killed."""
    if reading:
        yield
        return
    with held(
        path.with_name(f".{path.name}.lock"),
        f"{path}: another server has this file open: end it, or use another file",
        f"{path}: its folder cannot be written ({{reason}}); use a file in another folder",
    ):
        yield


def _prepare(database: sqlite3.Connection, path: Path, reading: bool) -> None:
    """Check what the file is, and make the tables of a new one that is written."""
    (application,), (version,) = (
        database.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    new = not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not new and application != APPLICATION:
        raise InputError(f"{path}: is a database of another program; use another file")
    if version > VERSION:
        raise InputError(
            f"{path}: a newer version of spacy-psa wrote this file (format {version}, this one "
            f"reads {VERSION}): pip install --upgrade spacy-psa"
        )
    if new and reading:
        raise InputError(f"{path}: is empty; name a file of decisions")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    if not new and not reading:
        database.executescript(LATER)
    if new:
        database.executescript(
            f"BEGIN IMMEDIATE; {SCHEMA} {LATER} PRAGMA application_id = {APPLICATION}; "
            f"PRAGMA user_version = {VERSION}; COMMIT;"
        )


def _keep(database: sqlite3.Connection, annotator: str, key: str, text: int) -> None:
    """Note that an action is done, if it has a key."""
    if key:
        database.execute("INSERT INTO keys VALUES (?, ?, ?)", (annotator, key, text))


def _joined(words: str, spaces: str) -> str:
    return "".join(word + " " * space for word, space in zip(json.loads(words), json.loads(spaces)))


@contextmanager
def _as_input_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OverflowError as error:
        raise InputError("there is no text of so large a number; use one of the file") from error
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error) or "malformed" in str(error):
            raise InputError(
                f"{path}: is not a file of decisions, or is broken ({error}); use another file"
            ) from error
        raise InputError(
            f"{path}: cannot be read or written ({error}); check the file, its folder and the disk"
        ) from error


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
