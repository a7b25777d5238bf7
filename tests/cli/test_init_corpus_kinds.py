"""`init corpus` reads the kinds of files that people have, or explains how to convert them."""

import gzip
import json
import re
from collections import Counter

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_psa.corpora.docbin import write_docbin
from spacy_psa.corpora.marked_text import KEPT, MOVED
from spacy_psa.corpora.own_corpus import Reading, read_own_corpus
from tests.cli.test_init_corpus import COLUMNS, docs, record, run
from tests.helpers.commands import assert_one_error, succeed
from tests.helpers.corpora import conllu

NLP = spacy.blank("en")
WORDS = ["Ada", "Lovelace", "left", "Rome"]
TEXT = " ".join(WORDS)
POS = ["NNP", "NNP", "VBD", "NNP"]
SPANS = [(0, 12, "PER"), (18, 22, "LOC")]
ENTITIES = [("Ada Lovelace", "PER"), ("Rome", "LOC")]


def columns(*tags, between="\t", after="\n"):
    return "".join(f"{word}{between}{tag}\n" for word, tag in zip(WORDS, tags)) + after


def lines(*records):
    return "".join(json.dumps(each) + "\n" for each in records)


BIO = ["B-PER", "I-PER", "O", "B-LOC"]
WEBANNO = """#FORMAT=WebAnno TSV 3.2
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value


#Text=Ada Lovelace left Rome
"""
WEBANNO_2 = f""" # a.POS | PosValue # a.NamedEntity | id | value # a.Dep | x | AttachTo=y
#id=1
#text={TEXT}
"""
XMI = f"""<?xml version="1.0" encoding="UTF-8"?>
<xmi:XMI xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore"
 xmlns:ner="http:///de/tudarmstadt/ukp/dkpro/core/api/ner/type.ecore"
 xmlns:seg="http:///de/tudarmstadt/ukp/dkpro/core/api/segmentation/type.ecore"
 xmlns:pos="http:///de/tudarmstadt/ukp/dkpro/core/api/lexmorph/type/pos.ecore"
 xmlns:custom="http:///webanno/custom.ecore" xmi:version="2.0">
<cas:NULL xmi:id="0"/>
<seg:Token xmi:id="10" sofa="1" begin="0" end="3" pos="20"/>
<seg:Token xmi:id="11" sofa="1" begin="4" end="12" pos="20"/>
<seg:Token xmi:id="12" sofa="1" begin="13" end="17" pos="21"/>
<seg:Token xmi:id="13" sofa="1" begin="18" end="22" pos="20"/>
<seg:Token xmi:id="14" sofa="1" begin="23" end="25"/>
<seg:Token xmi:id="15" sofa="1" begin="26" end="30" pos="20"/>
<seg:Sentence xmi:id="16" sofa="1" begin="0" end="22"/>
<seg:Sentence xmi:id="17" sofa="1" begin="23" end="30"/>
<pos:POS xmi:id="20" sofa="1" begin="0" end="3" PosValue="NNP"/>
<pos:POS xmi:id="21" sofa="1" begin="13" end="17" PosValue="VBD"/>
<ner:NamedEntity xmi:id="30" sofa="1" begin="0" end="12" value="PER"/>
<ner:Location xmi:id="31" sofa="1" begin="18" end="22" value="LOC"/>
<ner:NamedEntity xmi:id="32" sofa="1" begin="26" end="30" value="LOC"/>
<custom:Role xmi:id="33" sofa="1" begin="0" end="3" role="agent"/>
<cas:Sofa xmi:id="1" sofaNum="1" sofaID="_InitialView" sofaString="{TEXT} 🙂 Rome"/>
<cas:View sofa="1" members="10"/>
</xmi:XMI>"""
NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
INFO = {"features": {"ner_tags": {"feature": {"names": NAMES, "_type": "ClassLabel"}}}}
NUMBERED = {"tokens": WORDS, "ner_tags": [1, 2, 0, 3]}
OFFSETS = [(0, 3), (4, 12), (13, 17), (18, 22)]


