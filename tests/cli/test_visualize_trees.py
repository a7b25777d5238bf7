"""`spacy-psa visualize trees`: pictures of trees, and one clear error for what cannot be."""

import importlib.util
from xml.etree import ElementTree

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.parsers import make_parser, train_parser, tree_examples
from tests.helpers.trees import parse_tree

run = command("visualize", "trees")
TREE = "(S (NP (NNP Ada)) (VP (VBD left) (NP (NNP Bath))) (. .))"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A parser that knows one tree."""
    nlp = make_parser()
    train_parser(nlp, 40, examples=tree_examples(nlp, [TREE]))
    path = tmp_path_factory.mktemp("parser") / "model"
    nlp.to_disk(path)
    return path


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("Ada left Bath .\n\n<Ada> & (Bath)\n")
    return path


def test_svg_holds_the_words_and_labels_of_all_trees(model, texts, tmp_path):
    succeed(run(model, texts, tmp_path / "out.svg"))
    root = ElementTree.parse(tmp_path / "out.svg").getroot()
    found = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert found[:7] == ["S", "NP", "Ada", "VP", "left", "NP", "Bath"]
    assert {"<", ">", "&", "-LRB-", "-RRB-"} <= set(found[8:])
    drawings = root.findall("{http://www.w3.org/2000/svg}svg")
    tops = [(float(d.get("y")), float(d.get("height").removesuffix("px"))) for d in drawings]
    assert len(tops) == 2 and tops[1][0] >= sum(tops[0])
    assert float(root.get("height").removesuffix("px")) >= sum(tops[1])


def test_characters_that_xml_cannot_have_are_replaced(model, tmp_path):
    (tmp_path / "in.txt").write_text("Ada \x00 \x01 \x1b \ufffe \uffff\nAda left\n", "utf8")
    succeed(run(model, tmp_path / "in.txt", tmp_path / "out.svg"))
    root = ElementTree.parse(tmp_path / "out.svg").getroot()
    found = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert found.count("\ufffd") == 5 and "left" in found


@pytest.mark.parametrize("ending", ["svg", "txt"])
def test_a_tree_too_deep_to_draw_is_named_and_the_others_are_drawn(tmp_path, ending):
    nlp = make_parser()
    train_parser(nlp, 1, examples=tree_examples(nlp, [TREE]))

    @Language.component("psa_test_deep")
    def deepen(doc):
        if len(doc) > 1000:
            spans = [Span(doc, i, len(doc), "X") for i in range(len(doc) - 1)]
            doc.spans["constituents"] = spans
        return doc

    nlp.remove_pipe("tagger") if "tagger" in nlp.pipe_names else None
    nlp.add_pipe("psa_test_deep")
    nlp.to_disk(tmp_path / "model")
    (tmp_path / "in.txt").write_text("Ada left\n" + "a " * 1500 + "\nAda left\n")
    result = succeed(run(tmp_path / "model", tmp_path / "in.txt", tmp_path / f"out.{ending}"))
    assert "in.txt:2: not annotated: a tree is too deep to draw" in result.stderr
    assert (tmp_path / f"out.{ending}").read_text().count("left") == 2


def test_text_shows_each_tree(model, texts, tmp_path):
    assert run(model, texts, tmp_path / "out.txt").exit_code == 0
    first, second, rest = (tmp_path / "out.txt").read_text().split("\n\n")
    lines = first.splitlines()
    assert lines[0].strip() == "S" and lines[-1].split() == ["Ada", "left", "Bath", "."]
    assert "-LRB-" in second and not rest


def test_tags_are_shown_where_there_are_any(model, tmp_path):
    nlp = spacy.load(model)
    parsed = parse_tree(TREE)
    doc = Doc(nlp.vocab, words=parsed.words)
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")

    @Language.component("psa_test_tags")
    def tag(doc):
        for token in doc:
            token.tag_ = "T"
        return doc

    nlp.add_pipe("psa_test_tags")
    nlp.to_disk(tmp_path / "model")
    assert run(tmp_path / "model", tmp_path / "in.spacy", tmp_path / "out.txt").exit_code == 0
    assert (tmp_path / "out.txt").read_text().split().count("T") == 4


def test_name_of_the_output_is_checked_before_anything_else(texts, tmp_path):
    result = run("no model", texts, tmp_path / "out.png")
    assert result.exit_code == 2
    assert "out.png: the name of the output must end in .svg or .txt" in result.stderr


def test_missing_svgling_is_one_error_that_says_what_to_install(texts, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = run("no model", texts, tmp_path / "out.svg")
    assert_one_error(result, 'pip install "spacy-psa[trees]"')


def test_pipeline_without_a_parser_is_one_error(texts, tmp_path):
    spacy.blank("en").to_disk(tmp_path / "model")
    result = run(tmp_path / "model", texts, tmp_path / "out.txt")
    assert result.exit_code == 2 and "no constituency_parser" in result.stderr
    assert not (tmp_path / "out.txt").exists()


def test_confidences_stand_behind_the_labels(model, texts, tmp_path):
    succeed(run(model, texts, tmp_path / "out.svg", "--confidence"))
    root = ElementTree.parse(tmp_path / "out.svg").getroot()
    found = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    words = {"Ada", "left", "Bath", "."}
    for text in found[:8]:
        if text not in words:
            label, score = text.split()
            assert label in ("S", "NP", "VP") and 0 < float(score) <= 1
    assert sum(text in words for text in found[:8]) == 4


def test_confidences_of_several_sentences_stay_with_their_trees(model, tmp_path):
    nlp = spacy.load(model)
    doc = Doc(nlp.vocab, words=["Ada", "left", "Bath", ".", "Bath", "left", "Ada", "."])
    doc[4].is_sent_start = True
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
    succeed(run(model, tmp_path / "in.spacy", tmp_path / "out.txt", "--confidence"))
    first, second, _ = (tmp_path / "out.txt").read_text().split("\n\n")
    assert "Ada" in first.split()[-4:] and first.split()[0] == second.split()[0] == "S"


def test_one_of_several_parsers_is_chosen_and_its_span_group_drawn(tmp_path, texts):
    nlp = make_parser(spans_key="first")
    train_parser(nlp, 40, examples=tree_examples(nlp, [TREE], key="first"))
    other = make_parser()
    flat = "(X (NNP Ada) (VBD left) (NNP Bath) (. .))"
    train_parser(other, 40, examples=tree_examples(other, [flat]))
    nlp.add_pipe("parser", name="flat", source=other)
    nlp.to_disk(tmp_path / "model")
    assert_one_error(run(tmp_path / "model", texts, tmp_path / "out.txt"), "parser or flat")
    for name, label in (("parser", "S"), ("flat", "X")):
        succeed(run(tmp_path / "model", texts, tmp_path / "out.txt", "--pipe", name))
        assert (tmp_path / "out.txt").read_text().split()[0] == label


def test_trees_on_a_doc_are_replaced(model, tmp_path):
    nlp = spacy.load(model)
    doc = Doc(nlp.vocab, words=["Ada", "left", "Bath", "."])
    doc.spans["constituents"] = [Span(doc, 0, 4, "NP"), Span(doc, 0, 2, "NP")]
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
    succeed(run(model, tmp_path / "in.spacy", tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text().split()[0] == "S"
