"""Exports, read back by the readers of each format."""

from collections import Counter

import pytest
import spacy

from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.corpora.marked_text import Misfits, mark_doc
from spacy_psa.corpora.own_files import own_files
from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.decisions import Decision
from spacy_psa.studio.active_learning.export import export
from spacy_psa.studio.active_learning.export_format import ExportFormat
from spacy_psa.studio.active_learning.store import Component, open_store
from tests.helpers.decided import LABELS, accept, complete, reject, small_store, tokens_of
from tests.helpers.pipelines import entities, spans_of

TEXTS = ["Ada 😀 Lovelace met Bob", "Bob  left <b>Acme</b>.", "ذهب Ada إلى London", "Nobody came"]


@pytest.fixture
def store(tmp_path):
    with small_store(tmp_path / "names.sqlite", TEXTS) as store:
        yield store


@pytest.fixture
def decided(store):
    """Texts 1 and 3 are decided completely, 2 in part, 4 not at all."""
    words = [list(store.text(number).tokens.words) for number in (1, 2, 3)]
    bob = words[0].index("Bob")
    store.decide(1, "ann", "ner", [accept(0, 3, "PER"), accept(bob, bob + 1, "PER")])
    store.decide(1, "ann", "ner", [complete(0, len(words[0]))])
    store.decide(2, "ann", "ner", [accept(0, 1, "PER"), reject(2, 3, "ORG"), complete(1, 2)])
    london = words[2].index("London")
    store.decide(3, "ann", "ner", [accept(london, london + 1, "LOC"), complete(0, len(words[2]))])
    return store


def read(folder):
    """The docs that `init corpus` would make of the one export in a folder."""
    (file,), _ = own_files(folder)
    misfits, nlp = Misfits(), spacy.blank("en")
    if file.format == "DocBin":
        docs = read_docbin(file.path, nlp.vocab)
    else:
        docs = [mark_doc(nlp, text, misfits) for text in file.texts(Counter(), [])]
    assert misfits.lines == []
    return file.format, docs


def iob(doc):
    return [token.ent_iob_ or "-" for token in doc]


@pytest.mark.parametrize(
    ("name", "form", "expected"),
    [
        ("train.spacy", ExportFormat.auto, "DocBin"),
        ("train.jsonl", ExportFormat.auto, "spaCy JSONL"),
        ("train.json", ExportFormat.auto, "Label Studio JSON"),
        ("train.jsonl", ExportFormat.doccano, "doccano JSONL"),
    ],
)
def test_an_export_is_read_back_as_it_was_decided(decided, tmp_path, name, form, expected):
    out = tmp_path / "out" / name
    counts = export(decided, out, form)
    read_as, docs = read(out.parent)
    assert read_as == expected
    gaps = expected in ("DocBin", "spaCy JSONL")
    assert (counts.texts, counts.partial) == ((3, 0) if gaps else (2, 1))
    assert counts.spans == sum(len(doc.ents) for doc in docs)
    by_text = {doc.text: doc for doc in docs}
    first, second, third = (by_text.get(text) for text in TEXTS[:3])
    assert [(ent.text, ent.label_) for ent in first.ents] == [
        ("Ada 😀 Lovelace", "PER"),
        ("Bob", "PER"),
    ]
    assert "-" not in iob(first)
    assert [(ent.text, ent.label_) for ent in third.ents] == [("London", "LOC")]
    assert TEXTS[3] not in by_text
    assert (second is not None) == gaps
    if gaps:
        tokens = decided.text(2).tokens
        assert [token.text for token in second] == list(tokens.words)
        assert iob(second)[:3] == ["B", "O", "-"]
        assert set(iob(second)[2:]) == {"-"}
        assert spans_of(second.spans["incorrect_spans"]) == [(2, 3, "ORG")]
        assert "incorrect_spans" not in first.spans


def test_a_rejection_without_label_is_one_of_each_label(store, tmp_path):
    store.decide(4, "ann", "ner", [reject(0, 1), reject(1, 2, "PER")])
    export(store, tmp_path / "out" / "train.spacy")
    _, (doc,) = read(tmp_path / "out")
    expected = [*((0, 1, label) for label in LABELS), (1, 2, "PER")]
    assert spans_of(doc.spans["incorrect_spans"]) == expected
    assert iob(doc) == ["-", "-"]