def of_tokens(spans):
    """Files of the kinds whose marks are over tokens, with one sentence that has these spans."""
    tags, letters, labels = ["O"] * 4, ["O"] * 4, ["_"] * 4
    for number, (start, end, label) in enumerate(spans, 1):
        for i in range(start, end):
            tags[i] = f"{'I' if i > start else 'B'}-{label}"
            letter = (
                "S" if end - start == 1 else "B" if i == start else "E" if i == end - 1 else "I"
            )
            letters[i], labels[i] = f"{letter}-{label}", f"{label}[{number}]"
    rows = list(zip(WORDS, POS, tags, strict=True))
    suffixes = ["-".join(reversed(tag.split("-"))) for tag in tags]
    olds = [tag if tag == "O" else f"{tag}|{tag[0]}-x" for tag in tags]
    nested = ["_"] * 4
    for number, (start, end, label) in enumerate(spans, 1):
        nested[end - 1] = f"Entity={number})"
        nested[start] = f"Entity=({number}-{label}{')' * (end - start == 1)}"
    lower = [tag if tag == "O" else tag[0].lower() + tag[1:] for tag in tags]
    misc = [tag if tag == "O" else f"ner={tag}" for tag in tags]
    return {
        "columns": {"train.iob": columns(*tags)},
        "columns between blanks": {"train.txt": columns(*tags, between=" ")},
        "BIOES": {"train.conll": columns(*letters)},
        "lower-case tags": {"train.bio": columns(*lower)},
        "suffix tags": {"train.bio": columns(*suffixes)},
        "CoNLL-U": {
            "train.conllu": "# sent_id = 1\n" + "".join(
                f"{i}\t{word}\t_\tX\t{pos}\t_\t0\tdep\t_\t{misc[i - 1]}\n"
                for i, (word, pos, _) in enumerate(rows, 1)
            ) + "\n"
        },
        "CoNLL-U with bare tags": {
            "train.conllu": "".join(
                f"{i}\t{word}\t_\tX\t{pos}\t_\t0\tdep\t_\t{tag}|SpaceAfter=No\n"
                for i, (word, pos, tag) in enumerate(rows, 1)
            ) + "\n"
        },
        "CoNLL-U of NorNE": {
            "train.conllu": "".join(
                f"{i}\t{word}\t_\tX\t{pos}\t_\t0\tdep\t_\tSpaceAfter=No|name={tag}\n"
                for i, (word, pos, tag) in enumerate(rows, 1)
            ) + "\n"
        },
        "nested CoNLL-U": {"train.conllu": conllu(*zip(WORDS, POS, nested, strict=True))},
        "WebAnno TSV 3": {
            "train.tsv": WEBANNO + "".join(
                f"1-{i}\t{s}-{e}\t{word}\t{pos}\t*\t{labels[i - 1]}\t\n"
                for i, ((word, pos, _), (s, e)) in enumerate(zip(rows, OFFSETS), 1)
            )
        },
        "WebAnno TSV 2": {
            "train.tsv": WEBANNO_2 + "".join(
                f"1-{i}\t{word}\t{pos}\tO\t{olds[i - 1]}\t_\t_\t\n"
                for i, (word, pos, _) in enumerate(rows, 1)
            )
        },
        "WebAnno TSV 1": {
            "train.tsv": f"#id=1\n#text={TEXT}\n" + "".join(
                f"{i}\t{word}\t_\t{pos}\t{olds[i - 1].replace('-', '_', 1)}\t_\t0\troot\t_\t_\n"
                for i, (word, pos, _) in enumerate(rows, 1)
            )
        },
        "Kaggle's CSV": {
            "train.csv": "Sentence #,Word,POS,Tag\n" + "".join(
                f"{'Sentence: 1' * (i == 0)},{','.join(row)}\n" for i, row in enumerate(rows)
            )
        },
        "CSV with a header and empty lines": {
            "train.csv": "word;tag\n" + columns(*tags, between=";")
        },
        "a sentence on each line": {"train.iob": " ".join(map("|".join, rows)) + "\n"},
        "tokens with tags": {"train.json": lines({"tokens": WORDS, "ner_tags": tags})},
        "tokens with numbers, in another file": {
            "train.jsonl": lines({"tokens": WORDS, "ner_tags": [*map(NAMES.index, tags)]}),
            "dataset_info.json": json.dumps(INFO),
        },
        "tokens with numbers, in the file": {
            "train.json": json.dumps({
                "id2label": dict(enumerate(NAMES)),
                "data": [{"tokens": WORDS, "ner_tags": [*map(NAMES.index, tags)]}],
            })
        },
        "GLiNER": {
            "train.json": json.dumps([
                {"tokenized_text": WORDS, "ner": [[s, e - 1, label] for s, e, label in spans]}
            ])
        },
        "SpERT": {
            "train.json": json.dumps([{"tokens": WORDS, "entities": [
                {"type": label, "start": s, "end": e} for s, e, label in spans
            ]}])
        },
    }  # fmt: skip


