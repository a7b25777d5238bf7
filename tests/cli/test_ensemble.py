"""`spacy-psa ensemble`: trained pipelines in one."""

import numpy
import pytest
import spacy
from spacy.vectors import Vectors
from thinc.api import Config

from spacy_psa.architectures import crf
from spacy_psa.pipeline.coverage import CountCorrection, Coverage, Promise
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.nested_pipelines import example, make
from tests.helpers.nested_pipelines import train as train_nested
from tests.helpers.parsers import chart_model, make_parser, train_parser
from tests.helpers.pipelines import (
    hash_embed,
    make_nlp,
    randomize,
    small_encoder,
    small_model,
    train,
)
from tests.helpers.tasks import task_model
from tests.helpers.trees import constituents

run = command("ensemble")
TEXT = "Ada Lovelace met Charles Babbage in London ."


def saved(path, seed=1, model=None, **settings):
    nlp = make_nlp(model, **settings)
    train(nlp, steps=0)
    randomize(nlp.get_pipe("ner"), seed)
    nlp.add_pipe("sentencizer", first=True)
    nlp.to_disk(path)
    return path


def test_the_joined_pipeline_has_the_mean_of_the_potentials(tmp_path):
    paths = [saved(tmp_path / str(seed), seed) for seed in (1, 2, 3)]
    succeed(run(*paths, "--output", tmp_path / "joined"))
    joined = spacy.load(tmp_path / "joined")
    assert joined.pipe_names == ["sentencizer", "ner"]
    doc = joined.make_doc(TEXT)
    parts = [spacy.load(path).get_pipe("ner").model.predict([doc])[0] for path in paths]
    scores = joined.get_pipe("ner").model.predict([doc])[0]
    numpy.testing.assert_allclose(scores, sum(parts) / 3, atol=1e-4)
    again = joined.from_bytes(joined.to_bytes())
    assert again(TEXT).to_json() == joined(TEXT).to_json()


def test_all_else_is_that_of_the_first_pipeline(tmp_path):
    first = spacy.load(saved(tmp_path / "a"))
    ruler = first.add_pipe("entity_ruler", first=True)
    ruler.add_patterns([{"label": "A", "pattern": "Ada"}])
    first.disable_pipe("entity_ruler")
    first.tokenizer.add_special_case("wrote", [{"ORTH": "wr"}, {"ORTH": "ote"}])
    first.meta.update(author="Ada", license="MIT", notes="for tests", performance={"ents_f": 1})
    first.to_disk(tmp_path / "first")
    out = tmp_path / "joined"
    assert run(tmp_path / "first", saved(tmp_path / "b"), "--output", out).exit_code == 0
    joined = spacy.load(out)
    assert joined.disabled == ["entity_ruler"]
    assert joined.get_pipe("entity_ruler").patterns == ruler.patterns
    kept = {key: joined.meta.get(key) for key in ("author", "license", "notes")}
    assert kept == {"author": "Ada", "license": "MIT", "notes": "for tests"}
    assert not joined.meta.get("performance")
    assert [token.text for token in joined("Ada wrote")] == ["Ada", "wr", "ote"]


def with_variable(tmp_path, hidden):
    """A pipeline with a setting of the component that is a variable of its config."""
    path = saved(tmp_path / str(hidden), hidden, small_model(encoder=small_encoder(hidden=hidden)))
    config = Config().from_disk(path / "config.cfg")
    config["shared"] = {"hidden": hidden}
    config["components"]["ner"]["model"]["tok2vec"]["encode"]["hidden"] = "${shared.hidden}"
    config.to_disk(path / "config.cfg", interpolate=False)
    return path


def test_variables_have_their_values_in_the_config_of_each_model(tmp_path):
    one, two, without = with_variable(tmp_path, 6), with_variable(tmp_path, 10), tmp_path / "a"
    saved(without)
    for paths in ((one, two), (without, two)):
        out = tmp_path / f"joined-{paths[0].name}"
        succeed(run(*paths, "--output", out))
        joined, *members = (spacy.load(path).get_pipe("ner") for path in (out, *paths))
        doc = spacy.blank("en").make_doc(TEXT)
        scores = [pipe.model.predict([doc])[0] for pipe in (joined, *members)]
        numpy.testing.assert_allclose(scores[0], (scores[1] + scores[2]) / 2, atol=1e-4)


