"""Exports of annotation tools: what each reader makes of a record, and what it says of misfits."""

import json
from collections import Counter
from pathlib import Path

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.corpora import brat, doccano, label_studio, prodigy, spacy_jsonl
from spacy_psa.corpora.corpus_check import check_corpus, possible_mistakes
from spacy_psa.corpora.json_records import EMPTY, read_records
from spacy_psa.corpora.marked_text import KEPT, MOVED, Mark, MarkedText, Misfits, mark_doc
from spacy_psa.corpora.own_corpus import Reading, read_own_corpus
from spacy_psa.corpora.own_files import RELATIONS, own_files, part_of
from spacy_psa.errors import InputError
from tests.helpers.corpora import conllu
from tests.helpers.pipelines import spans_of

FILE = "in.jsonl"
TEXT = "Ada met Charles Babbage."
WANTED = [(0, 1, "PER"), (2, 4, "PER")]
PLACES = [(0, 3), (8, 23)]


def as_spacy(kind):
    spans = [{"start": s, "end": e, "label": "PER"} for s, e in PLACES]
    return {
        "ents": {"text": TEXT, "ents": spans},
        "entities": {"text": TEXT, "entities": [[s, e, "PER"] for s, e in PLACES]},
        "training data": [TEXT, {"entities": [[s, e, "PER"] for s, e in PLACES]}],
    }[kind]


def as_label_studio(**annotation):
    values = [{"start": s, "end": e, "text": TEXT[s:e], "labels": ["PER"]} for s, e in PLACES]
    result = [{"type": "labels", "value": value} for value in values]
    return {"id": 7, "data": {"text": TEXT}, "annotations": [{"result": result, **annotation}]}


RECORDS = {
    "ents": (spacy_jsonl, as_spacy("ents")),
    "entities": (spacy_jsonl, as_spacy("entities")),
    "training data": (spacy_jsonl, as_spacy("training data")),
    "prodigy": (
        prodigy,
        {
            "text": TEXT,
            "_input_hash": 1,
            "answer": "accept",
            "spans": [{"start": s, "end": e, "label": "PER"} for s, e in PLACES],
        },
    ),
    "doccano": (doccano, {"id": 1, "text": TEXT, "label": [[s, e, "PER"] for s, e in PLACES]}),
    "doccano, older": (doccano, {"data": TEXT, "labels": [[s, e, "PER"] for s, e in PLACES]}),
    "doccano, relations": (
        doccano,
        {
            "text": TEXT,
            "entities": [
                {"id": i, "label": "PER", "start_offset": s, "end_offset": e}
                for i, (s, e) in enumerate(PLACES)
            ],
        },
    ),
    "Label Studio": (label_studio, as_label_studio()),
    "Label Studio, short, other control": (
        label_studio,
        {
            "text": TEXT,
            "ner": [r["value"] for r in as_label_studio()["annotations"][0]["result"]],
            "annotation_id": 3,
        },
    ),
    "Label Studio, short": (
        label_studio,
        {
            "text": TEXT,
            "label": [r["value"] for r in as_label_studio()["annotations"][0]["result"]],
            "annotation_id": 3,
        },
    ),
}


def docs(reader, path, repairs=None):
    misfits = Misfits()
    nlp = spacy.blank("en")
    repairs = Counter() if repairs is None else repairs
    texts = reader.read_texts(path if reader is brat else read_records(path, repairs), repairs)
    return [mark_doc(nlp, text, misfits) for text in texts], misfits


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_each_export_is_recognised_and_read(write, name, suffix):
    reader, record = RECORDS[name]
    text = json.dumps(record) if suffix == ".jsonl" else json.dumps([record], indent=1)
    path = write(f"{text}\n", f"export{suffix}")
    (file,), _ = own_files(path.parent)
    assert file.reader is reader
    (doc,), misfits = docs(reader, path)
    assert spans_of(doc.ents) == WANTED and doc.text == TEXT
    assert not misfits.lines


