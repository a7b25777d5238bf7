"""`calibrate --recall` and `annotate --redact` on a pipeline trained on a handful of sentences."""

import json
import shutil
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.nested_pipelines import DEEP, deep_pipeline
from tests.helpers.pipelines import TEXTS, make_examples

calibrate, annotate = command("calibrate"), command("annotate")
PROMISE = ["--recall", 0.8, "--confidence", 0.8]


@pytest.fixture(scope="module")
def dev(trained_path, tmp_path_factory) -> Path:
    """Two times eight documents."""
    docs = [eg.reference for eg in make_examples(spacy.load(trained_path)) * 2]
    path = tmp_path_factory.mktemp("dev") / "dev.spacy"
    DocBin(docs=docs).to_disk(path)
    return path


@pytest.fixture(scope="module")
def promising(trained_path, dev, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("promising") / "model"
    succeed(calibrate(trained_path, dev, *PROMISE, "--output", path))
    return path


@pytest.fixture
def model(trained_path, tmp_path) -> Path:
    return Path(shutil.copytree(trained_path, tmp_path / "model"))


@pytest.fixture
def text(tmp_path) -> Path:
    path = tmp_path / "in.jsonl"
    lines = [{"text": text, "id": i} for i, text in enumerate(TEXTS)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf8")
    return path


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


def test_thresholds_are_put_on_the_component_by_label_and_reported_with_their_cost(
    model, dev, tmp_path
):
    assert calibrate(model, dev, *PROMISE).exit_code == 0
    options = ["--label", "PER", "--label", "LOC", "--json", tmp_path / "record.json"]
    succeed(calibrate(model, dev, "--recall", 0.7, "--confidence", 0.8, *options, "--test", dev))
    ner = spacy.load(model).get_pipe("ner")
    recalls = {label: each.recall for label, each in ner.calibrated.recall.items()}
    assert recalls == pytest.approx({"": 0.8, "PER": 0.7, "LOC": 0.7})
    rows = json.loads((tmp_path / "record.json").read_text())["rows"]
    assert [(row["label"], row["data"]) for row in rows] == [
        ("PER", "dev"),
        ("PER", "test"),
        ("LOC", "dev"),
        ("LOC", "test"),
    ]
    assert rows[0]["entities"] == 12 and rows[0]["least"] == ner.calibrated.recall["PER"].least
    assert all(row["recall"] >= 0.7 and 0 <= row["read"] <= 1 for row in rows)
    assert rows[0]["shown"] >= rows[0]["of_all"]
    result = calibrate(model, dev)  # another temperature
    assert "The recall was of other probabilities" in result.output
    assert spacy.load(model).get_pipe("ner").calibrated.recall is None


def test_target_texts_weight_the_documents(model, dev, tmp_path):
    target = tmp_path / "target.txt"
    target.write_text("\n".join(TEXTS * 2), encoding="utf8")
    result = succeed(
        calibrate(model, dev, *PROMISE, "--target", target, "--json", tmp_path / "record.json")
    )
    assert f"documents like those of {target}" in " ".join(result.output.split())
    assert "if they differ from dev only in the features" in result.output
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["target"] == str(target) and str(target) in record["checksums"]


@pytest.mark.parametrize("processes", [1, 2])
def test_spans_are_replaced_by_their_labels_and_listed_for_a_person(
    promising, text, tmp_path, processes
):
    out, review = tmp_path / "out.jsonl", tmp_path / "review.jsonl"
    options = ["--redact", "PER, LOC", "--recall", 0.8, "--review", review]
    result = succeed(annotate(promising, text, out, *options, "--n-process", processes))
    rows = read(out)
    assert [row["id"] for row in rows] == list(range(len(TEXTS)))
    assert rows[0]["text"] == "[PER] met [PER] in [LOC] ."
    assert "ents" not in rows[0]
    for row, source in zip(rows, TEXTS):
        for part in row["redacted"]:
            assert row["text"][part["start"] : part["end"]] == f"[{part['label']}]"
            assert source[slice(*part["source"])] not in row["text"]
    doubtful = [part for row in rows for part in row["redacted"] if part["review"]]
    listed = read(review)
    assert [each["source"] for each in listed] == [part["source"] for part in doubtful]
    assert f"{len(listed)} of them" in result.stderr
    for each in listed:
        assert any(each["before"] + each["text"] + each["after"] in source for source in TEXTS)


def test_a_person_gets_what_is_not_predicted(promising, text, tmp_path):
    nlp = spacy.load(promising)
    ner = nlp.get_pipe("ner")
    ner.calibrated.recall = {"": ner.calibrated.recall[""]._replace(least=1e-6)}
    nlp.to_disk(tmp_path / "wide")
    options = ["--redact", "PER", "--review", tmp_path / "review.jsonl"]
    succeed(annotate(tmp_path / "wide", text, tmp_path / "out.jsonl", *options))
    rows = read(tmp_path / "review.jsonl")
    assert rows and {row["label"] for row in rows} == {"PER"}
    assert rows[0].keys() == {"where", "text", "label", "score", "before", "after", "source"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ["--recall", 0.99],
            "dev.spacy: a recall of 0.99 with a confidence of 0.95 needs at least 299",
        ),
        (["--recall", 99], "--recall 99: choose a number between 0 and 1"),
        (["--recall", 0.8, "--confidence", 1], "--confidence 1: choose a number"),
        (["--recall", 0.8, "--label", "SHIP"], "--label SHIP: ner has the labels LOC, ORG, PER"),
        (["--recall", 0.8, "--decode", "mbr"], "--decode: leave it out with --recall"),
        (["--label", "PER"], "--label: is for --recall"),
        (["--target", "x.txt"], "--target: is for --recall"),
        (["--confidence", 0.9], "--confidence: is for --recall"),
        ([*PROMISE, "--target", "none.txt"], "none.txt: cannot be read"),
    ],
)
def test_a_promise_that_cannot_be_given_is_one_error_and_changes_nothing(
    model, dev, options, reason
):
    assert_one_error(calibrate(model, dev, *options), reason)
    ner = spacy.load(model).get_pipe("ner")
    assert ner.calibrated.recall is None and ner.temperature == 1.0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--redact", "PER", "--recall", 0.9], "only a recall of 0.8 is promised for PER"),
        (["--redact", "SHIP"], "ner: has no label SHIP"),
        (["--redact", ","], "--redact: name a label at least"),
        (["--redact", "PER", "--format", "spacy"], "--redact: writes JSON lines, not spacy"),
        (["--redact", "PER", "--counts", "c.json"], "--counts: leave it out with --redact"),
        (["--redact", "PER", "--engine", "ray"], "--redact: is for --engine local"),
        (["--redact", "PER", "--tokens"], "--tokens: would show what is replaced"),
        (["--redact", "PER", "--recall", 2], "--recall 2: choose a number between 0 and 1"),
        (["--recall", 0.9], "--recall: is for --redact"),
        (["--review", "r.jsonl"], "--review: is for --redact"),
        (["--pipe", "ner"], "--pipe ner: is for --counts and --redact"),
    ],
)
def test_a_redaction_that_is_not_possible_is_one_error_and_writes_nothing(
    promising, text, tmp_path, options, reason
):
    assert_one_error(annotate(promising, text, tmp_path / "out.jsonl", *options), reason)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("options", [["--redact", "PER", "--review"], ["--counts"]])
