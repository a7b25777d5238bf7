"""`spacy-psa compare`: the page and the JSON, and what it refuses without a trace."""

import json
import re
from unittest.mock import patch

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.compared import FIRST, SECOND, rules, write_gold

run = command("compare")


@pytest.fixture
def gold(tmp_path):
    return write_gold(tmp_path / "gold.spacy")


@pytest.fixture
def models(tmp_path):
    """The folders of two pipelines that end alike."""
    paths = []
    for name, entities in (("first", FIRST), ("second", SECOND)):
        paths.append(tmp_path / name / "model-best")
        paths[-1].parent.mkdir()
        rules(entities).to_disk(paths[-1])
    return paths


def data_of(page):
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(found)


def test_the_page_and_the_json_have_the_same_figures(gold, models, trained_path, tmp_path):
    result = succeed(
        run(
            *(gold, models[0], trained_path, "-o", tmp_path / "page.html"),
            *("--train", gold, "--json", tmp_path / "all.json"),
        )
    )
    report = json.loads((tmp_path / "all.json").read_text(encoding="utf8"))
    page = (tmp_path / "page.html").read_text(encoding="utf8")
    assert data_of(page) == report
    assert [model["name"] for model in report["models"]] == ["model-best", "model"]
    assert [model["posteriors"] for model in report["models"]] == [False, True]
    assert report["seen"] is not None
    assert report["data"][gold.as_posix()]
    assert "40.00" in result.output  # the precision of the rules
    assert "p = " in result.output


def test_equal_names_of_folders_are_told_apart(gold, models, tmp_path):
    assert run(gold, *models, "-o", tmp_path / "page.html").exit_code == 0
    report = data_of((tmp_path / "page.html").read_text())
    assert [m["name"] for m in report["models"]] == ["first/model-best", "second/model-best"]


def test_text_of_the_corpus_cannot_end_its_element(tmp_path, models):
    words = ["</script><script>alert(1)</script>", "&amp;", "Leeds"]
    doc = Doc(spacy.blank("en").vocab, words=words, ents=["B-<b>x", "O", "O"])
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    assert run(tmp_path / "gold.spacy", models[0], "-o", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text()
    assert "alert(1)</script>" not in page
    assert data_of(page)["sentences"]["0"]["tokens"][0][0] == words[0]
    assert data_of(page)["labels"] == ["<b>x", "LOC"]


def test_the_page_loads_nothing(gold, models, tmp_path):
    assert run(gold, models[0], "-o", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text()
    assert not re.search(r"(src|href)=|url\(|^import |^export |@import", page, re.M)
    assert "http" not in re.sub(r"http-equiv|http://www.w3.org/2000/svg", "", page)
    assert "default-src 'none'; script-src 'sha256-" in page


def _nothing(tmp_path):
    return tmp_path / "none.spacy"


def _no_entities(tmp_path):
    DocBin(docs=[Doc(spacy.blank("en").vocab, words=["Go"])]).to_disk(tmp_path / "bare.spacy")
    return tmp_path / "bare.spacy"


def _broken(tmp_path):
    (tmp_path / "broken.spacy").write_bytes(b"no docs")
    return tmp_path / "broken.spacy"


@pytest.mark.parametrize(
    ("place", "make", "reason"),
    [
        ("gold", _nothing, "none.spacy: cannot be read"),
        ("gold", _no_entities, "bare.spacy: no gold entities in it"),
        ("gold", _broken, "broken.spacy: is not a .spacy file, or is broken"),
        ("train", _nothing, "none.spacy: cannot be read"),
        ("train", _broken, "broken.spacy: is not a .spacy file, or is broken"),
    ],
)
def test_bad_data_are_one_error_and_nothing_is_written(place, make, reason, gold, models, tmp_path):
    bad = make(tmp_path)
    arguments = (bad, models[0]) if place == "gold" else (gold, models[0], "--train", bad)
    page, record = tmp_path / "out" / "page.html", tmp_path / "out" / "all.json"
    assert_one_error(run(*arguments, "-o", page, "--json", record), reason)
    assert not page.parent.exists()


def test_a_model_without_such_a_component_is_one_error(gold, models, tmp_path):
    spacy.blank("en").to_disk(tmp_path / "blank")
    for chosen in ([tmp_path / "blank"], [models[0], tmp_path / "blank"]):
        result = run(gold, *chosen, "-o", tmp_path / "page.html")
        assert_one_error(result, "blank: no component for ent", "(none)")
    result = run(gold, models[0], "--component", "ner", "-o", tmp_path / "page.html")
    assert_one_error(result, "no component for --component ner", "rules")
    assert not (tmp_path / "page.html").exists()


def test_a_model_that_changes_tokens_leaves_the_former_page(gold, models, tmp_path):
    nlp = spacy.load(models[0])
    nlp.add_pipe("merge_entities")
    nlp.add_pipe("entity_ruler", name="late").add_patterns([{"label": "PER", "pattern": "Bob"}])
    nlp.to_disk(tmp_path / "merging")
    page = tmp_path / "page.html"
    page.write_text("the former page")
    result = run(gold, tmp_path / "merging", "--component", "late", "-o", page)
    assert_one_error(result, "merging: returns 'Ada Lovelace' as token 0 of the corpus")
    assert page.read_text() == "the former page"
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.parametrize("count", [1, 3])
def test_other_numbers_of_models_and_files_are_one_error(count, gold, models, tmp_path):
    page = tmp_path / "page.html"
    if count == 3:
        assert_one_error(run(gold, *models, "more", "-o", page), "3 models: name one or two")
    else:
        result = run(gold, models[0], "-o", page, "--json", page)
        assert_one_error(result, "is the page and the JSON file")
    assert_one_error(run(gold, tmp_path / "none", "-o", page), "no pipeline to open")
    assert not page.exists()


def test_a_page_that_cannot_be_written_is_one_error(gold, models, tmp_path):
    assert_one_error(run(gold, models[0], "-o", tmp_path), "is a folder")
    (tmp_path / "file").touch()
    other = tmp_path / "file" / "report.json"
    with patch("spacy_psa.studio.comparison.comparison.Comparison.steps") as steps:
        assert_one_error(
            run(gold, models[0], "-o", tmp_path / "page.html", "--json", other), "file"
        )
    steps.assert_not_called()
    assert not (tmp_path / "page.html").exists()