def test_brat_is_recognised_and_read(write):
    path = write(TEXT + "\n", "a/doc1.txt")
    write("T1\tPER 0 3\tAda\n#1\tNote T1\tx\nT2\tPER 8 15;16 23\tCharles Babbage\n", "a/doc1.ann")
    lone = write("T1\tPER 0 3\tAda\n", "a/lone.ann")
    (file,), others = own_files(path.parent)
    assert file.format == "brat"
    assert others == [f"{lone}: is not a file of a corpus, left out"]
    repairs = Counter()
    (doc,), misfits = docs(brat, path, repairs)
    assert spans_of(doc.ents) == WANTED and not misfits.lines
    assert repairs == {brat.OTHERS: 1}


def test_a_line_of_brat_that_is_none_is_named(write):
    path = write(TEXT, "doc1.txt")
    write("T1\tPER 0 3\tAda\nT2 PER 8 23\n", "doc1.ann")
    with pytest.raises(InputError, match=r"doc1.ann:2: is not T1, tab"):
        docs(brat, path)


def test_misfits_of_brat_are_named_by_the_line_of_the_mark(write):
    path = write(TEXT, "doc1.txt")
    write("T1\tPER 0 3\tAda\nT2\tPER 8 15\tBabage\n", "doc1.ann")
    (doc,), misfits = docs(brat, path)
    assert [ent.text for ent in doc.ents] == ["Ada"]
    assert misfits.lines == [
        f"{path.with_suffix('.ann')}:2: 'Charles' (PER): is not the text that the file quotes: "
        "'Babage'"
    ]


def marked(*marks, text=TEXT, **more):
    misfits = Misfits()
    record = MarkedText("a.jsonl:3", text, [Mark(*mark) for mark in marks], **more)
    return mark_doc(spacy.blank("en"), record, misfits), misfits


@pytest.mark.parametrize(
    ("mark", "kind"),
    [
        ((8, 12, "PER"), "begins or ends inside a token: 'Charles'"),
        ((9, 23, "PER"), "begins or ends inside a token: 'Charles Babbage'"),
        ((8, 99, "PER"), "no text in the document, or no label: characters 8 to 99 of 24"),
        ((-3, 3, "PER"), "no text in the document, or no label: characters -3 to 3 of 24"),
        ((3, 4, "PER"), "no text in the document, or no label: characters 3 to 4 of 24"),
        ((5, 5, "PER"), "no text in the document, or no label: characters 5 to 5 of 24"),
        ((0, 3, ""), "no text in the document, or no label"),
        ((0, 3, "PER", "Bob"), "is not the text that the file quotes: 'Bob'"),
    ],
)
def test_a_mark_that_meets_no_tokens_is_named_with_its_place(mark, kind):
    doc, misfits = marked(mark)
    assert doc.ents == ()
    (line,) = misfits.lines
    assert line.startswith("a.jsonl:3: ") and kind in line
    assert sum(misfits.counts.values()) == 1


def test_tokens_under_a_misfit_are_missing_and_not_outside():
    doc, _ = marked((8, 12, "PER"))
    assert [token.ent_iob_ for token in doc] == ["O", "O", "", "O", "O"]


@pytest.mark.parametrize(
    ("mark", "states"),
    [
        ((0, 3, "PER", "Bob"), ["", "O", "O", "O", "O"]),
        ((16, 99, "PER"), ["O", "O", "O", "", ""]),
        ((-3, 3, "PER"), ["", "O", "O", "O", "O"]),
        ((0, 3, ""), ["", "O", "O", "O", "O"]),
        ((9, 9, "PER"), ["O", "O", "", "O", "O"]),
        ((30, 33, "PER"), ["", "", "", "", ""]),
        ((-9, -3, "PER"), ["", "", "", "", ""]),
    ],
)
def test_tokens_of_every_misfit_are_missing(mark, states):
    doc, misfits = marked(mark)
    assert [token.ent_iob_ for token in doc] == states
    assert len(misfits.lines) == 1


