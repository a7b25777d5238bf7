"""Where a search is kept: a file of one process, a journal of several, or a database."""

import time
from pathlib import Path

from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from spacy_psa.errors import InputError

JOURNAL = ".journal"
"""The end of the name of a file that several processes may use."""

PAUSE = 1.0
"""Seconds."""


def open_storage(place: str) -> BaseStorage:
    """Open the storage of a search; it is made if it does not exist.

    Args:
        place: the path of an SQLite file; or of a journal, whose name ends in `.journal`, for
            processes that share a folder; or the URL of a database, such as
            `postgresql://user@host/name`.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     open_storage(f"{folder}/a.journal").get_all_studies()
        []
    """
    if "://" in place:
        return _database(place)
    path = Path(place).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == JOURNAL:
        if path.is_file() and path.read_bytes()[:1] not in (b"", b"{"):
            raise InputError("it is no journal")
        return JournalStorage(JournalFileBackend(str(path)))
    name = path.as_uri()  # escapes "?" and the like, as not all of SQLAlchemy 2 does
    url = URL.create("sqlite", database=name, query={"uri": "true"})
    return _database(url.render_as_string())


def _database(url: str) -> RDBStorage:
    try:
        return RDBStorage(url)
    except DBAPIError:
        time.sleep(PAUSE)  # another process may be making the tables
        return RDBStorage(url)
