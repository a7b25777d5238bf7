import json
import zipfile

import pytest
import spacy
import srsly
from spacy.tokens import DocBin

from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.nested_pipelines import example, make
from tests.helpers.pipelines import make_examples

run = command("describe")


def test_the_card_has_what_was_given_and_the_scores_of_the_report(trained, data, tmp_path):
    trained.to_disk(tmp_path / "model")
    succeed(command("report")(tmp_path / "model", data, "--output", tmp_path / "report"))
    given = ["--license", "MIT", "--author", "Ada", "--data", "made-up sentences"]
    given += ["--data-license", "CC0", "--report", tmp_path / "report.json"]
    result = succeed(run(tmp_path / "model", tmp_path / "meta.json", *given))
    assert result.stderr == ""
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert (meta["license"], meta["author"]) == ("MIT", "Ada")
    assert meta["sources"][0] == {
        "name": "made-up sentences",
        "license": "CC0",
        "author": "",
        "url": "",
    }
    labels = ", ".join(trained.get_pipe(trained.pipe_names[0]).labels)
    assert meta["description"].startswith(f"Finds named entities ({labels}), trained on made-up")
    assert meta["performance"]["ents_f"] > 0 and meta["performance"]["speed"] > 0
    assert not any(name.endswith("_loss") for name in meta["performance"])


def test_losses_of_the_training_are_no_scores_and_what_is_missing_is_said(tmp_path):
    nlp = spacy.blank("en")
    nlp.meta["performance"] = {"ents_f": 0.5, "ner_loss": 3.0}
    nlp.to_disk(tmp_path / "model")
    result = run(tmp_path / "model", tmp_path / "meta.json")
    assert "no license and no author in the card" in result.stderr
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert meta["performance"] == {"ents_f": 0.5}


def test_the_card_has_scores_by_type_speed_calibration_and_what_it_is_for(trained, data, tmp_path):
    model, card = tmp_path / "model", tmp_path / "model" / "README.md"
    trained.to_disk(model)
    succeed(command("report")(model, data, "--output", tmp_path / "report"))
    calibrate = command("calibrate")
    for name, options in (("t", []), ("c", ["--coverage", 0.5])):
        succeed(calibrate(model, data, "--json", tmp_path / f"{name}.json", *options))
    measured = ["--calibration", tmp_path / "t.json", "--calibration", tmp_path / "c.json"]
    given = ["--license", "CC BY 4.0", "--author", "Ada <ada@example.org>", "--data", "a|b"]
    given += ["--intended-use", "Letters of the 19th century."]
    report = ["--report", tmp_path / "report.json"]
    succeed(run(model, tmp_path / "meta.json", "--card", card, *given, *measured, *report))
    front, _, text = card.read_text().removeprefix("---\n").partition("---\n")
    front = srsly.yaml_loads(front)
    assert front["license"] == "cc-by-4.0" and front["language"] == ["en"]
    assert "token-classification" in front["tags"]
    (index,) = front["model-index"]
    scores = {m["name"]: m["value"] for m in index["results"][0]["metrics"]}
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert scores["ents f1"] == pytest.approx(meta["performance"]["ents_f"], abs=1e-4)
    for wanted in ("| ents | PER |", "words a second", "Letters of the 19th", "a&#124;b"):
        assert wanted in text
    assert "expected calibration error" in text and "prediction_sets" in text
    assert "Ada &lt;ada@example.org&gt;" in text


def test_nested_spans_are_in_the_description(tmp_path):
    nlp = make()
    nlp.initialize(lambda: [example(nlp, "Ada left", [(0, 1, "PER")])])
    nlp.to_disk(tmp_path / "model")
    succeed(run(tmp_path / "model", tmp_path / "meta.json"))
    description = json.loads((tmp_path / "meta.json").read_text())["description"]
    assert description.startswith("Finds nested spans (PER). Each prediction has")


def test_without_figures_the_card_says_what_it_is_for(tmp_path):
    spacy.blank("xx").to_disk(tmp_path / "model")
    card = tmp_path / "README.md"
    assert run(tmp_path / "model", tmp_path / "m.json", "--card", card).exit_code == 0
    text = card.read_text()
    assert "multilingual" in text and "text like its training data" in text
    assert "Licence: not named" in text and "## Scores" not in text


def test_a_report_that_is_none_is_one_error(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "model")
    (tmp_path / "report.json").write_text("{}")
    for name in ("report.json", "none.json"):
        result = run(tmp_path / "model", tmp_path / "m.json", "--report", tmp_path / name)
        assert_one_error(result, f"{name}: is not a report")
        other = run(tmp_path / "model", tmp_path / "m.json", "--calibration", tmp_path / name)
        assert_one_error(other, f"{name}: is not a record of `spacy-psa calibrate`")
    assert not (tmp_path / "m.json").exists()


def test_a_model_becomes_a_wheel_with_its_card(trained_path, tmp_path):
    before = {path: path.read_bytes() for path in trained_path.rglob("*") if path.is_file()}
    arguments = [trained_path, tmp_path / "out", "--name", "letters", "--version", "1.2.0"]
    given = ["--license", "MIT", "--author", "Ada", "--data", "made-up sentences"]
    result = succeed(command("package")(*arguments, *given))
    (wheel,) = (tmp_path / "out").iterdir()
    assert wheel.name == "en_letters-1.2.0-py3-none-any.whl" and str(wheel) in result.stdout
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    folder = tmp_path / "site" / "en_letters" / "en_letters-1.2.0"
    card = (folder / "README.md").read_text()
    assert "made-up sentences" in card
    assert "# en_letters 1.2.0" in card and 'spacy.load("en_letters")' in card
    assert spacy.load(folder).meta["name"] == "letters"
    assert json.loads((tmp_path / "site/en_letters/meta.json").read_text())["license"] == "MIT"
    assert before == {path: path.read_bytes() for path in before}
    result = command("package")(trained_path, tmp_path / "no", "--name", "1 2")
    assert_one_error(result, "spaCy does not package it", "not a valid module name")


@pytest.mark.parametrize("name", ["evaluate", "apply", "project"])
def test_commands_of_spacy_lead_to_those_of_this_package(name):
    assert_one_error(command(name)("model"), f"python -m spacy {name}")


def test_the_card_has_promises_of_recall_and_of_counts(trained, tmp_path):
    trained.to_disk(tmp_path / "model")
    docs = [eg.reference for eg in make_examples(trained) * 2]
    DocBin(docs=docs).to_disk(tmp_path / "dev.spacy")
    records = []
    for name, options in (("r", ["--recall", 0.7, "--confidence", 0.8]), ("n", ["--counts"])):
        records += ["--calibration", tmp_path / f"{name}.json"]
        succeed(
            command("calibrate")(
                tmp_path / "model", tmp_path / "dev.spacy", "--json", records[-1], *options
            )
        )
    card = tmp_path / "card.md"
    succeed(run(tmp_path / "model", tmp_path / "meta.json", "--card", card, *records))
    text = " ".join(card.read_text().split())
    assert "finds 0.7 of the spans of all labels" in text and "a confidence of 0.8" in text
    assert "intervals of 95%" in text


@pytest.mark.parametrize("option", ["--json", "--figure"])
def test_a_record_inside_the_new_pipeline_is_refused_before_the_work(
    trained, data, tmp_path, option
):
    trained.to_disk(tmp_path / "model")
    new = tmp_path / "new"
    options = ["--output", new, option, new / "record.png"]
    assert_one_error(
        command("calibrate")(tmp_path / "model", data, *options), f"is in --output {new}"
    )
    assert not new.exists()
