"""The parser's configs: that what they build and train is what Kitaev2018 describes."""

from itertools import islice

import pytest
from spacy.schemas import ConfigSchemaTraining
from spacy.training.initialize import init_nlp
from spacy.util import registry

from spacy_psa.bridge.shim import shim_of
from tests.helpers.configs import read, settings_of
from tests.helpers.layers import node_of
from tests.helpers.paths import CONFIGS

# These have their own settings; those of sample.cfg are for a corpus of made-up sentences.
OWN = ("best", "small", "sample", "frozen", "pretrained")
LIKE_PAPER = sorted(p.stem for p in CONFIGS.glob("parser/*.cfg") if p.stem not in OWN)
PAPER = ("factored", "self_attentive")
ENCODE = "components.parser.model.tok2vec.encode."
LEXICAL = {
    "words": {"words"},
    "words_tags": {"words", "tags"},
    "words_chars": {"words", "letters"},
    "chars": {"letters"},
    "words_concat": {"words", "letters"},
    "concat": {"letters"},
}


@pytest.mark.parametrize("name", ["best", "small", "frozen", "pretrained"])
def test_a_parser_of_our_own_learns_until_its_rate_is_zero(name):
    """`eval_frequency` divides `max_steps`, so that the last weights are evaluated too."""
    training = read(f"parser/{name}").interpolate()["training"]
    assert training["optimizer"]["learn_rate"]["total_steps"] == training["max_steps"]
    assert training["max_steps"] % training["eval_frequency"] == 0
    assert training["max_epochs"] == training["patience"] == 0


def test_the_parser_learns_from_the_tags_that_the_tagger_before_it_predicts(tagger, tmp_path):
    """A whole initialization and update, as `spacy train` does them, of a small encoder."""
    (tmp_path / "trees").write_text("(S (NP (NNS Roses)) (VP (VBP bloom)))\n" * 2)
    small = {"width": 16, "layers": 1, "feedforward": 16, "heads": 1, "head_width": 4}
    dotted = {(ENCODE + key).replace(".", "__"): value for key, value in small.items()}
    paths = {f"paths__{name}": str(tmp_path / "trees") for name in ("train", "dev")}
    untagged = {f"corpora__{name}__gold_tags": False for name in ("train", "dev")}
    config = read("parser/self_attentive", lexical__width=16, **untagged, **paths, **dotted)
    config["nlp"]["pipeline"] = ["tagger", "parser"]
    config["components"]["tagger"] = {"source": tagger}
    for setting in ("frozen_components", "annotating_components"):
        config["training"][setting] = ["tagger"]
    nlp = init_nlp(config)
    training = registry.resolve(nlp.config.interpolate()["training"], schema=ConfigSchemaTraining)
    corpus = registry.resolve(nlp.config.interpolate()["corpora"])["train"]
    weights = nlp.get_pipe("tagger").to_bytes()
    nlp.update(
        list(corpus(nlp)),
        sgd=training["optimizer"],
        annotates=training["annotating_components"],
        exclude=training["frozen_components"],
    )
    tags = node_of(nlp.get_pipe("parser").model, "tag_embed")
    assert tags.attrs["rows"] and set(tags.attrs["rows"]) <= {"NNS", "VBP"}
    assert nlp.get_pipe("tagger").to_bytes() == weights
    doc = nlp("Roses bloom")
    assert len(doc.spans["constituents"]) >= 1
    assert nlp.config["training"]["score_weights"]["tree_f"] == 1.0


@pytest.mark.parametrize("name", LIKE_PAPER)
def test_dev_is_scored_four_times_in_a_pass_over_ontonotes(name):
    found = settings_of(f"parser/{name}")
    updates = 30_060 / found["training.batcher.size"]
    assert found["training.eval_frequency"] == pytest.approx(updates / 4, rel=0.02)
    assert found["training.patience"] == 60 * found["training.eval_frequency"]
    assert found["training.score_weights.tree_f"] == 1.0


def test_the_rate_rises_over_the_first_160_batches():
    training = read("parser/factored").interpolate()["training"]
    schedule = registry.resolve({"s": training["optimizer"]["learn_rate"]})["s"]
    schedule.report(0.0)
    rates = list(islice(schedule, 200))
    assert rates[0] == pytest.approx(8e-4 / 160)
    assert rates[159:] == [8e-4] * 41


@pytest.mark.parametrize("lexical", LEXICAL)
def test_each_lexical_model_is_an_override_of_one_width(lexical):
    overrides = {"parser__lexical": f"${{lexical.{lexical}}}"}
    config = read("parser/factored", **overrides).interpolate()
    assert set(config["components"]["parser"]["model"]["tok2vec"]["embed"]["*"]) == LEXICAL[lexical]
    model = registry.resolve({"m": config["components"]["parser"]["model"]})["m"]
    assert model.get_ref("tok2vec").get_ref("embed").get_dim("nO") == 512


@pytest.mark.parametrize("name", PAPER)
def test_what_the_words_bring_is_as_wide_as_the_content(name):
    """So the encoder projects nothing. A plain one has the content in its whole width."""
    tok2vec = read(f"parser/{name}").interpolate()["components"]["parser"]["model"]["tok2vec"]
    parts = registry.resolve({key: tok2vec[key] for key in ("embed", "encode")})
    encoder = shim_of(parts["encode"])
    encoder.cfg.update(layers=1, ffn_dim=32)
    encoder.build(input_width=parts["embed"].get_dim("nO"))
    assert encoder.module.project is None


@pytest.mark.parametrize(
    "overrides",
    [
        {"position_only": 8},
        {"concat": True},
        {"factored": True},
        {"factored": True, "concat": True},
    ],
    ids=str,
)
def test_the_networks_of_section_three_are_overrides_of_the_plain_one(overrides):
    dotted = {f"encoder__{key}": value for key, value in overrides.items()}
    config = read("parser/self_attentive", **dotted).interpolate()
    encoder = registry.resolve({"e": config["components"]["parser"]["model"]["tok2vec"]["encode"]})
    shim = shim_of(encoder["e"])
    shim.cfg.update(layers=8, ffn_dim=32)
    shim.build(input_width=16)
    assert shim.module.concat == overrides.get("concat", False)
    assert shim.module.factored == overrides.get("factored", False)
    assert shim.module.position_only == overrides.get("position_only", 0)


def test_the_small_parser_is_half_as_wide_and_deep():
    small, full = settings_of("parser/small"), settings_of("parser/factored")
    both = small.keys() & full.keys()
    differs = {key for key in both if small[key] != full[key]}
    halved = {"width", "layers", "feedforward"}
    assert {key.removeprefix(ENCODE) for key in differs if key.startswith(ENCODE)} == {
        *halved,
        "attention_dropout",
        "residual_dropout",
    }
    assert all(2 * small[ENCODE + key] == full[ENCODE + key] for key in halved)
    recipe = "batcher.size", "eval_frequency", "max_epochs", "max_steps", "patience"
    schedule = "optimizer.learn_rate.@schedules", "optimizer.learn_rate.warmup_steps"
    assert {key for key in differs if key.startswith("training.")} == {
        f"training.{key}" for key in (*recipe, *schedule, "logger.@loggers")
    }
    config = read("parser/small").interpolate()["components"]["parser"]["model"]["tok2vec"]["embed"]
    assert registry.resolve({"e": config})["e"].get_dim("nO") == 256
