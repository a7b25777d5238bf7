"""`spacy-psa calibrate` on a pipeline trained on a handful of sentences."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_psa.scoring.provenance import checksums
from spacy_psa.scoring.result import read_examples
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.pipelines import TEXTS, entities, make_examples, small_model, train

run = command("calibrate")


@pytest.fixture
def model(trained_path, tmp_path) -> Path:
    return Path(shutil.copytree(trained_path, tmp_path / "model"))


@pytest.fixture
def dev(trained, tmp_path) -> Path:
    """Sentences that the pipeline knows, but the truth of one of them is another."""
    docs = [eg.reference for eg in make_examples(trained)]
    docs[0].set_ents([])
    DocBin(docs=docs).to_disk(tmp_path / "dev.spacy")
    return tmp_path / "dev.spacy"


def temperature(path: Path) -> float:
    return spacy.load(path).get_pipe("ner").temperature


def test_the_temperature_is_in_the_new_folder_and_the_old_is_as_it_was(model, dev, tmp_path):
    before = checksums([model])
    succeed(run(model, dev, "--output", tmp_path / "new"))
    assert temperature(tmp_path / "new") > 1.05  # it is surely wrong once
    assert checksums([model]) == before
    assert temperature(model) == 1.0


def test_without_output_only_the_settings_of_the_component_are_replaced(model, dev):
    before = checksums([model])
    assert run(model, dev).exit_code == 0
    after = checksums([model])
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert changed == {(model / "ner" / "cfg").as_posix()}
    assert temperature(model) > 1.05
    assert not spacy.load(model).get_pipe("ner").confidence  # as before


def test_the_same_entities_are_found_with_other_confidences(model, dev, tmp_path):
    assert run(model, dev, "--output", tmp_path / "new").exit_code == 0
    scores = []
    for path in (model, tmp_path / "new"):
        nlp = spacy.load(path, config={"components.ner.confidence": True})
        docs = list(nlp.pipe(TEXTS))
        scores.append([doc.spans["ner"].attrs["scores"].tolist() for doc in docs])
        found = [entities(doc) for doc in docs]
        assert found == [entities(doc) for doc in spacy.load(model).pipe(TEXTS)]
    assert [len(s) for s in scores[0]] == [len(s) for s in scores[1]]
    assert scores[0] != scores[1]


def test_calibrating_again_gives_the_same_temperature(model, dev):
    assert run(model, dev).exit_code == 0
    first = temperature(model)
    assert run(model, dev).exit_code == 0
    assert temperature(model) == pytest.approx(first, rel=1e-3)


def test_the_record_has_figures_before_and_after_and_where_they_come_from(model, dev, tmp_path):
    result = succeed(
        run(model, dev, "--test", dev, "--json", tmp_path / "record.json", "--bins", 5)
    )
    record = json.loads((tmp_path / "record.json").read_text())
    assert set(record["data"]) == {"dev", "test"}
    of_dev = record["data"]["dev"]
    assert of_dev["documents"] == 8
    assert of_dev["after"]["nll"] < of_dev["before"]["nll"]
    for when in ("before", "after"):
        assert set(of_dev[when]) == {"f1", "nll", "ece", "ece_adaptive", "brier", "aupr", "bins"}
        assert [b["upper"] for b in of_dev[when]["bins"]] == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert record["temperature"]["before"] == 1.0
    assert record["temperature"]["after"] == pytest.approx(temperature(model))
    assert dev.as_posix() in record["checksums"]
    assert {"commit", "seed", "config", "machine", "versions", "criterion"} <= set(record)
    assert "likelihood" in result.output and f"{of_dev['before']['ece']:.4f}" in result.output


def test_a_temperature_can_be_given(model, dev):
    assert run(model, dev, "--temperature", 2.5).exit_code == 0
    assert temperature(model) == 2.5


def test_the_decoder_is_stored_with_the_temperature(model, dev, tmp_path):
    new, record = tmp_path / "new", tmp_path / "record.json"
    succeed(run(model, dev, "--decode", "mbr", "--output", new, "--json", record))
    found = json.loads(record.read_text())
    assert found["decode"] == {"before": "viterbi", "after": "mbr"}
    for path, when in ((model, "before"), (new, "after")):
        nlp = spacy.load(path)
        ner, scores = nlp.get_pipe("ner"), nlp.evaluate(read_examples(nlp, dev))
        assert (ner.decode, ner.confidence) == (found["decode"][when], False)
        assert found["data"]["dev"][when]["f1"] == pytest.approx(scores["ents_f"])
    assert run(new, dev).exit_code == 0  # without the option, the decoder stays
    assert spacy.load(new).get_pipe("ner").decode == "mbr"


def test_the_diagram_is_an_image(model, dev, tmp_path):
    pytest.importorskip("matplotlib")
    assert run(model, dev, "--figure", tmp_path / "figure.png").exit_code == 0
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_chunks_are_calibrated_by_the_name_of_their_component(tmp_path):
    nlp = spacy.blank("en")
    config = {"model": small_model(), "spans_key": "base"}
    nlp.add_pipe("crf_chunker", name="phrases", config=config)
    examples = make_examples(nlp)
    for eg in examples:
        eg.reference.spans["base"] = list(eg.reference.ents)
        eg.reference.set_ents([], default="missing")
    train(nlp, steps=10, examples=examples)
    nlp.to_disk(tmp_path / "model")
    DocBin(docs=[eg.reference for eg in examples]).to_disk(tmp_path / "dev.spacy")
    succeed(run(tmp_path / "model", tmp_path / "dev.spacy", "--json", tmp_path / "record.json"))
    assert spacy.load(tmp_path / "model").get_pipe("phrases").temperature != 1.0
    assert '"f1": null' not in (tmp_path / "record.json").read_text()


# Bad input


@pytest.mark.parametrize("value", ["threshold", "best"])
def test_a_decoder_that_chooses_no_analysis_is_refused(model, dev, value):
    before = checksums([model])
    result = run(model, dev, "--decode", value)
    assert result.exit_code == 2 and f"'{value}' is not one of" in result.stderr
    assert checksums([model]) == before


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e-40"])
def test_a_temperature_that_is_none_is_refused(model, dev, value):
    before = checksums([model])
    assert_one_error(run(model, dev, f"--temperature={value}"), "--temperature", "0.01 to 100")
    assert checksums([model]) == before


def test_a_pipeline_without_our_component_is_refused(dev, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "other")
    assert_one_error(
        run(tmp_path / "other", dev), "no crf_ner, crf_chunker or crf_spans", "sentencizer"
    )


def test_a_component_that_is_not_there_is_named(model, dev):
    assert_one_error(run(model, dev, "--pipe", "parser"), "--pipe parser", "ner")


def test_dev_data_without_entities_are_refused(model, tmp_path):
    path = tmp_path / "empty.spacy"
    doc = Doc(spacy.blank("en").vocab, words=["no", "one"], ents=["O", "O"])
    DocBin(docs=[doc]).to_disk(path)
    assert_one_error(run(model, path), str(path), "there are no gold spans for ner")


def test_a_label_that_the_model_does_not_know_is_named(model, tmp_path):
    doc = Doc(spacy.blank("en").vocab, words=["a", "b"], ents=["B-GPE", "O"])
    DocBin(docs=[doc]).to_disk(tmp_path / "dev.spacy")
    assert_one_error(run(model, tmp_path / "dev.spacy"), "GPE", "PER")


def test_a_folder_that_is_there_is_not_written_over(model, dev, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    assert_one_error(
        run(model, dev, "--output", tmp_path / "full"),
        "already exists; choose a folder that is new or empty",
    )
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["note"]


def test_what_is_no_corpus_is_refused(model, tmp_path):
    (tmp_path / "bad.spacy").write_bytes(b"no")
    assert_one_error(run(model, tmp_path / "bad.spacy"), "bad.spacy")


def test_a_figure_without_matplotlib_is_one_clear_error(model, dev, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert_one_error(run(model, dev, "--figure", tmp_path / "figure.png"), "spacy-psa[plot]")


def test_where_the_figure_cannot_be_written_the_model_stays(model, dev, tmp_path):
    pytest.importorskip("matplotlib")
    before = checksums([model])
    assert_one_error(run(model, dev, "--figure", tmp_path / "figure.doc"), "figure.doc", ".png")
    assert checksums([model]) == before


def test_nothing_half_written_is_left_where_the_copy_fails(model, dev, tmp_path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spacy_psa.analysis.calibration.shutil.copytree", full)
    assert_one_error(run(model, dev, "--output", tmp_path / "new"), "new", "No space left")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.spacy", "model"]


def test_coverage_is_put_on_the_component_and_the_temperature_stays(model, dev, tmp_path):
    succeed(run(model, dev, "--coverage", 0.5, "--test", dev, "--json", tmp_path / "record.json"))
    ner = spacy.load(model).get_pipe("ner")
    assert ner.calibrated.coverage.level == 0.5 and ner.temperature == 1.0
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["coverage"]["least"] == ner.calibrated.coverage.least
    assert record["data"]["test"]["coverage"] >= 0.5
    assert record["data"]["dev"] == record["data"]["test"]
    # Its promise is about the probabilities of this temperature.
    result = run(model, dev, "--temperature", 2)
    assert result.exit_code == 0 and "find it again with --coverage" in result.stdout
    assert spacy.load(model).get_pipe("ner").calibrated.coverage is None


@pytest.mark.parametrize(
    "options, reason",
    [
        (["--coverage", 0.999], "dev.spacy: a coverage of 0.999 needs at least 999 documents"),
        (["--coverage", 90], "--coverage 90: choose a number between 0 and 1"),
        (["--coverage", 0.5, "--temperature", 2], "--temperature: leave it out with --coverage"),
        (
            ["--coverage", 0.5, "--pipe", "x"],
            "--pipe x: no such crf_ner, crf_chunker, crf_spans or crf_tagger; choose ner",
        ),
    ],
)
def test_a_coverage_that_cannot_be_promised_is_one_error(model, dev, options, reason):
    before = checksums([model])
    assert_one_error(run(model, dev, *options), reason)
    assert checksums([model]) == before


def test_coverage_of_a_pipeline_without_such_a_component_is_one_error(dev, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "other")
    reason = "no crf_ner, crf_chunker, crf_spans or crf_tagger among its components (sentencizer)"
    assert_one_error(run(tmp_path / "other", dev, "--coverage", 0.5), reason)


def test_corrections_of_counts_are_put_on_the_component_and_annotate_uses_them(
    model, dev, tmp_path
):
    succeed(run(model, dev, "--counts", "--test", dev, "--json", tmp_path / "record.json"))
    ner = spacy.load(model).get_pipe("ner")
    assert set(ner.calibrated.counts) == set(ner.labels)
    rows = json.loads((tmp_path / "record.json").read_text())["data"]["test"]
    (per,) = [row for row in rows if (row["label"], row["kind"]) == ("PER", "mentions")]
    assert per["number"] == pytest.approx(per["gold"])  # the ratio is of the same documents
    assert 0 <= per["held"] <= 1
    DocBin(docs=[eg.predicted for eg in make_examples(spacy.load(model))]).to_disk(
        tmp_path / "in.spacy"
    )
    arguments = [model, tmp_path / "in.spacy", tmp_path / "out.jsonl"]
    for processes in (1, 2):
        options = ["--counts", tmp_path / f"{processes}.json", "--n-process", processes]
        written = succeed(command("annotate")(*arguments, *options))
        assert f"PER: {per['number']:.0f} ± {per['width']:.0f} mentions" in written.stderr
    alone, pair = (json.loads((tmp_path / f"{n}.json").read_text()) for n in (1, 2))
    assert alone == pair and alone["calibrated"]
    number = alone["labels"]["PER"]["mentions"]
    assert number["number"] == pytest.approx(per["number"])
    assert number["high"] - number["number"] == pytest.approx(per["width"])
    assert run(model, dev).exit_code == 0  # another temperature
    assert spacy.load(model).get_pipe("ner").calibrated.counts is None
    written = command("annotate")(*arguments, "--counts", tmp_path / "bare.json")
    assert "not calibrated" in written.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--counts", "--coverage", 0.9], "--counts: leave it out with --coverage"),
        (["--counts", "--decode", "mbr"], "--decode: leave it out with --counts"),
        (["--coverage", 0.9, "--bins", 10], "--bins: leave it out with --coverage"),
    ],
)
def test_options_that_exclude_each_other_are_one_error(model, dev, options, reason):
    assert_one_error(run(model, dev, *options), reason)


def test_counts_without_such_a_component_are_one_error(text, tmp_path):
    spacy.blank("en").to_disk(tmp_path / "blank")
    arguments = [tmp_path / "blank", text, tmp_path / "out.jsonl", "--counts", tmp_path / "c.json"]
    assert_one_error(command("annotate")(*arguments), "has no crf_ner, crf_chunker or crf_spans")
    assert not (tmp_path / "out.jsonl").exists() and not (tmp_path / "c.json").exists()


@pytest.fixture
def text(tmp_path):
    (tmp_path / "in.txt").write_text("Ada met Bob\n", encoding="utf8")
    return tmp_path / "in.txt"


@pytest.mark.parametrize("value", [{"PER": [1, 2]}, {"PER": [[-1, 1, 1], [1, 1, 1]]}, 3])
def test_broken_corrections_are_one_error_that_names_the_component(model, value):
    path = model / "ner" / "cfg"
    path.write_text(json.dumps({**json.loads(path.read_text()), "counts": value}))
    result = command("annotate")(model, path, model / "out.jsonl", "--input-format", "text")
    assert_one_error(result, "ner: counts is")