def test_what_was_calibrated_of_the_first_are_not_those_of_the_joined(tmp_path):
    first = spacy.load(saved(tmp_path / "a"))
    first.get_pipe("ner").temperature = 3.0
    first.get_pipe("ner").coverage = Coverage(level=0.9, least=0.02, documents=215)
    first.get_pipe("ner").recall = {"": Promise(0.9, 0.95, 0.02, 215)}
    first.get_pipe("ner").counts = {"PER": CountCorrection()}
    first.to_disk(tmp_path / "first")
    out = tmp_path / "joined"
    assert run(tmp_path / "first", saved(tmp_path / "b"), "--output", out).exit_code == 0
    ner = spacy.load(out).get_pipe("ner")
    assert (
        ner.temperature,
        ner.calibrated.coverage,
        ner.calibrated.recall,
        ner.calibrated.counts,
    ) == (1.0, None, None, None)


@pytest.mark.parametrize("longest", [30, 2])
def test_nested_spans_are_joined_if_their_limit_is_the_same(tmp_path, longest):
    paths = []
    for seed, limit in ((1, 30), (2, longest)):
        nlp = make(model=task_model("spans") | {"longest": limit})
        train_nested(nlp, [example(nlp, "the Oslo office", [(1, 2, "LOC")])], steps=1)
        randomize(nlp.get_pipe("crf_spans"), seed)
        nlp.get_pipe("crf_spans").temperature = 2.0
        nlp.to_disk(tmp_path / str(seed))
        paths.append(tmp_path / str(seed))
    result = run(*paths, "--output", tmp_path / "joined")
    if longest == 2:
        assert_one_error(result, "2: crf_spans has another limit for spans")
        return
    joined = spacy.load(tmp_path / "joined").get_pipe("crf_spans")
    doc = spacy.blank("en").make_doc("the Oslo office")
    parts = [spacy.load(path).get_pipe("crf_spans").model.predict([doc])[0] for path in paths]
    (scores,) = joined.model.predict([doc])
    numpy.testing.assert_allclose(scores, sum(parts) / 2, atol=1e-4)
    assert joined.temperature == 1.0


def saved_parser(path, seed=1, loss="log_likelihood", **model):
    nlp = make_parser(chart_model(**model), loss=loss)
    train_parser(nlp)
    randomize(nlp.get_pipe("parser"), seed)
    nlp.to_disk(path)
    return path


@pytest.mark.parametrize("tag_hidden", [None, 8])
def test_parsers_are_joined(tmp_path, tag_hidden):
    paths = [saved_parser(tmp_path / str(seed), seed, tag_hidden=tag_hidden) for seed in (1, 2)]
    succeed(run(*paths, "--output", tmp_path / "joined"))
    joined = spacy.load(tmp_path / "joined")
    doc = joined.make_doc(TEXT)
    parts = [spacy.load(path).get_pipe("parser").model.predict([doc]) for path in paths]
    scores = joined.get_pipe("parser").model.predict([doc])
    assert len(scores) == (1 if tag_hidden is None else 2)
    for array, one, other in zip(scores, *parts, strict=True):
        assert abs(one - other).max() > 0.1
        numpy.testing.assert_allclose(array, (one + other) / 2, atol=1e-4)
    again = joined.from_bytes(joined.to_bytes())
    assert constituents(again(TEXT)) == constituents(joined(TEXT))


def test_parsers_that_other_losses_have_trained_are_one_error(tmp_path):
    one = saved_parser(tmp_path / "one")
    other = saved_parser(tmp_path / "other", loss="max_margin")
    result = run(one, other, "--output", tmp_path / "joined")
    assert_one_error(result, "other: parser has another loss than in the first model")


def test_parsers_of_other_labels_or_with_and_without_tags_are_one_error(tmp_path):
    plain, tagging = saved_parser(tmp_path / "plain"), saved_parser(tmp_path / "tags", tag_hidden=8)
    more = spacy.load(plain)
    more.get_pipe("parser").add_label("X")
    more.to_disk(tmp_path / "more")
    for other in (tagging, tmp_path / "more"):
        result = run(plain, other, "--output", tmp_path / "joined")
        assert_one_error(result, f"{other.name}: parser has other labels")


@pytest.mark.parametrize(
    "other, reason",
    [
        ({"scheme": "BIO"}, "other labels or another scheme"),
        ({"model": small_model("softmax")}, "other potentials"),
    ],
)
def test_models_that_do_not_fit_together_are_one_error(tmp_path, other, reason):
    paths = saved(tmp_path / "a"), saved(tmp_path / "b", **other)
    assert_one_error(run(*paths, "--output", tmp_path / "joined"), "b: ner has", reason)
    assert not (tmp_path / "joined").exists()