def test_the_rest_of_a_mark_that_overlaps_a_longer_one_is_missing():
    doc, _ = marked((0, 7, "ORG"), (4, 23, "PER"))
    assert [token.ent_iob_ for token in doc] == ["", "B", "I", "I", "O"]


@pytest.mark.parametrize(
    ("text", "mark", "place"),
    [
        (TEXT, (3, 10, "PER", "Charles"), (8, 15)),
        ("Bob saw Bob. Bob ran.", (14, 17, "PER", "Bob"), (13, 16)),
        ("It rained.\r\n\r\nAda L\r\nleft.", (12, 17, "PER", "Ada\nL"), (14, 19)),
        ("It rained.\r\n\r\nAda L\r\nleft.", (12, 17, "PER", "Ada L"), (14, 19)),
        ("Ada  Lovelace", (40, 52, "PER", "Ada Lovelace"), (0, 13)),
    ],
)
def test_the_nearest_place_of_a_quote_decides(text, mark, place):
    doc, misfits = marked(mark, text=text)
    assert [(ent.start_char, ent.end_char) for ent in doc.ents] == [place]
    assert misfits.moved == 1 and not misfits.lines


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(-5, 30),
            st.integers(-5, 30),
            st.sampled_from(["PER", "ORG", ""]),
            st.sampled_from([None, "Ada", "Charles Babbage", "Bob"]),
        ),
        max_size=5,
    )
)
def test_marks_are_kept_moved_or_reported_and_no_token_of_a_mark_is_outside(marks):
    doc, misfits = marked(*marks)
    outcomes = sum(misfits.labels.values(), Counter())
    assert outcomes.total() == len(marks)
    assert outcomes[KEPT] + outcomes[MOVED] == len(doc.ents)
    assert outcomes - Counter({KEPT: len(marks), MOVED: len(marks)}) == misfits.counts
    for start, end, _, quote in marks:
        for token in doc if quote is None else ():
            if token.idx < end and token.idx + len(token) > start:
                assert token.ent_iob_ != "O"


def test_a_wrong_span_that_meets_no_tokens_is_named():
    doc, misfits = marked(wrong=[Mark(0, 3, "LOC"), Mark(0, 2, "ORG")])
    assert spans_of(doc.spans["incorrect_spans"]) == [(0, 1, "LOC")]
    assert misfits.lines == ["a.jsonl:3: 'Ad' (not ORG): begins or ends inside a token"]


def test_blanks_around_a_mark_do_no_harm():
    doc, misfits = marked((0, 4, "PER"), (7, 15, "PER"))
    assert spans_of(doc.ents) == [(0, 1, "PER"), (2, 3, "PER")] and not misfits.lines


def test_a_text_may_be_longer_than_spacy_allows():
    doc, _ = marked((0, 3, "PER"), text="Ada " + "b" * 1_000_000)
    assert spans_of(doc.ents) == [(0, 1, "PER")]


def test_of_marks_that_overlap_the_longest_is_kept():
    doc, misfits = marked((8, 15, "PER"), (8, 23, "PER"), (8, 23, "PER"), (16, 23, "ORG"))
    assert spans_of(doc.ents) == [(2, 4, "PER")]
    assert misfits.counts == {"overlaps another": 2, "repeats another": 1}
    assert "'Babbage' (ORG): overlaps another: 'Charles Babbage' (PER) is kept" in misfits.lines[2]


def test_tokens_of_the_file_are_kept_with_their_tags():
    offsets = [(0, 3), (4, 7), (8, 23), (23, 24)]
    tags = ["NNP", "VBD", "NNP", "."]
    doc, misfits = marked((8, 23, "PER"), tokens=offsets, tags=tags)
    assert [token.text for token in doc] == ["Ada", "met", "Charles Babbage", "."]
    assert [token.tag_ for token in doc] == tags and doc.text == TEXT
    assert spans_of(doc.ents) == [(2, 3, "PER")] and not misfits.lines


