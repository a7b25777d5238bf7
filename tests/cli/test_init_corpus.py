import json

import pytest
import spacy
from spacy.tokens import DocBin
from thinc.api import Config

from spacy_psa.corpora.documents import read_document_corpus
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.paths import SAMPLE

run = command("init", "corpus")
COLUMNS = "Ada\tB-PER\nleft\tO\n\nRome\tB-LOC\nfell\tO\n"


def docs(path):
    return list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))


def record(text, *ents):
    return json.dumps(
        {"text": text, "ents": [dict(zip(("start", "end", "label"), e)) for e in ents]}
    )


def test_columns_become_the_parts_that_their_names_say(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("my_train.iob", "my.dev.iob", "my-test.iob"):
        (tmp_path / "in" / name).write_text(COLUMNS)
    result = succeed(run(tmp_path / "in", tmp_path / "out"))
    assert "my_train.iob: columns: word 0, entities 1 (IOB2), 2 sentences: train" in result.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"train.spacy", "dev.spacy", "test.spacy", "check.json"}
    assert [ent.label_ for doc in docs(tmp_path / "out" / "dev.spacy") for ent in doc.ents] == [
        "PER",
        "LOC",
    ]
    figures = json.loads((tmp_path / "out" / "check.json").read_text())
    assert figures["layers"]["entities"]["labels"]["PER"] == {"train": 1, "dev": 1, "test": 1}
    assert figures["duplicates"]["dev"]["in train"] == 2
    assert "dev: 2 sentences (100.0%) are also in train" in result.stdout
    assert "--task ner" in result.stdout and "--sentencizer" not in result.stdout


def test_development_data_are_drawn_by_document_where_there_are_none(tmp_path):
    (tmp_path / "in").mkdir()
    lines = [record(f"Ada {i} left. Bob {i} came.", (0, 3, "PER")) for i in range(40)]
    (tmp_path / "in" / "all.jsonl").write_text("\n".join(lines))
    for out, seed in (("one", 0), ("two", 0), ("three", 1)):
        result = succeed(run(tmp_path / "in", tmp_path / out, "--seed", seed, "--test", 0.2))
    parts = {part: docs(tmp_path / "one" / f"{part}.spacy") for part in ("train", "dev", "test")}
    assert sum(map(len, parts.values())) == 80
    numbers = {part: {doc[1].text for doc in found} for part, found in parts.items()}
    assert len(numbers["test"]) == 8 and len(numbers["dev"]) == 3
    assert len(set.union(*numbers.values())) == 40 == sum(map(len, numbers.values()))
    same, other = ((tmp_path / out / "dev.spacy").read_bytes() for out in ("two", "three"))
    assert (tmp_path / "one" / "dev.spacy").read_bytes() == same != other
    assert "drawn by document with seed 1" in result.stdout
    assert "--sentencizer" in result.stdout


def test_formats_are_mixed_and_misfits_named_one_by_one_and_counted(tmp_path):
    source = tmp_path / "in"
    (source / "dev").mkdir(parents=True)
    (source / "a.jsonl").write_text(record("Ada left.", (0, 2, "PER"), (4, 8, "X")) + "\n")
    (source / "b.iob").write_text(COLUMNS)
    (source / "dev" / "doc1.txt").write_text("Bob came. Ada left.")
    (source / "dev" / "doc1.ann").write_text("T1\tPER 0 3\tBob\n")
    (source / "README.txt").write_text("This is no corpus.\n")
    result = succeed(run(source, tmp_path / "out"))
    named = f"left out: {source / 'a.jsonl'}:1: 'Ad' (PER): begins or ends inside a token: 'Ada'"
    assert named in result.stderr
    assert "warning: 1 mark(s) left out: begins or ends inside a token" in result.stderr
    assert "README.txt: is not a file of a corpus, left out" in result.stderr
    assert len(docs(tmp_path / "out" / "train.spacy")) == 3
    assert len(docs(tmp_path / "out" / "dev.spacy")) == 2
    figures = json.loads((tmp_path / "out" / "check.json").read_text())
    assert figures["misfits"]["count"] == {"begins or ends inside a token": 1}
    assert figures["misfits"]["each"] == [named.removeprefix("left out: ")]
    kind = "begins or ends inside a token"
    assert figures["misfits"]["by label"] == {
        "PER": {kind: 1, "kept": 2}, "X": {"kept": 1}, "LOC": {"kept": 1},
    }  # fmt: skip