def of_characters(spans):
    """Files of the kinds whose marks are over characters, with one text that has these spans."""
    items = [{"start": s, "end": e, "label": label} for s, e, label in spans]
    marked = "".join(
        f'<ner:NamedEntity xmi:id="3{i}" sofa="1" begin="{s}" end="{e}" value="{label}"/>'
        for i, (s, e, label) in enumerate(spans)
    )
    return {
        "UIMA XMI": {"train.xmi": re.sub("(?s)<ner:.*(?=<cas:Sofa)", marked, XMI)},
        "ner-annotator": {
            "train.json": json.dumps(
                {"classes": ["PER", "LOC"], "annotations": [[TEXT, {"entities": spans}], None]}
            )
        },
        "Dataturks": {
            "train.json": lines({"content": TEXT, "annotation": [
                {"label": [label], "points": [{"start": s, "end": e - 1, "text": TEXT[s:e]}]}
                for s, e, label in spans
            ]})
        },
        "spaCy JSONL": {"train.jsonl": record(TEXT, *spans) + "\n"},
        "Prodigy": {"train.jsonl": lines({"text": TEXT, "answer": "accept", "spans": items})},
        "Label Studio": {"train.json": json.dumps([{"data": {"text": TEXT}, "annotations": [
            {"result": [{"type": "labels", "value": {
                "start": s, "end": e, "text": TEXT[s:e], "labels": [label]
            }} for s, e, label in spans]}
        ]}])},
        "Label Studio, short": {
            "train.json": json.dumps([{"text": TEXT, "annotation_id": 1, "ner": [
                {"start": s, "end": e, "labels": [label]} for s, e, label in spans
            ]}])
        },
        "doccano": {"train.jsonl": lines({"text": TEXT, "label": spans})},
        "brat": {
            "train.txt": TEXT,
            "train.ann": "".join(
                f"T{i}\t{label} {s} {e}\t{TEXT[s:e]}\n" for i, (s, e, label) in enumerate(spans, 1)
            ),
        },
    }  # fmt: skip


KINDS = {
    **of_tokens([(0, 2, "PER"), (3, 4, "LOC")]),
    **of_characters(SPANS),
    "a mixture of BIO and BIOES": {"train.conll": columns("B-PER", "I-PER", "O", "S-LOC")},
    "IO tags of Stanford NER": {"train.tsv": columns("PER", "PER", "O", "LOC") + "and\tO\n" * 3},
    "IO tags, few outside": {"train.tsv": columns("PER", "PER", "O", "LOC")},
}
"""Files of each kind with one sentence, whose entities are `ENTITIES`."""