SPERT = {"tokens": ["Ada"], "entities": [{"type": "PER", "start": 0, "end": 1}]}


@pytest.mark.parametrize("record", [RECORDS["prodigy"][1], RECORDS["doccano, relations"][1], SPERT])
def test_relations_are_left_out_and_counted(write, record):
    path = write(json.dumps(record | {"relations": [{"head": 0}, {"head": 1}]}), "a/train.json")
    _, corpus = own_docs(path.parent)
    assert f"2 {RELATIONS}" in corpus.warnings[0]


def test_other_groups_of_spans_are_left_out_and_counted(write):
    groups = {"sc": [], "ruler": [{"start": 0, "end": 3, "label": "PER"}], "empty": []}
    path = write(json.dumps({"text": TEXT, "ents": [], "spans": groups}))
    repairs = Counter()
    docs(spacy_jsonl, path, repairs)
    assert repairs[spacy_jsonl.OTHERS] == 1


def test_empty_records_are_counted_and_have_numbers(write):
    path = write(json.dumps({"annotations": [None, ["Ada", {"entities": []}]]}), "in.json")
    repairs = Counter()
    ((place, _),) = read_records(path, repairs)
    assert place == f"{path}: record 2" and repairs == {EMPTY: 1}


def test_what_annotate_writes_is_read_again(write):
    nlp = spacy.blank("en")
    doc = nlp(TEXT)
    doc.set_ents([doc.char_span(s, e, "PER") for s, e in PLACES])
    (again,), _ = docs(spacy_jsonl, write(json.dumps(doc.to_json()) + "\n"))
    assert spans_of(again.ents) == WANTED
    assert [t.text for t in again] == [t.text for t in doc]


def test_prodigy_keeps_what_was_accepted(write):
    record = RECORDS["prodigy"][1]
    answers = ["accept", "reject", "ignore"]
    text = "".join(json.dumps({**record, "answer": answer}) + "\n" for answer in answers)
    repairs = Counter()
    found, _ = docs(prodigy, write(text), repairs)
    assert len(found) == 1 and repairs == {prodigy.LEFT_OUT: 2}


def test_one_span_of_prodigy_says_nothing_of_other_tokens(write):
    record = {**RECORDS["prodigy"][1], "_view_id": "ner"}
    (doc,), _ = docs(prodigy, write(json.dumps(record)))
    assert [t.ent_iob_ for t in doc] == ["B", "", "B", "I", ""]


def decision(answer, start, end, label, text=TEXT, **others):
    span = {"start": start, "end": end, "label": label}
    return {"text": text, "answer": answer, "spans": [span], "_view_id": "ner", **others}


def test_decisions_of_prodigy_about_one_text_are_evidence_on_one_document(write):
    records = [
        decision("accept", 0, 3, "PER"),
        decision("reject", 8, 23, "LOC"),
        {"text": TEXT, "answer": "accept", "spans": [], "_view_id": "ner_manual"},
        decision("ignore", 4, 7, "PER"),
        decision("accept", 8, 23, "PER", _view_id="blocks", _is_binary=True),
        decision("accept", 0, 3, "PER"),  # by another annotator
        *[decision(answer, 4, 7, "ORG") for answer in ("accept", "reject")],
        decision("reject", 0, 3, "PER", text="Ada left."),
    ]
    path = write("".join(json.dumps(record) + "\n" for record in records), "p/train.jsonl")
    (manual, doc, other), corpus = own_docs(path.parent, nested=False)
    assert [t.ent_iob_ for t in manual] == ["O"] * 5
    assert [t.ent_iob_ + t.ent_type_ for t in doc] == ["BPER", "", "BPER", "IPER", ""]
    assert spans_of(doc.spans["incorrect_spans"]) == [(2, 4, "LOC")]
    assert [t.ent_iob_ for t in other] == [""] * 3
    assert spans_of(other.spans["incorrect_spans"]) == [(0, 1, "PER")]
    assert f"1 {prodigy.LEFT_OUT}, 1 {prodigy.CONTRADICTORY}" in corpus.warnings[0]
    assert not corpus.misfits.lines