def test_docbins_are_cut_into_sentences_with_their_annotation(tmp_path):
    (tmp_path / "in").mkdir()
    run_in = command("convert", "sample")
    sample = tmp_path / "in" / "train.spacy"
    assert run_in(SAMPLE / "dev.jsonl", sample).exit_code == 0
    joined = [spacy.tokens.Doc.from_docs(docs(sample)[i : i + 3]) for i in range(0, 60, 3)]
    DocBin(docs=joined).to_disk(sample)
    assert run(tmp_path / "in", tmp_path / "out").exit_code == 0
    found = docs(tmp_path / "out" / "train.spacy") + docs(tmp_path / "out" / "dev.spacy")
    assert len(found) == 60
    assert all(doc.has_annotation("TAG") and doc.spans["constituents"] for doc in found)


def test_sentences_keep_the_document_that_they_are_of(tmp_path):
    source = tmp_path / "in"
    (source / "train").mkdir(parents=True)
    lines = [record(text, (0, 3, "PER")) for text in ("Ada left. Bob came.", "Eve fell. Bob sat.")]
    (source / "train" / "a.jsonl").write_text("\n".join(lines))
    for name in ("b", "c"):
        (source / "train" / f"{name}.iob").write_text(f"-DOCSTART-\tO\n\n{COLUMNS}")
    (source / "train" / "d.iob").write_text(COLUMNS)
    vocab = spacy.blank("en").vocab
    words = ["Ada", "left", "Bob", "came"]
    doc = spacy.tokens.Doc(vocab, words=words, sent_starts=[True, False, True, False])
    doc.user_data.update(document="report", part=2)
    DocBin(docs=[doc], store_user_data=True).to_disk(source / "train" / "e.spacy")
    (source / "dev.txt").write_text("Bob came. Ada left.")
    (source / "dev.ann").write_text("T1\tPER 0 3\tBob\n")
    assert run(source, tmp_path / "out").exit_code == 0
    found = docs(tmp_path / "out" / "train.spacy")
    names = [doc.user_data.get("document") for doc in found]
    assert names == [
        *("train/a.jsonl 1", "train/a.jsonl 1", "train/a.jsonl 2", "train/a.jsonl 2"),
        *("train/b.iob 1", "train/b.iob 1", "train/c.iob 1", "train/c.iob 1"),
        *(None, None, "report", "report"),
    ]
    assert [doc.user_data.get("part") for doc in found[-2:]] == [2, 2]
    read = read_document_corpus(tmp_path / "out" / "train.spacy")
    lengths = [len(list(example.reference.sents)) for example in read(spacy.blank("en"))]
    assert lengths == [2, 2, 2, 2, 1, 1, 2]


def test_nested_spans_become_a_corpus_and_a_config(tmp_path):
    (tmp_path / "in").mkdir()
    marks = [(0, 14, "WORK"), (6, 14, "PLACE"), (7, 14, "ODD")]
    spans = [dict(zip(("start", "end", "label"), mark)) for mark in marks]
    lines = [json.dumps({"text": f"Mayor Oldtowns left{i}.", "spans": spans}) for i in range(30)]
    (tmp_path / "in" / "train.jsonl").write_text("\n".join(lines))
    out = tmp_path / "out"
    result = succeed(run(tmp_path / "in", out, "--task", "spans"))
    assert "[Mayor [Oldtowns PLACE] WORK] left" in result.stdout
    assert "init config config.cfg --task spans" in result.stdout
    doc, *_ = docs(out / "train.spacy")
    assert [span.text for span in doc.spans["missing_spans"]] == ["Oldtowns"]
    files = ("--train", out / "train.spacy", "--dev", out / "dev.spacy")
    succeed(command("init", "config")(tmp_path / "my.cfg", "--task", "spans", *files))
    config = Config().from_disk(tmp_path / "my.cfg")
    component = config["components"]["spans"]
    assert (component["factory"], component["missing_spans_key"]) == ("crf_spans", "missing_spans")
    assert "incorrect_spans_key" not in component


