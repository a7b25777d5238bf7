"""Damaged files, and files with any words, through `spacy-psa convert`."""

import tempfile
from pathlib import Path

import pytest
import spacy
from hypothesis import strategies as st

from benchmarks.reliability.formats import FORMATS, sentences
from benchmarks.reliability.mutations import BAD, OUTCOMES, Case, outcome, quick, run
from spacy_psa.corpora.bracketing import unescape
from spacy_psa.corpora.docbin import read_docbin
from tests.helpers.properties import cases

SYNTAX = " \t\n\r()\0"
tokens = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=SYNTAX), min_size=1, max_size=6
)
WITH_TREES = ("ontonotes", "ptb", "brackets")


@pytest.fixture(autouse=True, scope="module")
def _commands_made_once():
    with quick():
        yield


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_gives_sentences_or_one_error_and_leaves_nothing_behind(name):
    for seed in range(20):
        found = outcome(name, Case(FORMATS[name], 10_000 + seed))
        assert found in OUTCOMES and found not in BAD, (name, seed)


@cases(0.1, name=st.sampled_from(sorted(FORMATS)), given=st.lists(tokens, min_size=4, max_size=4))
def test_words_of_any_characters_are_read_as_they_are_written_or_are_one_error(name, given):
    (record,) = sentences(0, 1, longest=4)
    for old, new in zip(record["words"], given):
        record["tree"] = record["tree"].replace(f" {old})", f" {new})", 1)
    record["words"] = given[: len(record["words"])]
    form = FORMATS[name]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, form.name), Path(folder, "out.spacy")
        source.write_bytes(form.write([record]).encode())
        if name == "glove":
            target = target.with_suffix(".txt")
        result = run(name, source, target, list(form.options))
        if result.exit_code:
            assert result.exit_code == 2 and result.stderr.count("\n") == 1
            assert list(Path(folder).iterdir()) == [source]
        elif name == "glove":
            assert target.read_bytes() == source.read_bytes()
        elif "warning" not in result.stderr:
            (doc,) = read_docbin(target, spacy.blank("xx").vocab)
            words = map(unescape, record["words"]) if name in WITH_TREES else record["words"]
            assert [t.text for t in doc] == (list("".join(words)) if name == "bmes" else [*words])
