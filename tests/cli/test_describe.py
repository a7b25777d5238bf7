import json

import spacy

from tests.helpers.commands import assert_one_error, command

run = command("describe")


def test_the_card_has_what_was_given_and_the_scores_of_the_report(trained, data, tmp_path):
    trained.to_disk(tmp_path / "model")
    done = command("report")(tmp_path / "model", data, "--output", tmp_path / "report")
    assert done.exit_code == 0, done.output
    given = ["--license", "MIT", "--author", "Ada", "--data", "made-up sentences"]
    given += ["--data-license", "CC0", "--report", tmp_path / "report.json"]
    result = run(tmp_path / "model", tmp_path / "meta.json", *given)
    assert result.exit_code == 0, result.output
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


def test_a_report_that_is_none_is_one_error(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "model")
    (tmp_path / "report.json").write_text("{}")
    for name in ("report.json", "none.json"):
        result = run(tmp_path / "model", tmp_path / "m.json", "--report", tmp_path / name)
        assert_one_error(result, f"{name}: is no report")
    assert not (tmp_path / "m.json").exists()