@pytest.mark.parametrize("name", ["in.jsonl", "out.jsonl"])
def test_lists_and_counts_do_not_replace_texts(promising, text, tmp_path, options, name):
    before = text.read_text()
    result = annotate(promising, text, tmp_path / "out.jsonl", *options, tmp_path / name)
    assert_one_error(result, f"{name}: is also INPUT or OUTPUT")
    assert text.read_text() == before and not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("layers", ["one", "label"])
def test_nested_spans_are_counted_and_redacted(layers, tmp_path):
    gold, model, text = (tmp_path / name for name in ("gold.spacy", "model", "in.txt"))
    deep_pipeline(gold, layers=layers, unfitting="drop").to_disk(model)
    text.write_text(f"{DEEP}\nnobody came\n", encoding="utf8")
    succeed(calibrate(model, gold, "--recall", 0.4, "--confidence", 0.8, "--target", text))
    succeed(calibrate(model, gold, "--counts"))
    nlp = spacy.load(model)
    pipe = nlp.get_pipe("crf_spans")
    assert set(pipe.calibrated.counts) == {"LOC", "ORG", "PER"}
    pipe.calibrated.recall = {"": pipe.calibrated.recall[""]._replace(least=0.5)}
    nlp.to_disk(model)
    out, counts = tmp_path / "out.jsonl", tmp_path / "counts.json"
    succeed(annotate(model, text, out, "--counts", counts))
    numbers = json.loads(counts.read_text())["labels"]
    assert numbers.keys() == {"LOC", "ORG", "PER"}
    assert round(numbers["LOC"]["mentions"]["number"]) == 1
    succeed(annotate(model, text, out, "--redact", "LOC"))
    assert [row["text"] for row in read(out)] == [DEEP.replace("England", "[LOC]"), "nobody came"]
    succeed(annotate(model, text, out, "--redact", "LOC,PER"))
    places = [part["source"] for part in read(out)[0]["redacted"]]
    assert places == [[0, len("Ada")], [len("Ada saw "), len(DEEP)]]


def test_a_model_without_a_promise_redacts_nothing(trained_path, text, tmp_path):
    result = annotate(trained_path, text, tmp_path / "out.jsonl", "--redact", "PER")
    assert_one_error(result, "ner: no recall is promised for PER: run `spacy-psa calibrate")


def test_a_promise_for_all_labels_replaces_those_of_single_ones(model, dev):
    succeed(calibrate(model, dev, "--recall", 0.7, "--confidence", 0.8, "--label", "PER"))
    succeed(calibrate(model, dev, *PROMISE))
    assert list(spacy.load(model).get_pipe("ner").calibrated.recall) == [""]


def test_a_text_in_the_key_of_the_output_is_an_error(promising, text, tmp_path):
    renamed = [{"redacted": line["text"]} for line in read(text)]
    text.write_text("".join(json.dumps(line) + "\n" for line in renamed), "utf8")
    arguments = ["--redact", "PER", "--text-key", "redacted"]
    result = annotate(promising, text, tmp_path / "out.jsonl", *arguments)
    assert_one_error(result, "--text-key redacted: the redacted text has this key")