def put(folder, files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@st.composite
def spans_of_tokens(draw):
    """Spans of the four words that do not overlap."""
    spans, start = [], 0
    while start < 4:
        end = draw(st.integers(start + 1, 4))
        label = draw(st.sampled_from(["PER", "LOC", ""]))
        spans += [(start, end, label)] if label else []
        start = end
    return spans


MARKS = st.tuples(st.integers(0, 22), st.integers(0, 22), st.sampled_from(["PER", "LOC"]))
SPANS_OF_CHARACTERS = st.lists(MARKS.filter(lambda mark: mark[0] <= mark[1]), max_size=4)


@settings(max_examples=8)
@given(st.data())
@pytest.mark.parametrize("kind", [*of_tokens([]), *of_characters([]), "DocBin"])
def test_the_marks_of_every_kind_are_entities_or_are_reported(tmp_path_factory, kind, data):
    """The numbers add up by label, and no token of a mark is taught as O."""
    of_words = kind in of_tokens([]) or kind == "DocBin"
    spans = data.draw(spans_of_tokens() if of_words else SPANS_OF_CHARACTERS)
    folder = tmp_path_factory.mktemp("kind") / "in"
    if kind == "DocBin":
        doc = Doc(NLP.vocab, words=WORDS)
        doc.set_ents([Span(doc, *span) for span in spans])
        put(folder, {})
        write_docbin([doc], folder / "train.spacy")
    else:
        put(folder, {**of_tokens(spans if of_words else []), **of_characters(spans)}[kind])
    (folder / "more.jsonl").write_text(record("Eve ran", (0, 3, "ORG")) + "\n")
    corpus = read_own_corpus(folder, NLP, Reading(dev=0))
    outcomes = corpus.misfits.labels
    assert outcomes.pop("ORG") == {KEPT: 1}
    (doc,) = [doc for doc in corpus.parts["train"] if doc.text.startswith("Ada")]
    kept = {label: each[KEPT] + each[MOVED] for label, each in outcomes.items()}
    assert {label: each.total() for label, each in outcomes.items()} == Counter(s[2] for s in spans)
    assert Counter(ent.label_ for ent in doc.ents) == +Counter(kept)
    assert len(corpus.misfits.lines) == len(spans) - len(doc.ents)
    places = OFFSETS if of_words else [(i, i + 1) for i in range(len(TEXT))]
    for start, end, _ in spans:
        for token in doc if start < end else ():
            if token.idx < places[end - 1][1] and token.idx + len(token) > places[start][0]:
                assert token.ent_iob_ != "O"


@pytest.mark.parametrize("spans", [[], [(1, 3, "PER")]])
@pytest.mark.parametrize("kind", [*of_tokens([]), *of_characters([])])
def test_nothing_learnable_in_data_for_entities_is_an_error(tmp_path, kind, spans):
    files = (of_tokens([]) | of_characters(spans))[kind]
    source = put(tmp_path / "in", files | {"dev.iob": columns(*BIO)})
    assert_one_error(run(source, tmp_path / "out"), "no entity of the training data is left")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_file_is_read(tmp_path, kind):
    source = put(tmp_path / "in", KINDS[kind] | {"dev.iob": columns(*BIO)})
    result = succeed(run(source, tmp_path / "out"))
    doc, *_ = docs(tmp_path / "out" / "train.spacy")
    assert [(ent.text, ent.label_) for ent in doc.ents] == ENTITIES
    if kind.startswith(("CoNLL-U", "WebAnno", "UIMA XMI", "Kaggle's", "a sentence on each line")):
        assert doc.has_annotation("TAG")
    assert "[Ada Lovelace PER] left [Rome LOC]" in result.stdout


def test_xmi_keeps_its_sentences_and_counts_its_other_layers(tmp_path):
    """Its offsets count units of UTF-16: the smiley has two."""
    result = succeed(
        run(put(tmp_path / "in", {"train.xmi": XMI, "dev.xmi": XMI}), tmp_path / "out")
    )
    first, second = docs(tmp_path / "out" / "train.spacy")
    assert [t.tag_ for t in first] == POS and [t.text for t in second] == ["🙂", "Rome"]
    assert [(ent.text, ent.label_) for ent in second.ents] == [("Rome", "LOC")]
    assert "1 annotation(s) of other layers or texts, left out" in result.output


def test_all_that_is_left_out_of_xmi_is_counted(tmp_path):
    more = (
        '<seg:Token xmi:id="40" sofa="1" begin="12" end="12" pos="20"/>'
        '<ner:NamedEntity xmi:id="41" sofa="2" begin="0" end="3" value="PER"/>'
        '<custom:EventLink xmi:id="42" role="agent"/>'
        '<pos:POS xmi:id="43" sofa="1" begin="0" end="3" PosValue="JJ"/></xmi:XMI>'
    )
    text = XMI.replace("</xmi:XMI>", more)
    result = succeed(
        run(put(tmp_path / "in", {"train.xmi": text, "dev.xmi": XMI}), tmp_path / "out")
    )
    first, _ = docs(tmp_path / "out" / "train.spacy")
    assert [t.text for t in first] == WORDS and [t.tag_ for t in first] == POS
    assert "4 annotation(s) of other layers or texts, left out" in result.output
    assert "1 token(s) without characters, left out" in result.output


def test_a_broken_archive_of_xmi_is_one_error(tmp_path):
    packed = bytearray(gzip.compress(XMI.encode()))
    packed[20:30] = bytes(10)
    put(tmp_path / "in", {"dev.xmi": XMI})
    (tmp_path / "in" / "train.xmi.gz").write_bytes(packed)
    assert_one_error(
        run(tmp_path / "in", tmp_path / "out"), "train.xmi.gz: the gzip file is broken"
    )


def test_a_quote_without_an_end_is_named_by_its_line(tmp_path):
    rows = "word,tag\nAda,B-PER\n" + '"left,O\n' + "Rome,B-LOC\n" * 20000
    put(tmp_path / "in", {"train.csv": rows, "dev.csv": "word,tag\nAda,B-PER\n"})
    assert_one_error(run(tmp_path / "in", tmp_path / "out"), "train.csv:3: cannot be read")


@pytest.mark.parametrize(
    ("files", "advice"),
    [
        ({"a.parquet": "PAR1"}, "pandas.read_parquet("),
        ({"a.xlsx": "PK"}, "pandas.read_excel("),
        ({"a.arrow": "x"}, "datasets.Dataset.from_file("),
        ({"a.pkl": "x"}, "pickle.load("),
        ({"a.json": '[{"id": 0, "paragraphs": []}]'}, "python -m spacy convert"),
        ({"a.json": '[{"some": "thing"}]'}, "print(json.dumps({'text': text, 'ents': ["),
        ({"a.jsonl": lines(NUMBERED)}, "--label O,B-PER,I-PER"),
        ({"a.xmi": "<XMI>"}, "is not XML"),
        ({"a.xmi": "<TEI/>"}, "its element is TEI"),
        ({"a.xmi": "<XMI/>"}, "has 0 texts"),
        ({"a.xmi": XMI.replace('end="30" value', 'end="31" value')}, "NamedEntity 32 has no begin"),
        ({"a.xmi": re.sub("<ner.*/>", "", XMI)}, "layers of its own (Role)"),
        ({"a.csv": columns(*BIO, between=",")}, "has no header"),
    ],
)
def test_other_files_are_refused_with_the_way_to_convert_them(tmp_path, files, advice):
    assert_one_error(run(put(tmp_path / "in", files), tmp_path / "out"), advice)
    assert not (tmp_path / "out").exists()


def test_numbers_are_named_by_an_option(tmp_path):
    source = put(tmp_path / "in", {"train.json": lines(NUMBERED), "dev.json": lines(NUMBERED)})
    succeed(run(source, tmp_path / "out", "--label", ",".join(NAMES)))
    (doc,) = docs(tmp_path / "out" / "train.spacy")
    assert [(ent.text, ent.label_) for ent in doc.ents] == ENTITIES


COLUMNS += "\n"
BAD = COLUMNS + "Bob\tB-PER\tx\nleft\tO\n\n" + COLUMNS + "Eve\n\n"


def test_bad_lines_are_counted_or_left_out_and_listed(tmp_path):
    good = {"text": "Ada left", "ents": [{"start": 0, "end": 3, "label": "PER"}]}
    source = put(
        tmp_path / "in",
        {"train.iob": BAD, "b.jsonl": lines(good, {"text": 3}) + "{", "dev.iob": BAD},
    )
    result = run(source, tmp_path / "out")
    assert_one_error(result, "and 5 more such line(s)); --skip-bad")
    result = succeed(run(source, tmp_path / "out", "--skip-bad"))
    assert len(docs(tmp_path / "out" / "train.spacy")) == 5
    listed = (tmp_path / "out" / "left_out.txt").read_text().splitlines()
    assert len(listed) == 6
    assert f"{source / 'train.iob'}:7: 3 column(s) instead of 2; most lines have 2" in listed[4]
    assert "warning: 6 malformed line(s), sentences left out" in result.stderr
    for part in ("train", "dev"):
        (source / f"{part}.iob").write_text(COLUMNS)
    (source / "b.jsonl").unlink()
    assert run(source, tmp_path / "out").exit_code == 0
    assert not (tmp_path / "out" / "left_out.txt").exists()


def test_a_scheme_is_kept_to(tmp_path):
    mixed = columns("B-PER", "I-PER", "O", "S-LOC") + COLUMNS
    put(tmp_path / "mixed", dict.fromkeys(("train.iob", "dev.iob"), mixed))
    result = run(tmp_path / "mixed", tmp_path / "out", "--scheme", "bioes")
    assert_one_error(result, "O follows while I-PER is still open", "choose another --scheme")
    result = run(tmp_path / "mixed", tmp_path / "out")
    assert "1 sentence(s) with tags of several schemes, read tag by tag" in result.stderr


def test_labels_are_renamed_kept_and_checked(tmp_path):
    tags = columns("B-per", "I-per", "O", "B-LOC") + columns("O", "B-PER", "O", "B-ORG")
    source = put(tmp_path / "in", dict.fromkeys(("train.iob", "dev.iob"), tags))
    succeed(run(source, tmp_path / "out", "--label", "per=PER", "--label", "PER"))
    found = [
        [(ent.text, ent.label_) for ent in doc.ents] for doc in docs(tmp_path / "out/train.spacy")
    ]
    assert found == [[("Ada Lovelace", "PER")], [("Lovelace", "PER")]]
    result = run(source, tmp_path / "no", "--label", "GPE")
    assert_one_error(result, "--label GPE: no entity has this label; there are: LOC, ORG, PER, per")
    assert_one_error(run(source, tmp_path / "no", "--label", "=PER"), "a name is blank")


def test_sentences_of_columns_that_contradict_each_other_are_named(tmp_path):
    tags = columns(*BIO) + columns("O", "B-PER", "O", "B-LOC")
    source = put(tmp_path / "in", dict.fromkeys(("train.iob", "dev.iob"), tags))
    result = run(source, tmp_path / "out")
    name = source / "train.iob"
    assert f"train.iob:6: has the text of {source / 'dev.iob'}:1 with other" in result.stderr
    assert f"{name}:1: has" not in result.stderr


@pytest.mark.parametrize(
    ("tags", "shown"),
    [
        ([BIO] * 4, ["[Ada0 Lovelace PER] left [Rome LOC]", "[Ada1", "[Ada2"]),
        ([["O"] * 4, BIO, ["O"] * 4, ["O"] * 4], ["[Ada1", "Ada0 Lovelace left Rome", "Ada2"]),
        ([BIO] * 3 + [["B-ORG", "O", "O", "O"]], ["[Ada3 ORG] Lovelace", "[Ada0", "[Ada1"]),
    ],
)
def test_three_examples_are_shown_the_ones_with_entities_first(tmp_path, tags, shown):
    texts = [columns(*each).replace("Ada", f"Ada{i}") for i, each in enumerate(tags)]
    source = put(tmp_path / "in", {"train.iob": "".join(texts), "dev.iob": columns(*BIO)})
    lines = succeed(run(source, tmp_path / "out")).stdout.splitlines()
    begin = lines.index("Examples:") + 1
    assert all(line.startswith(f"  {text}") for line, text in zip(lines[begin:], shown))
    assert lines[begin + 3].startswith("Written")


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.json", '[\n{"text": "Ada", "ents": []},\n{"text"', 3),
        ("a.json", '[{"text": "Ada", "ents": []}, {"text"', 1),
        ("a.json", '{"x": 1}\n{"text"\n', 2),
        ("a.jsonl", '{"text": "Ada", "ents"', 1),
    ],
)
def test_a_file_of_json_that_is_cut_is_named_by_the_line(tmp_path, name, text, line):
    result = run(put(tmp_path / "in", {name: text}), tmp_path / "out")
    assert_one_error(result, f"{name}:{line}: is not JSON")


def test_nothing_is_written_if_the_answer_is_no(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_psa.cli.corpus.is_right", lambda question: False)
    source = put(tmp_path / "in", dict.fromkeys(("train.iob", "dev.iob"), columns(*BIO)))
    result = run(source, tmp_path / "out")
    assert result.exit_code == 1 and "Nothing was written" in result.stdout
    assert "  [Ada Lovelace PER] left [Rome LOC]" in result.stdout
    assert not (tmp_path / "out").exists()
