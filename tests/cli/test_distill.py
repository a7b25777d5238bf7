"""`spacy-psa distill`: a student trained on what a trained pipeline says."""

import pytest
import spacy
from spacy.tokens import DocBin
from thinc.api import Adam, Config

from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.pipelines import TEXTS, make_examples, make_nlp, small_model, train
from tests.helpers.trainings import digests, killed_at, make_config

distill = command("distill")


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    nlp = make_nlp()
    train(nlp, 40, Adam(0.02))
    path = tmp_path_factory.mktemp("teacher") / "model"
    nlp.to_disk(path)
    return path


@pytest.fixture
def config(tmp_path):
    """The config of a student whose training data has one sentence, with one of the labels."""
    nlp = spacy.blank("en")
    for name, examples in (("train", make_examples(nlp)[:1]), ("dev", make_examples(nlp)[:1])):
        DocBin(docs=[eg.reference for eg in examples]).to_disk(tmp_path / f"{name}.spacy")
    found = make_config(tmp_path / "train.spacy", max_steps=12, eval_frequency=6, dropout=0.0)
    found["components"]["ner"]["model"] = small_model("transition")
    found["corpora"]["dev"]["path"] = str(tmp_path / "dev.spacy")
    found["training"]["optimizer"] = {"@optimizers": "Adam.v1", "learn_rate": 0.05}
    found["training"]["logger"]["output_file"] = str(tmp_path / "log.jsonl")
    found.to_disk(tmp_path / "config.cfg")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", "utf8")
    return tmp_path / "config.cfg"


def entities(path):
    return [[(ent.text, ent.label_) for ent in spacy.load(path)(text).ents] for text in TEXTS]


def test_a_student_learns_from_text_without_annotation(teacher, config, tmp_path):
    arguments = [teacher, config, "-o", tmp_path / "out", "--unlabelled", tmp_path / "texts.txt"]
    arguments += ["--cache-gb", 0.1]
    succeed(distill(*arguments, "--training.max_steps", 40, "--weight", 0.9))
    student = tmp_path / "out" / "model-last"
    said = entities(student)
    assert said == entities(teacher)
    assert ("Acme", "ORG") in said[-1]  # which its annotation does not have
    assert spacy.load(student).get_pipe("ner").labels == ("LOC", "ORG", "PER")
    config = spacy.load(student).config["initialize"]["after_init"]
    assert config["teacher"] == str(teacher) and config["also"] is not None


def test_a_trained_component_can_be_the_student(teacher, config, tmp_path):
    """`source` takes it from a trained pipeline, and training goes on from there."""
    student = make_nlp()
    train(student, 3, Adam(0.02))
    student.to_disk(tmp_path / "student")
    before = entities(tmp_path / "student")
    found = Config().from_disk(config, interpolate=False)
    found["components"]["ner"] = {"source": str(tmp_path / "student")}
    found.to_disk(config)
    arguments = [teacher, config, "-o", tmp_path / "out", "--unlabelled", tmp_path / "texts.txt"]
    succeed(distill(*arguments, "--training.max_steps", 40, "--weight", 0.9))
    assert before != entities(teacher) == entities(tmp_path / "out" / "model-last")


def test_a_killed_distillation_goes_on(teacher, config, tmp_path, monkeypatch):
    whole = [teacher, config, "-o", tmp_path / "whole"]
    parts = [teacher, config, "-o", tmp_path / "parts", "--resume"]
    assert distill(*whole).exit_code == 0
    with killed_at(monkeypatch, 6):
        distill(*parts)
    result = distill(*parts)
    assert result.exit_code == 0 and "Resuming after step 6" in result.stdout
    name = "model-last/ner/model"
    assert digests(tmp_path / "whole")[name] == digests(tmp_path / "parts")[name]


def test_what_cannot_be_distilled_is_one_error(teacher, config, tmp_path):
    out = "-o", tmp_path / "out"
    assert_one_error(distill(tmp_path / "none", config, *out), "none: no pipeline to open")
    assert_one_error(distill(teacher, config, *out, "--weight", 2), "--weight 2: choose a number")
    assert_one_error(distill(teacher, config, *out, "--cache-gb", -1), "cache_gb is -1")
    assert_one_error(distill(teacher, config, *out, "--pipe", "x"), "has no component 'x' of")
    assert_one_error(
        distill(teacher, config, *out, "--unlabelled", tmp_path / "none.txt"), "none.txt: there is"
    )
    assert_one_error(
        distill(teacher, config, *out, "--components.ner.scheme", "BIO"),
        "the scheme of the teacher",
    )
    spacy.blank("en").to_disk(tmp_path / "blank")
    assert_one_error(
        distill(tmp_path / "blank", config, *out), "has no crf_ner, crf_chunker, crf_tagger"
    )
    several = make_nlp()
    several.add_pipe("crf_spans")
    several.to_disk(tmp_path / "several")
    assert_one_error(
        distill(tmp_path / "several", config, *out), "several components, ner, crf_spans: choose"
    )
    (tmp_path / "empty.txt").write_text("\n")
    assert_one_error(
        distill(teacher, config, *out, "--unlabelled", tmp_path / "empty.txt"), "has no text"
    )
    assert not (tmp_path / "out" / "model-last").exists()
    before = digests(teacher)
    for there in (teacher, teacher.parent):
        assert_one_error(distill(teacher, config, "-o", there), f"the teacher {teacher} is there")
    assert digests(teacher) == before