def test_label_studio_counts_an_emoji_twice(write):
    text = "\U0001f600 Ada left"
    task = as_label_studio()
    task["data"]["text"] = text
    value = {"start": 3, "end": 6, "text": "Ada", "labels": ["PER"]}
    task["annotations"][0]["result"] = [{"type": "labels", "value": value}]
    (doc,), misfits = docs(label_studio, write(json.dumps([task]), "in.json"))
    assert [ent.text for ent in doc.ents] == ["Ada"] and not misfits.lines


def test_of_several_annotations_one_is_taken(write):
    skipped, right = as_label_studio(was_cancelled=True), as_label_studio(ground_truth=True)
    other = {"result": []}
    both = {**right, "annotations": [other, *skipped["annotations"], *right["annotations"]]}
    tasks = [both, skipped, {"data": {"text": "x"}}]
    repairs = Counter()
    found, _ = docs(label_studio, write(json.dumps(tasks), "in.json"), repairs)
    assert [spans_of(doc.ents) for doc in found] == [WANTED]
    assert repairs == {label_studio.OTHERS: 1, label_studio.UNLABELLED: 2}


def test_all_records_decide_the_format_of_a_file(write):
    empty = {"text": "Nobody came.", "entities": []}
    for name in ("entities", "doccano, relations"):
        reader, record = RECORDS[name]
        lines = "".join(json.dumps(each) + "\n" for each in (empty, empty, record))
        path = write(lines, f"{name[:7]}/export.jsonl")
        (file,), _ = own_files(path.parent)
        assert file.reader is reader
        found, _ = docs(reader, path)
        assert [spans_of(doc.ents) for doc in found] == [[], [], WANTED]


def test_each_label_of_a_region_counts(write):
    task = as_label_studio()
    task["annotations"][0]["result"][0]["value"]["labels"] = ["PER", "ORG"]
    (doc,), misfits = docs(label_studio, write(json.dumps([task]), "in.json"))
    assert spans_of(doc.ents) == WANTED
    (line,) = misfits.lines
    assert "'Ada' (ORG): overlaps another: 'Ada' (PER) is kept" in line


def test_a_region_without_a_label_is_missing(write):
    full = as_label_studio()
    regions = [result["value"] for result in full["annotations"][0]["result"]]
    del regions[0]["labels"]
    regions[1]["labels"] = []
    for task in (full, {"text": TEXT, "ner": regions, "annotation_id": 1}):
        (doc,), misfits = docs(label_studio, write(json.dumps([task]), "in.json"))
        assert [token.ent_iob_ for token in doc] == ["", "O", "", "", "O"]
        assert misfits.counts == {"has no text in the document, or no label": 2}


def test_results_that_mark_no_text_are_counted(write):
    full = as_label_studio()
    results = full["annotations"][0]["result"]
    short = {"text": TEXT, "ner": [result["value"] for result in results], "annotation_id": 1}
    short |= {"topic": {"choices": ["news", "art"]}, "stars": [{"rating": 3}]}
    results += [
        {"type": "choices", "value": {"choices": ["news"]}},
        {"type": "relation", "from_id": "a", "to_id": "b"},
    ]
    for task in (full, short):
        repairs = Counter()
        (doc,), _ = docs(label_studio, write(json.dumps([task]), "in.json"), repairs)
        assert spans_of(doc.ents) == WANTED and repairs == {label_studio.RESULTS: 2}


