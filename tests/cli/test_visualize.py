"""`spacy-psa visualize ents`: the page, and what a real browser makes of it."""

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_psa.annotation.drawing import PALETTE
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.nested_pipelines import DEEP, deep_pipeline
from tests.helpers.pipelines import TEXTS, make_examples, make_nlp, small_model, train

run = command("visualize", "ents")
MARKS = """[...document.querySelectorAll('mark')].map(mark => {
    const box = mark.getBoundingClientRect(), style = getComputedStyle(mark);
    return {text: mark.innerText, label: mark.querySelector('span').innerText,
            colour: style.backgroundColor, ink: style.color,
            width: box.width, height: box.height, right: box.right};
})"""


@pytest.fixture
def text(tmp_path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf8")
    return path


@pytest.fixture
def page(trained_path, text, tmp_path) -> Path:
    succeed(run(trained_path, text, tmp_path / "page.html"))
    return tmp_path / "page.html"


def marks(page: Path) -> list[tuple[str, str]]:
    """Text and label of each mark, from the source of the page."""
    found = re.findall(
        r"<mark[^>]*>\s*(.*?)\s*<span[^>]*>(.*?)</span>", page.read_text(encoding="utf8"), re.S
    )
    return [(text, label) for text, label in found]


def test_each_entity_has_its_probability_beside_its_label(trained_path, page):
    nlp = spacy.load(trained_path, config={"components.ner.confidence": True})
    expected = []
    for doc in nlp.pipe(TEXTS):
        scores = doc.spans["ner"].attrs["scores"]
        expected += [(e.text, f"{e.label_} {p:.2f}") for e, p in zip(doc.ents, scores, strict=True)]
    assert marks(page) == expected
    assert len(expected) > 10


def test_the_page_asks_for_nothing_from_elsewhere(page):
    class Links(HTMLParser):
        def handle_starttag(self, tag, attrs):
            assert tag not in ("script", "link", "img", "iframe")
            assert not {"src", "href"} & {name for name, _ in attrs}

    source = page.read_text(encoding="utf8")
    Links().feed(source)
    assert "url(" not in source and "@import" not in source


def test_text_and_labels_are_escaped(trained, tmp_path):
    words = ["<b>", "&", '"', "Ada"]
    DocBin(docs=[Doc(trained.vocab, words=words)]).to_disk(tmp_path / "in.spacy")
    trained.to_disk(tmp_path / "model")
    assert run(tmp_path / "model", tmp_path / "in.spacy", tmp_path / "out.html").exit_code == 0
    source = (tmp_path / "out.html").read_text()
    assert "<b>" not in source and "&lt;b&gt;" in source


def test_a_threshold_draws_spans_that_overlap(trained_path, text, tmp_path):
    settings = {"components.ner.decode": "threshold", "components.ner.threshold": 0.02}
    nlp = spacy.load(trained_path, config=settings)
    nlp.get_pipe("ner").temperature = 20.0  # unsure of everything
    nlp.to_disk(tmp_path / "model")
    assert run(tmp_path / "model", text, tmp_path / "out.html").exit_code == 0
    doc = nlp(text.read_text().splitlines()[0])
    group = doc.spans["ner"]
    assert any(a.end > b.start for a, b in pairwise(group))
    source = (tmp_path / "out.html").read_text(encoding="utf8")
    for span, score in zip(group, group.attrs["scores"]):
        assert f"{span.label_}\N{NO-BREAK SPACE}{score:.2f}" in source


def test_chunks_are_drawn_by_the_name_of_their_component(text, tmp_path):
    nlp = make_nlp()
    nlp.add_pipe("crf_chunker", name="phrases", config={"model": small_model()})
    examples = make_examples(nlp)
    for eg in examples:
        eg.reference.spans["chunks"] = list(eg.reference.ents)
    train(nlp, steps=1, examples=examples)
    nlp.to_disk(tmp_path / "model")
    assert run(tmp_path / "model", text, tmp_path / "out.html", "--pipe", "phrases").exit_code == 0
    assert "Confidence of phrases" in (tmp_path / "out.html").read_text()
    result = run(tmp_path / "model", text, tmp_path / "out.html")
    assert result.exit_code == 2
    assert "--pipe ner or phrases" in result.stderr


def test_nested_spans_are_lines_below_the_text_with_their_probabilities(tmp_path):
    nlp = deep_pipeline()
    nlp.to_disk(tmp_path / "model")
    (tmp_path / "in.txt").write_text(DEEP)
    assert run(tmp_path / "model", tmp_path / "in.txt", tmp_path / "out.html").exit_code == 0
    source = (tmp_path / "out.html").read_text(encoding="utf8")
    doc = nlp(DEEP)
    group = doc.spans["sc"]
    assert len(group) == 5
    for span, score in zip(group, group.attrs["scores"]):
        assert f"{span.label_}\N{NO-BREAK SPACE}{score:.2f}" in source


def test_json_lines_and_stdin_are_read(trained_path, tmp_path):
    line = json.dumps({"body": "Babbage wrote to Mary Anne Evans ."})
    target = tmp_path / "out.html"
    options = ["--input-format", "jsonl", "--text-key", "body"]
    assert run(trained_path, "-", target, *options, stdin=line).exit_code == 0
    assert [text for text, _ in marks(target)] == ["Babbage", "Mary Anne Evans"]


def test_an_empty_text_gives_an_empty_page(trained_path, tmp_path):
    DocBin(docs=[Doc(spacy.blank("en").vocab)]).to_disk(tmp_path / "in.spacy")
    assert run(trained_path, tmp_path / "in.spacy", tmp_path / "out.html").exit_code == 0
    assert marks(tmp_path / "out.html") == []


def test_bad_input_gives_one_line_and_no_page(trained_path, tmp_path):
    target = tmp_path / "out.html"
    (tmp_path / "bad.jsonl").write_text("{}\n")
    spacy.blank("en").to_disk(tmp_path / "bare")
    for arguments, reason in [
        ((trained_path, tmp_path / "none.txt"), "no such file"),
        ((trained_path, tmp_path / "bad.jsonl"), "bad.jsonl:1"),
        ((tmp_path / "bare", tmp_path / "bad.jsonl"), "no crf_ner, crf_chunker or crf_spans"),
    ]:
        result = run(*arguments, target)
        assert_one_error(result, reason)
        assert not target.exists()


# In a browser


def test_a_browser_shows_every_mark_with_its_label_in_the_colour_of_its_type(
    browser, page, trained_path
):
    shown = browser.evaluate(page, MARKS)
    assert [mark["label"] for mark in shown] == [label for _, label in marks(page)]
    labels = spacy.load(trained_path).get_pipe("ner").labels
    for mark, (text, label) in zip(shown, marks(page), strict=True):
        assert mark["text"].split() == [*text.split(), *label.split()]
        assert mark["width"] > 20 and mark["height"] > 10 and mark["right"] <= 900
        colour = "#" + "".join(f"{int(n):02x}" for n in re.findall(r"\d+", mark["colour"])[:3])
        assert colour == PALETTE[labels.index(label.split()[0])]
        assert mark["ink"] == "rgb(0, 0, 0)"


def test_a_browser_takes_a_picture_of_the_page(browser, page, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    browser.screenshot(page, tmp_path / "page.png", 900, 600)
    pixels = image.imread(tmp_path / "page.png")
    assert pixels.shape[:2] == (600, 900)
    colours = {tuple((255 * pixel).round().astype(int)[:3]) for pixel in pixels.reshape(-1, 4)}
    for colour in PALETTE[:3]:
        assert tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5)) in colours