def test_transitions_apart_and_none_do_not_fit_together(tmp_path, monkeypatch):
    monkeypatch.setattr(crf, "MANY", 0)  # as with many labels
    heads = {"a": "transition", "b": "softmax"}
    paths = [saved(tmp_path / name, model=small_model(head)) for name, head in heads.items()]
    assert_one_error(run(*paths, "--output", tmp_path / "joined"), "other potentials")


def reading_tags(tmp_path, name, tagger):
    """A pipeline whose recognizer reads the tags of a rule that takes one tag for all words."""
    embed = {"@architectures": "spacy-psa.TagEmbed.v1", "width": 4}
    model = small_model(embed=embed)
    nlp = spacy.load(saved(tmp_path / f"{name}-plain", seed=len(name), model=model))
    ruler = nlp.add_pipe("attribute_ruler", first=True)
    ruler.add(patterns=[[{}]], attrs={"TAG": tagger})
    nlp.to_disk(tmp_path / name)
    return tmp_path / name


def test_models_that_read_the_tags_of_other_taggers_are_one_error(tmp_path):
    one, two, other = (
        reading_tags(tmp_path, name, tag)
        for name, tag in (("one", "NN"), ("third", "NN"), ("other", "VB"))
    )
    succeed(run(one, two, "--output", tmp_path / "joined"))
    joined, out = spacy.load(tmp_path / "joined"), tmp_path / "none"
    assert joined.get_pipe("ner").model.predict([joined(TEXT)])[0].any()
    reason = "ner reads TAG, which other components predict than in the first model"
    assert_one_error(run(one, other, "--output", out), f"other: {reason}")
    plain = saved(tmp_path / "plain", model=small_model())
    assert_one_error(run(plain, one, "--output", out), f"one: {reason}")
    assert run(one, plain, "--output", out).exit_code == 0  # it has the tags that it reads


def reading_vectors(path, factor):
    """A pipeline that reads word vectors, and has them unless `factor` is 0."""
    nlp = make_nlp(small_model(embed={"@architectures": "spacy-psa.WordEmbed.v1", "width": 4}))
    if factor:
        data = numpy.full((2, 4), factor, dtype="float32")
        nlp.vocab.vectors = Vectors(data=data, keys=["Ada", "London"])
    train(nlp, steps=0)
    randomize(nlp.get_pipe("ner"), 1)
    nlp.to_disk(path)
    return path


def test_models_that_read_word_vectors_must_have_the_same(tmp_path):
    """A model that reads none can be joined with any."""
    one, same, other, none = (
        reading_vectors(tmp_path / name, factor)
        for name, factor in (("one", 1), ("same", 1), ("other", 2), ("none", 0))
    )
    plain = saved(tmp_path / "plain", model=small_model(embed=hash_embed()))
    for wrong in (other, none):
        for models in ((one, wrong), (one, plain, wrong), (plain, one, wrong)):
            result = run(*models, "--output", tmp_path / "joined")
            assert_one_error(result, f"{wrong.name}: has other word vectors than a model before")
    for number, models in enumerate([(one, same), (one, plain), (plain, one), (plain, none)]):
        succeed(run(*models, "--output", tmp_path / str(number)))
        pipelines = map(spacy.load, (tmp_path / str(number), *models))
        scores = [nlp.get_pipe("ner").model.predict([nlp(TEXT)])[0] for nlp in pipelines]
        numpy.testing.assert_allclose(scores[0], (scores[1] + scores[2]) / 2, atol=1e-5)


def test_what_cannot_be_joined_is_one_error(tmp_path):
    one = saved(tmp_path / "a")
    spacy.blank("en").to_disk(tmp_path / "blank")
    out = "--output", tmp_path / "joined"
    assert_one_error(run(one, *out), "needs at least two models")
    assert_one_error(run(one, f"{one}/", *out), "a: is named 2 times")
    assert_one_error(run(one, tmp_path / "blank", *out), "blank: has no component 'ner'")
    kinds = "crf_ner, crf_spans, crf_chunker, crf_tagger or constituency_parser"
    assert_one_error(run(tmp_path / "blank", one, *out), f"no {kinds} among its components (none)")
    assert_one_error(
        run(one, saved(tmp_path / "b"), "--pipe", "x", *out),
        f"--pipe x: no such {kinds}; choose ner",
    )