def test_a_label_names_the_entities_of_tags_without_one(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("train", "dev"):
        (tmp_path / "in" / f"{name}.iob").write_text("Ada\tB\nLovelace\tI\nleft\tO\n")
    result = succeed(run(tmp_path / "in", tmp_path / "out", "--label", "PER"))
    assert "train.iob: columns: word 0, entities 1 (IOB2, written as B)" in result.stdout
    (doc,) = docs(tmp_path / "out" / "train.spacy")
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Ada Lovelace", "PER")]
    one = tmp_path / "one.spacy"
    source = tmp_path / "in" / "train.iob"
    succeed(command("convert", "columns")(source, one, "--ner", 1, "--label", "PER"))
    assert docs(one)[0].ents[0].label_ == "PER"


def test_one_odd_tag_does_not_make_entities_parts_of_speech(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("train", "dev"):
        (tmp_path / "in" / f"{name}.iob").write_text("TOKEN\tNER\n\n" + COLUMNS * 20)
    result = succeed(run(tmp_path / "in", tmp_path / "out"))
    assert "train.iob: columns: word 0, entities 1 (IOB2)" in result.stdout
    named = f"left out: {tmp_path / 'in' / 'train.iob'}:1: 'TOKEN' (NER): is not a tag of the form"
    assert named in result.stderr


def test_labels_are_cleaned_and_disagreement_is_named(tmp_path):
    (tmp_path / "in").mkdir()
    lines = [
        record("Ada left.", (0, 3, "PER ")),
        record("Bob left.", (0, 3, "per")),
        record("Ada left.", (0, 3, "LOC")),
        record("Eve came.", (0, 3, "PER")),
        record("Eve came.", (0, 3, "PER")),
    ]
    path = tmp_path / "in" / "train.jsonl"
    path.write_text("\n".join(lines) + "\n")
    result = succeed(run(tmp_path / "in", tmp_path / "out", "--dev", 0.4))
    figures = json.loads((tmp_path / "out" / "check.json").read_text())
    assert figures["layers"]["entities"]["labels"].keys() == {"PER", "per", "LOC"}
    warned = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert warned == [
        "warning: the labels PER (3), per (1) differ only in case or signs; to join them: "
        "--label 'per=PER'",
        f"warning: {path}:3: has the text of {path}:1 with other entities; keep one of them",
    ]


def test_a_second_run_leaves_nothing_of_the_first(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("train", "dev", "test"):
        (tmp_path / "in" / f"{name}.iob").write_text(COLUMNS)
    assert run(tmp_path / "in", tmp_path / "out").exit_code == 0
    (tmp_path / "in" / "test.iob").unlink()
    assert run(tmp_path / "in", tmp_path / "out").exit_code == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"train.spacy", "dev.spacy", "check.json"}


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "has no file that is spaCy JSONL or DocBin, Prodigy"),
        ({"dev.iob": COLUMNS}, "there is no training data"),
        ({"train.iob": "Ada\tB-PER\nleft\n"}, "train.iob:2: 1 column(s) instead of 2"),
        ({"train.txt": "just text here\n"}, "no column of the 3 has tags"),
        ({"train.jsonl": '{"words": []}\n'}, "is not a record of Label Studio, Prodigy"),
        ({"train.spacy": "broken"}, "is not a .spacy file"),
        ({"a.iob": "Ada\tB-PER\n"}, "too few to draw development data"),
        ({"train.iob": "Ada\tB\nleft\tO\n"}, "name it with --label"),
        ({"train.iob": "Ada\tO\nleft\tO\n"}, "nothing to learn from in the training data"),
        ({"train.jsonl": '{"text": "Ada left", "ents": []}\n'}, "nothing to learn from"),
        (
            {"train.jsonl": record("Ada left", (0, 2, "PER")) + "\n"},
            "no entity of the training data is left: 1 begins or ends inside a token; correct the",
        ),
    ],
)
def test_what_cannot_be_read_is_one_error_and_nothing_is_written(tmp_path, files, reason):
    (tmp_path / "in").mkdir()
    for name, text in files.items():
        (tmp_path / "in" / name).write_text(text)
    assert_one_error(run(tmp_path / "in", tmp_path / "out"), reason)
    assert not (tmp_path / "out").exists()


def test_bad_arguments_are_one_error(tmp_path):
    assert_one_error(run(tmp_path / "none", tmp_path / "out"), "there is no such folder")
    (tmp_path / "out").write_text("")
    assert_one_error(run(tmp_path, tmp_path / "out"), "is a file; choose the name of a folder")
    assert_one_error(run(tmp_path, tmp_path / "o", "--lang", "zz"), "--lang zz")
    assert_one_error(run(tmp_path, tmp_path / "o", "--vectors", "no/such"), "no/such")


def test_debug_data_shows_the_figures_of_files(tmp_path):
    for part in ("train", "dev"):
        assert (
            command("convert", "sample")(SAMPLE / "dev.jsonl", tmp_path / f"{part}.spacy")
        ).exit_code == 0
    files = tmp_path / "train.spacy", tmp_path / "dev.spacy"
    result = succeed(command("debug", "data")(*files, "--output", tmp_path / "check.json"))
    for shown in ("entities", "chunks", "constituents", "parts of speech", "duplicates in train"):
        assert shown in result.stdout
    assert json.loads((tmp_path / "check.json").read_text())["parts"]["dev"]["documents"] == 300
    assert_one_error(command("debug", "data")(tmp_path / "none.spacy", files[1]), "none.spacy")
