"""`spacy-psa teach-label`: a new label for a trained component, which keeps the others."""

import itertools
import json

import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam

from spacy_psa.pipeline.distillation import Teacher, taught
from spacy_psa.training.new_label import learn_labels
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.embedders import LISTENER
from tests.helpers.pipelines import (
    TEXTS,
    make_chunk_examples,
    make_examples,
    make_nlp,
    randomize,
    read_marked,
    small_model,
    spans_of,
    train,
)

teach_label = command("teach-label")
SHIPS = [
    "The [Beagle|SHIP] left [Leeds|LOC]",
    "They saw the [Royal Victory|SHIP] .",
    "Nobody came .",
]


def write_examples(path, marked=SHIPS):
    """Examples as JSON lines, in which only ships are annotated."""
    records = []
    for line in marked:
        words, spans = read_marked(line)
        doc = Doc(spacy.blank("en").vocab, words=words)
        ents = [Span(doc, *span) for span in spans if span[2] != "LOC"]
        ents = [{"start": e.start_char, "end": e.end_char, "label": e.label_} for e in ents]
        records.append({"text": doc.text, "ents": ents})
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf8")
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    nlp = make_nlp()
    train(nlp, 40, Adam(0.02))
    nlp.config["training"]["optimizer"]["learn_rate"] = 0.02
    nlp.get_pipe("ner").temperature = 1.5
    path = tmp_path_factory.mktemp("old") / "model"
    nlp.to_disk(path)
    (path.parent / "texts.txt").write_text("\n".join(TEXTS) + "\n", "utf8")
    return path


@pytest.fixture
def examples(tmp_path):
    return write_examples(tmp_path / "ships.jsonl")


def entities(path, texts):
    return [spans_of(doc.ents) for doc in spacy.load(path).pipe(texts)]


def test_the_new_label_is_learned_and_the_others_stay(model, examples, tmp_path):
    texts = model.parent / "texts.txt"
    arguments = [model, examples, "--label", "SHIP", "--texts", texts, "--updates", 40]
    result = succeed(teach_label(*arguments, "--output", tmp_path / "new"))
    assert "40 updates from 3 sentences with annotation and 8 other texts" in result.stdout
    assert "16 of the 16 old spans are predicted as before" in result.stdout
    old = [[s for s in spans if s[2] != "SHIP"] for spans in entities(tmp_path / "new", TEXTS)]
    assert old == entities(model, TEXTS)
    (ships,) = entities(tmp_path / "new", ["The Beagle left Leeds"])
    assert ships == [(1, 2, "SHIP"), (3, 4, "LOC")]  # which the examples do not have
    pipe = spacy.load(tmp_path / "new").get_pipe("ner")
    assert pipe.labels == ("LOC", "ORG", "PER", "SHIP") and pipe.temperature == 1.0
    succeed(teach_label(*arguments, "--output", tmp_path / "again"))
    weights = [(tmp_path / each / "ner" / "model").read_bytes() for each in ("new", "again")]
    assert weights[0] == weights[1]


def test_a_chunker_learns_a_label(tmp_path, examples):
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_chunker", name="it", config={"model": small_model("transition")})
    train(nlp, 40, Adam(0.02), examples=make_chunk_examples(nlp))
    nlp.config["training"]["optimizer"]["learn_rate"] = 0.02
    nlp.to_disk(tmp_path / "old")
    misfit = {"text": "They saw ships", "ents": [{"start": 9, "end": 12, "label": "SHIP"}]}
    with examples.open("a", encoding="utf8") as file:
        file.write(json.dumps(misfit) + "\n")
    arguments = [tmp_path / "old", examples, "--label", "SHIP", "--updates", 60]
    result = succeed(teach_label(*arguments, "--output", tmp_path / "new"))
    assert "1 text(s) are not completely annotated: left out" in result.output
    doc = spacy.load(tmp_path / "new")("The Beagle left Leeds")
    assert (1, 2, "SHIP") in spans_of(doc.spans["chunks"])