def test_one_annotator_or_those_who_agree(store, tmp_path):
    store.decide(4, "ann", "ner", [accept(0, 1, "PER"), complete(0, 2)])
    store.decide(4, "bob", "ner", [accept(0, 1, "ORG"), complete(0, 2)])
    store.decide(1, "bob", "ner", [accept(0, 1, "PER")])
    for annotator, label in (("ann", "PER"), ("bob", "ORG")):
        counts = export(store, tmp_path / annotator / "train.spacy", annotator=annotator)
        docs = read(tmp_path / annotator)[1]
        assert entities(docs[-1]) == [(0, 1, label)]
        assert (counts.texts, counts.disagreements) == (len(docs), 0)
        assert len(docs) == {"ann": 1, "bob": 2}[annotator]
    counts = export(store, tmp_path / "both" / "train.spacy")
    first, last = read(tmp_path / "both")[1]
    assert entities(first) == [(0, 1, "PER")]
    assert (entities(last), iob(last)) == ([], ["-", "O"])
    assert counts.disagreements == 2
    assert "2 spans on which annotators disagree, left missing" in counts.summary
    assert "texts by annotator: ann 1, bob 2" in counts.summary
    counts = export(store, tmp_path / "both.jsonl", ExportFormat.doccano, "bob")
    assert (counts.texts, counts.partial, dict(counts.by_annotator)) == (1, 1, {"bob": 1})


def test_chunks_are_exported_from_texts_that_are_complete(tmp_path):
    with open_store(tmp_path / "chunks.sqlite") as store:
        store.use(Component("chunker", ("NP",), "chunks"))
        store.add([(tokens_of("The rain stopped"), {}), (tokens_of("It rained"), {})])
        store.decide(1, "ann", "chunker", [accept(0, 2, "NP"), complete(0, 3)])
        store.decide(2, "ann", "chunker", [accept(0, 1, "NP")])
        counts = export(store, tmp_path / "out" / "train.spacy")
    assert (counts.texts, counts.partial) == (1, 1)
    (doc,) = read(tmp_path / "out")[1]
    assert spans_of(doc.spans["chunks"]) == [(0, 2, "NP")]
    assert not doc.has_annotation("ENT_IOB")


@pytest.mark.parametrize(
    ("name", "left_out", "tags"),
    [
        ("train.spacy", 0, [["DET", "NOUN", "VERB"], ["", "!NOUN"]]),
        ("train.jsonl", 1, [["DET", "NOUN", "VERB"]]),
        ("tasks.json", 1, [["", "", ""]]),
    ],
)
def test_tags_are_exported(tmp_path, name, left_out, tags):
    """Label Studio has only spans, so a tag is a span of one word there."""
    with open_store(tmp_path / "tags.sqlite") as store:
        component = Component("tagger", ("DET", "NOUN", "VERB"), None, tags=True)
        store.use(component)
        assert store.component == component
        store.add([(tokens_of("The rain stopped"), {}), (tokens_of("It rained"), {})])
        given = [accept(i, i + 1, tag) for i, tag in enumerate(component.labels)]
        store.decide(1, "ann", "tagger", given)
        store.decide(2, "ann", "tagger", [reject(1, 2, "NOUN")])
        counts = export(store, tmp_path / "out" / name)
    assert counts.partial == left_out and counts.summary.startswith(f"{len(tags)} text")
    assert "with 3 tags" in counts.summary
    docs = read(tmp_path / "out")[1]
    assert [[token.tag_ for token in doc] for doc in docs] == tags


def test_of_several_wrong_tags_of_a_word_one_is_written_and_the_others_are_counted(tmp_path):
    with open_store(tmp_path / "tags.sqlite") as store:
        store.use(Component("tagger", ("DET", "NOUN", "VERB"), None, tags=True))
        store.add([(tokens_of("It rained"), {})])
        wrong = [reject(i, i + 1, tag) for i in (0, 1) for tag in ("DET", "NOUN", "VERB")]
        store.decide(1, "ann", "tagger", [*wrong, accept(0, 1, "DET")])
        counts = export(store, tmp_path / "out" / "train.spacy")
    assert counts.wrong == 2 and counts.summary.endswith("2 further wrong tags of a word, left out")
    [doc] = read(tmp_path / "out")[1]
    assert [token.tag_ for token in doc] == ["DET", "!VERB"]


@pytest.mark.parametrize(
    ("made", "arguments", "message"),
    [
        ([], {}, "no text is decided"),
        ([complete(0, 2)], {"annotator": "eve"}, "'eve' has decided nothing; ann has"),
        ([accept(0, 1, "PER")], {"form": ExportFormat.doccano}, "1 are decided in part"),
        ([Decision("skipped", 0, 2)], {}, "no text is decided"),
    ],
)  # fmt: skip
def test_nothing_to_export_is_one_error_and_leaves_no_file(
    store, tmp_path, made, arguments, message
):
    if made:
        store.decide(4, "ann", "ner", made)
    with pytest.raises(InputError, match=message):
        export(store, tmp_path / "train.spacy", **arguments)
    assert not (tmp_path / "train.spacy").exists()


def test_a_name_that_does_not_tell_the_format_is_one_error(decided, tmp_path):
    with pytest.raises(InputError, match="cannot tell the format"):
        export(decided, tmp_path / "train.txt")


def test_the_file_of_the_decisions_is_not_overwritten(decided, tmp_path):
    other = tmp_path / "link.jsonl"
    other.symlink_to(decided.path)
    for path in (decided.path, other):
        with pytest.raises(InputError, match="is the file of the decisions"):
            export(decided, path, ExportFormat.jsonl)
    assert decided.text(1).tokens.words
