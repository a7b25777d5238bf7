"""The file of decisions after crashes, undo, other writers and newer versions."""

import sqlite3
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from threading import Thread

import pytest

from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.decisions import Decided
from spacy_psa.studio.active_learning.store import VERSION, Component, open_store
from tests.helpers.decided import accept, complete, reject, small_store, tokens_of
from tests.helpers.patience import PATIENCE


@pytest.fixture
def path(tmp_path):
    return tmp_path / "names.sqlite"


def run(path, body):
    """Run code in a process of its own, with an open store."""
    code = f"""
    import os, sys
    from pathlib import Path
    from tests.helpers.decided import *
    with small_store(Path(sys.argv[1])) as store:
        {textwrap.indent(textwrap.dedent(body), " " * 8).strip()}
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


def test_decisions_are_there_when_the_file_is_opened_again(path):
    with small_store(path) as store:
        store.decide(1, "ann", "ner", [accept(0, 2, "PER"), complete(2, 3)])
        store.decide(2, "bob", "ner", [reject(0, 1, "ORG")])
    with open_store(path) as store:
        assert store.decided(1, "ann", "ner") == Decided(((0, 2, "PER"),), (), frozenset({2}))
        assert store.decided(1, "bob", "ner") == Decided()
        assert store.all_decided("ner") == {
            1: {"ann": store.decided(1, "ann", "ner")},
            2: {"bob": Decided(rejected=((0, 1, "ORG"),))},
        }
        assert store.text(1).tokens == tokens_of("Ada Lovelace met Bob")
        assert store.lengths() == {1: 4, 2: 3, 3: 2}


def test_a_process_that_is_killed_after_a_decision_has_saved_it(path):
    result = run(
        path, 'store.decide(1, "ann", "ner", [accept(0, 2, "PER")]); os.kill(os.getpid(), 9)'
    )
    assert result.returncode == -9
    with small_store(path) as store:  # nor is it locked
        assert store.decided(1, "ann", "ner").accepted == ((0, 2, "PER"),)


def test_a_process_that_is_killed_in_the_middle_of_a_decision_has_saved_nothing_of_it(path):
    with small_store(path) as store:
        store.decide(1, "ann", "ner", [accept(0, 2, "PER")])
    result = run(
        path,
        """
        database = store._database
        class Slow:
            def __getattr__(self, name):
                return getattr(database, name)
            def executemany(self, query, rows):
                database.execute(query, rows[0])
                os.kill(os.getpid(), 9)
        store._database = Slow()
        store.decide(1, "ann", "ner", [accept(3, 4, "PER"), complete(0, 4)])
        """,
    )
    assert result.returncode == -9, result.stderr
    with small_store(path) as store:
        assert store.decided(1, "ann", "ner") == Decided(((0, 2, "PER"),))
        store.decide(1, "ann", "ner", [complete(0, 4)])
        assert store.decided(1, "ann", "ner").covers(4)


def test_a_second_writer_is_one_error_and_a_reader_is_none(path):
    with small_store(path) as store:
        store.decide(1, "ann", "ner", [accept(0, 2, "PER")])
        with pytest.raises(InputError, match="another server has this file open"):
            open_store(path).__enter__()
        result = run(path, "pass")
        assert "another server has this file open" in result.stderr
        with open_store(path, reading=True) as reader:
            assert reader.decided(1, "ann", "ner").accepted == ((0, 2, "PER"),)
    with small_store(path):
        pass


def test_a_file_is_closed_after_the_last_thread_has_read_it(path):
    with ExitStack() as stack:
        store = stack.enter_context(small_store(path))
        closing = Thread(target=stack.close)
        with store._lock:  # as a thread that reads
            closing.start()
            closing.join(0.2)
            assert closing.is_alive()
        closing.join(PATIENCE)
        with pytest.raises(InputError, match="closed"):
            store.decided(1, "ann", "ner")


def test_a_file_of_a_newer_version_is_one_error_and_stays_as_it_is(path):
    with small_store(path):
        pass
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {VERSION + 1}")
    database.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"a newer version of spacy-psa wrote this file"):
        open_store(path).__enter__()
    assert path.read_bytes() == before


@pytest.mark.parametrize("reading", [False, True])
def test_what_is_no_file_of_decisions_is_one_error(tmp_path, reading):
    text = tmp_path / "text.sqlite"
    text.write_text("Ada left. " * 500)
    with pytest.raises(InputError, match="is not a file of decisions"):
        open_store(text, reading=reading).__enter__()
    assert text.read_text() == "Ada left. " * 500
    other = tmp_path / "other.sqlite"
    database = sqlite3.connect(other)
    database.execute("CREATE TABLE mine (a)")
    database.close()
    with pytest.raises(InputError, match="a database of another program"):
        open_store(other, reading=reading).__enter__()
    with pytest.raises(InputError, match="is a folder"):
        open_store(tmp_path, reading=reading).__enter__()


def test_a_missing_file_is_made_to_write_and_an_error_to_read(path):
    with pytest.raises(InputError, match="there is no such file"):
        open_store(path, reading=True).__enter__()
    assert not path.exists()


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="cannot be"):
        open_store(file / "names.sqlite").__enter__()


def test_undo_takes_decisions_back_one_action_at_a_time_and_keeps_the_log(path):
    with small_store(path) as store:
        store.decide(1, "ann", "ner", [accept(0, 2, "PER"), complete(0, 4)])
        store.decide(2, "bob", "ner", [accept(0, 1, "PER")])
        store.decide(1, "ann", "ner", [reject(0, 2, "PER")])
        assert store.undo("ann", "ner") == 1
        assert store.decided(1, "ann", "ner").covers(4)
        assert store.undo("ann", "ner") == 1
        assert store.decided(1, "ann", "ner") == Decided()
        assert store.undo("ann", "ner") is None
        assert store.decided(2, "bob", "ner").accepted == ((0, 1, "PER"),)
        store.decide(1, "ann", "ner", [accept(3, 4, "PER")])
        assert store.decided(1, "ann", "ner").accepted == ((3, 4, "PER"),)
    database = sqlite3.connect(path)
    assert database.execute("SELECT count(*) FROM decisions").fetchone() == (5,)
    assert database.execute("SELECT count(*) FROM undone").fetchone() == (2,)
    database.close()


def test_a_skip_is_remembered_and_undone(path):
    with small_store(path) as store:
        store.decide(2, "ann", "ner", [reject(0, 1)._replace(verdict="skipped")])
        assert list(store.skipped("ann", "ner")) == [2]
        assert store.skipped("bob", "ner") == {}
        assert store.all_decided("ner") == {}
        assert store.undo("ann", "ner") == 2
        assert store.skipped("ann", "ner") == {}


def test_the_same_text_is_imported_once_and_empty_texts_never(path):
    with small_store(path) as store:
        texts = ["Bob left Acme", "", "  ", "Eve slept", "Eve slept"]
        assert store.add((tokens_of(text), {"id": 7}) for text in texts) == 1
        assert store.lengths().keys() == {1, 2, 3, 4}
        assert store.text(4).meta == {"id": 7}
        assert store.text(2).meta == {}


def test_an_import_that_fails_adds_nothing(path):
    def texts():
        yield tokens_of("Eve slept"), {}
        raise InputError("texts.jsonl:2: not JSON")

    with small_store(path) as store:
        with pytest.raises(InputError, match=r"texts.jsonl:2"):
            store.add(texts())
        assert len(store.lengths()) == 3


def test_another_component_or_labels_it_does_not_know_are_errors(path):
    with small_store(path) as store:
        store.use(Component("other", ("PER",), None))  # nothing is decided yet
        store.use(Component("ner", ("PER", "ORG"), None))
        store.decide(1, "ann", "ner", [accept(0, 2, "ORG")])
        with pytest.raises(InputError, match="labels that ner does not know, ORG"):
            store.use(Component("ner", ("PER",), None))
        with pytest.raises(InputError, match="about the component 'ner', and this one is 'other'"):
            store.use(Component("other", ("PER", "ORG"), None))
        assert store.component == Component("ner", ("PER", "ORG"), None)
        store.undo("ann", "ner")
        store.use(Component("ner", ("PER",), None))


def test_a_text_that_is_not_there_is_one_error(path):
    with small_store(path) as store, pytest.raises(InputError, match="has no text 9"):
        store.text(9)


def test_a_number_that_no_file_can_have_is_an_error(tmp_path):
    error = pytest.raises(InputError, match="no text of so large a number")
    with small_store(tmp_path / "a.sqlite", ["Ada"]) as store, error:
        store.text(2**70)