@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
@pytest.mark.parametrize("head", ["label_pair", "transition"])
def test_the_loss_sums_over_what_agrees_with_the_annotation_and_the_teacher(head, scheme):
    """It is compared with a sum over all analyses of three tokens, of which one is missing."""
    old, nlp = (make_nlp(small_model(head), scheme=scheme) for _ in range(2))
    for each, seed in ((old, 1), (nlp, 2)):
        train(each, 0, examples=make_examples(each, ["[Ada|PER] met [Bob|PER]"]))
        randomize(each.get_pipe("ner"), seed)
    pipe, teacher = nlp.get_pipe("ner"), Teacher(old, "ner")
    pipe.add_label("SHIP")
    randomize(pipe, 3)
    words = ["Ada", "saw", "HMS"]
    reference = Doc(nlp.vocab, words=words)
    reference.set_ents([Span(reference, 1, 2, "SHIP")], missing=[reference[2:3]])
    example = Example(Doc(nlp.vocab, words=words), reference)
    loss = learn_labels(pipe, teacher, [example], 0.0)

    doc = Doc(nlp.vocab, words=words)
    before, after = taught(teacher, [doc]), pipe.distribution([doc])
    scheme, count = pipe.scheme, len(teacher.pipe.tags)
    sums = {}
    for tags in itertools.product(range(len(pipe.tags)), repeat=3):
        log_prob = float(after.log_prob([torch.tensor(tags)])[0])
        spans = scheme.decode(tags)
        ships = [span for span in spans if span[2] == "SHIP"]
        agrees = (1, 2, "SHIP") in ships and all(s[0] in (1, 2) for s in ships)
        if log_prob > -torch.inf and agrees:
            coarse = tuple(tag if tag < count else 0 for tag in tags)
            sums.setdefault(coarse, []).append(log_prob)
    weights = {
        tags: float(before.log_prob([torch.tensor(tags)])[0].exp())
        for tags in itertools.product(range(count), repeat=3)
        if tags[1] == 0
    }
    mass = sum(weights.values())
    expected = -sum(
        weight / mass * float(torch.tensor(sums[tags]).logsumexp(0))
        for tags, weight in weights.items()
        if weight > 0
    )
    assert loss == pytest.approx(expected, rel=1e-4)


def test_a_new_label_starts_as_an_improbable_part_of_o(model):
    from spacy_psa.architectures.more_labels import copy_tag_0

    nlp = spacy.load(model)
    pipe = nlp.get_pipe("ner")
    docs = [nlp.make_doc(text) for text in TEXTS]
    before, first = pipe.distribution(docs).marginals, len(pipe.tags)
    pipe.add_label("SHIP")
    copy_tag_0(pipe.model, first)
    after = pipe.distribution(docs).marginals
    together = torch.cat(
        [after[..., :1] + after[..., first:].sum(-1, True), after[..., 1:first]], -1
    )
    torch.testing.assert_close(together, before, rtol=0.05, atol=0.02)
    assert 0 < after[..., first:].sum(-1).max() < 0.1


@pytest.mark.parametrize(
    ("changed", "reasons"),
    [
        ({"label": "PER"}, ["--label PER", "has it already"]),
        ({"label": "PLANE"}, ["ships.jsonl", "no span has the label 'PLANE'", "only SHIP"]),
        ({"marked": ["[Ada|POET] sailed the [Beagle|SHIP]"]}, ["'POET'", "one label after"]),
        ({"marked": ["Nobody came ."]}, ["no span has the label 'SHIP'", "no annotation"]),
        ({"texts": ""}, ["texts.txt", "has no text"]),
        ({"texts": None}, ["texts.txt", "cannot be read"]),
        ({"examples": "none.jsonl"}, ["none.jsonl", "no such file"]),
    ],
)
def test_what_cannot_be_taught_is_one_error(changed, reasons, model, tmp_path):
    examples = write_examples(tmp_path / "ships.jsonl", changed.get("marked", SHIPS))
    arguments = [model, changed.get("examples", examples), "-o", tmp_path / "new"]
    arguments += ["--label", changed.get("label", "SHIP")]
    if "texts" in changed:
        if changed["texts"] is not None:
            (tmp_path / "texts.txt").write_text(changed["texts"], "utf8")
        arguments += ["--texts", tmp_path / "texts.txt"]
    assert_one_error(teach_label(*arguments), *reasons)
    assert not (tmp_path / "new").exists()


def test_marks_that_do_not_meet_tokens_are_named(model, tmp_path):
    mark = {"start": 4, "end": 8, "label": "SHIP"}
    (tmp_path / "ships.jsonl").write_text(json.dumps({"text": "The Beagle left", "ents": [mark]}))
    result = teach_label(model, tmp_path / "ships.jsonl", "--label", "SHIP", "-o", tmp_path / "new")
    assert_one_error(result, "no span has the label", "jsonl:1: 'Beag' (SHIP): begins or ends in")


def test_a_component_that_listens_to_another_is_one_error(tmp_path, examples):
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": small_model()["tok2vec"]})
    nlp.add_pipe("crf_ner", name="ner", config={"model": {"tok2vec": LISTENER}})
    train(nlp, 0)
    nlp.to_disk(tmp_path / "old")
    result = teach_label(tmp_path / "old", examples, "--label", "SHIP", "-o", tmp_path / "new")
    assert_one_error(result, "ner listens to another component", "nlp.replace_listeners")