HTML = {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "startOffset": 0, "endOffset": 3}
BOX = {"x": 1, "y": 2, "width": 3, "height": 4, "rectanglelabels": ["PER"]}


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (as_label_studio() | {"data": {"image": "/data/upload/1.png"}}, "has the link '/data/up"),
        ({"image": "/data/1.png", "text": "x", "label": [BOX], "annotation_id": 1}, "rectanglel"),
        ({"text": "<p>Ada</p>", "ner": [HTML | {"hypertextlabels": ["PER"]}]}, "hypertextlabels"),
        ({"text": "<p>Ada</p>", "ner": [HTML | {"labels": ["PER"]}]}, "only labels of plain text"),
        ({"data": {"text": "x"}, "annotations": [{"result": [{"value": BOX}]}]}, "rectanglelabels"),
    ],
)
def test_tasks_of_html_and_images_are_refused_by_name(write, task, reason):
    path = write(json.dumps([task]), "in.json")
    (file,), _ = own_files(path.parent)
    with pytest.raises(InputError, match=r"in\.json: record 1: ") as error:
        docs(label_studio, path)
    assert file.reader is label_studio and reason in str(error.value)


@pytest.mark.parametrize(
    ("reader", "record", "reason"),
    [
        (spacy_jsonl, {"text": 5, "ents": []}, "'text' is 5 instead of text"),
        (spacy_jsonl, {"text": "x", "ents": [[0, 1]]}, "'start' is null"),
        (spacy_jsonl, {"text": "x", "ents": [[0, 1, 3]]}, "'label' is 3 instead of text"),
        (prodigy, {"text": "x", "spans": [{"start": 0}]}, "'end' is null"),
        (prodigy, ["x"], "'text' is null"),
        (doccano, {"text": "x", "label": "PER"}, "'label' is \"PER\" instead of a list"),
        (doccano, [], "is not an object"),
        (label_studio, {"data": {"a": "x", "b": "y"}, "annotations": [{}]}, "'text' is null"),
        (label_studio, 3, "is not a task"),
    ],
)
def test_a_record_of_another_form_is_named(write, reader, record, reason):
    with pytest.raises(InputError, match=r"in.jsonl:2: ") as error:
        docs(reader, write("\n" + json.dumps(record)))
    assert reason in str(error.value)


def test_json_that_is_none_is_named_by_its_line(write):
    with pytest.raises(InputError, match=r"in.jsonl:2: is not JSON"):
        docs(doccano, write('{"text": "x", "label": []}\n{"text'))


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("train.jsonl", "train"),
        ("eng.testa", "dev"),
        ("eng.testb", "test"),
        ("emerging.dev.conll", "dev"),
        ("validation/a.txt", "dev"),
        ("train/test_3.txt", "test"),
        ("contest.jsonl", None),
        ("trained_by_me.jsonl", None),
    ],
)
def test_parts_are_recognised_by_name(name, part):
    assert part_of(Path(name)) == part


NEST = [(0, 23, "PAIR"), (0, 3, "PER"), (8, 23, "PER"), (8, 15, "FIRST")]
NESTED_RECORDS = {
    "spacy_jsonl": {"spans": {"sc": [{"start": s, "end": e, "label": n} for s, e, n in NEST]}},
    "prodigy": {
        "_input_hash": 1,
        "spans": [{"start": s, "end": e, "label": n} for s, e, n in NEST],
    },
    "doccano": {"label": [[s, e, n] for s, e, n in NEST]},
    "label_studio": {"label": [{"start": s, "end": e, "labels": [n]} for s, e, n in NEST]},
}


def own_docs(folder, nested=True):
    corpus = read_own_corpus(folder, spacy.blank("en"), Reading(dev=0.0, nested=nested))
    return corpus.parts["train"], corpus


@pytest.mark.parametrize("name", NESTED_RECORDS)
def test_nested_marks_of_each_format_are_kept_if_asked_for(write, name):
    record = json.dumps({"text": TEXT, **NESTED_RECORDS[name]})
    path = write(f"[{record}]" if name == "label_studio" else record, f"{name}/train.json")
    (doc,), corpus = own_docs(path.parent)
    found = [(s.start_char, s.end_char, s.label_) for s in doc.spans["sc"]]
    assert found == NEST and not doc.ents and not doc.has_annotation("ENT_IOB")
    assert not corpus.misfits.lines and "missing_spans" not in doc.spans
    (flat,), corpus = own_docs(path.parent, nested=False)
    assert [ent.label_ for ent in flat.ents] == ["PAIR"]
    assert corpus.misfits.counts == {"overlaps another": 3}


def test_nested_marks_of_brat_are_kept(write):
    lines = [f"T{i}\t{n} {s} {e}\t{TEXT[s:e]}\n" for i, (s, e, n) in enumerate(NEST)]
    write(TEXT, "brat/train.txt")
    path = write("".join(lines), "brat/train.ann")
    (doc,), _ = own_docs(path.parent)
    assert [(s.start_char, s.end_char, s.label_) for s in doc.spans["sc"]] == NEST


@pytest.mark.parametrize("nested", [False, True])
def test_discontinuous_marks_are_left_out_by_name(write, nested):
    path = write("lung and liver cancer", "brat/train.txt")
    write("T1\tX 0 4;15 21\tlung cancer\nT2\tX 9 21\tliver cancer\n", "brat/train.ann")
    (doc,), corpus = own_docs(path.parent, nested=nested)
    spans = doc.spans["sc"] if nested else doc.ents
    assert [span.text for span in spans] == ["liver cancer"]
    (line,) = corpus.misfits.lines
    assert line.endswith("train.ann:1: 'lung and liver cancer' (X): is discontinuous")
    missing = [s.start for s in doc.spans["missing_spans"]] if nested else [0, 1]
    assert missing == [0, 1, 2, 3][: 4 if nested else 2]
    assert nested or [token.ent_iob for token in doc][:2] == [0, 0]


def test_conllu_with_entities_is_recognised(write):
    rows = conllu(("Ada", "NNP", "Entity=(1-pair(2-person)"), ("left", "VBD", "Entity=1)"))
    path = write(rows, "files/train.conllu")
    (doc,), corpus = own_docs(path.parent, nested=False)
    assert [(s.text, s.label_) for s in doc.spans["sc"]] == [
        ("Ada left", "pair"),
        ("Ada", "person"),
    ]
    assert [ent.label_ for ent in doc.ents] == ["pair"] and "CoNLL-U" in corpus.messages[0]
    path.write_text(rows.replace("2\tleft", "left") + rows)
    with pytest.raises(InputError, match=r"train\.conllu:3: .* --skip-bad leaves"):
        own_docs(path.parent)
    corpus = read_own_corpus(path.parent, spacy.blank("en"), Reading(dev=0.0, skip_bad=True))
    assert len(corpus.parts["train"]) == len(corpus.faults) == 1


def test_tokens_of_nested_marks_that_do_not_fit_are_missing_and_repeats_are_counted():
    marks = [Mark(0, 3, "PER"), Mark(0, 3, "PER"), Mark(4, 10, "VERB"), Mark(8, 23, "PER")]
    misfits = Misfits()
    record = MarkedText("x:1", TEXT, marks)
    doc = mark_doc(spacy.blank("en"), record, misfits, nested=True)
    assert [span.text for span in doc.spans["sc"]] == ["Ada", "Charles Babbage"]
    assert [span.text for span in doc.spans["missing_spans"]] == ["met", "Charles"]
    assert misfits.counts == {"begins or ends inside a token": 1, "repeats another": 1}
    assert misfits.labels["PER"] == {KEPT: 2, "repeats another": 1}


def test_spans_that_cross_are_told():
    doc = spacy.blank("en")(TEXT)
    doc.spans["sc"] = [doc[0:2], doc[1:3], doc[0:4]]
    for span in doc.spans["sc"]:
        span.label_ = "X"
    (line,) = [m for m in possible_mistakes(check_corpus({"train": [doc]})) if "overlap" in m]
    assert line.startswith("spans: 1 in train overlap another without being inside it")
    assert 'unfitting = "drop"' in line
