"""The parser's configs: that spaCy takes them, and that they hold the paper's settings."""

from itertools import islice
from pathlib import Path

import pytest
import spacy
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config, load_model_from_config, registry

from spacy_psa.training.optimizers import Adam
from spacy_psa.training.plateau import WarmupHalving

CONFIGS = Path(__file__).parent.parent / "configs" / "parser"
# configs/parser/sample.cfg has its own settings, for a corpus of made-up sentences.
ALL = sorted(path.stem for path in CONFIGS.glob("*.cfg") if path.stem != "sample")
PAPER = ("factored", "self_attentive")
ENCODE = "components.parser.model.tok2vec.encode."
EMBED = "components.parser.model.tok2vec.embed."
LEXICAL = {
    "words": {"words"},
    "words_tags": {"words", "tags"},
    "words_chars": {"words", "letters"},
    "chars": {"letters"},
    "words_concat": {"words", "letters"},
    "concat": {"letters"},
}


def read(name, **overrides):
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return load_config(CONFIGS / f"{name}.cfg", overrides=dotted)


def flat(section, at=""):
    for key, value in section.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


def settings_of(name, **overrides):
    return dict(flat(read(name, **overrides).interpolate()))


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    """The folder of a pipeline with a small tagger, which knows two tags."""
    nlp = spacy.blank("en")
    embed = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 8}
    encode = {"@architectures": "spacy-psa.BiLSTM.v1", "hidden": 4}
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": tok2vec}
    nlp.add_pipe("crf_tagger", name="tagger", config={"model": model})
    gold = Doc(nlp.vocab, words=["Roses", "bloom"], tags=["NNS", "VBP"])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=["Roses", "bloom"]), gold)])
    path = tmp_path_factory.mktemp("tagger") / "model"
    nlp.to_disk(path)
    return str(path)


def complete(name, tagger):
    """A config as it stands, where it can be built."""
    if name == "transformer":
        pytest.importorskip("spacy_transformers", reason="needs the extra `transformers`")
    return read(name, **({"paths__tagger": tagger} if name == "self_attentive" else {}))


@pytest.mark.parametrize("name", ALL)
def test_spacy_builds_the_pipeline_and_the_training_of_every_config(name, tagger):
    config = complete(name, tagger).interpolate()
    nlp = load_model_from_config(config, auto_fill=True, validate=True)
    assert nlp.pipe_names[-1] == "parser"
    section = nlp.config.interpolate()["training"]
    training = registry.resolve(section, schema=ConfigSchemaTraining)
    assert isinstance(training["optimizer"], Adam)
    halves = isinstance(training["optimizer"].schedules["learn_rate"], WarmupHalving)
    listens = section["logger"]["@loggers"] == "spacy-psa.score_listener.v1"
    assert halves == listens == (name != "small")


def test_the_small_parser_learns_until_its_rate_is_zero():
    """`eval_frequency` divides `max_steps`, so that the last weights are evaluated too."""
    training = read("small").interpolate()["training"]
    assert training["optimizer"]["learn_rate"]["total_steps"] == training["max_steps"]
    assert training["max_steps"] % training["eval_frequency"] == 0
    assert training["max_epochs"] == training["patience"] == 0


@pytest.mark.parametrize("name", ALL)
def test_a_filled_config_is_complete_and_changes_no_line(name, tagger):
    config = complete(name, tagger)
    before = dict(flat(config))
    filled = load_model_from_config(config, auto_fill=True).config
    load_model_from_config(filled, auto_fill=False, validate=True)
    after = dict(flat(filled))
    ours = {key: value for key, value in before.items() if not key.startswith("components.tagger")}
    assert {key: after.get(key) for key in ours} == ours


def test_the_parser_learns_from_the_tags_that_the_tagger_before_it_predicts(tagger, tmp_path):
    """A whole initialization and update, as `spacy train` does them, of a small encoder."""
    (tmp_path / "trees").write_text("(S (NP (NNS Roses)) (VP (VBP bloom)))\n" * 2)
    small = {"width": 16, "layers": 1, "feedforward": 16, "heads": 1, "head_width": 4}
    dotted = {(ENCODE + key).replace(".", "__"): value for key, value in small.items()}
    paths = {f"paths__{name}": str(tmp_path / "trees") for name in ("train", "dev")}
    config = read("self_attentive", paths__tagger=tagger, lexical__width=16, **paths, **dotted)
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
    (tags,) = (n for n in nlp.get_pipe("parser").model.walk() if n.name == "tag_embed")
    assert tags.attrs["rows"] and set(tags.attrs["rows"]) <= {"NNS", "VBP"}
    assert nlp.get_pipe("tagger").to_bytes() == weights
    doc = nlp("Roses bloom")
    assert len(doc.spans["constituents"]) >= 1
    assert nlp.config["training"]["score_weights"]["constituents_f"] == 1.0


@pytest.mark.parametrize("name", ALL)
def test_paths_and_seed_can_be_overridden(name):
    found = settings_of(name, paths__train="a", paths__dev="b", system__seed=7)
    assert found["corpora.train.path"] == "a" and found["corpora.dev.path"] == "b"
    assert found["training.seed"] == 7


# The settings of appendix A and of the authors' code, K-14

RECIPE = {
    "components.parser.loss": "max_margin",
    "components.parser.max_grad_norm": 0.0,
    "components.parser.max_length": 300,
    "components.parser.model.hidden": 250,
    "components.parser.model.sides": "even_odd",
    "training.batcher.size": 250,
    "training.dropout": 0.0,
    "training.optimizer.beta1": 0.9,
    "training.optimizer.beta2": 0.98,
    "training.optimizer.eps": 1e-9,
    "training.optimizer.learn_rate.max_rate": 8e-4,
    "training.optimizer.learn_rate.warmup_steps": 160,
    "training.optimizer.learn_rate.patience": 20,
    "training.optimizer.learn_rate.factor": 0.5,
    ENCODE + "width": 1024,
    ENCODE + "heads": 8,
    ENCODE + "head_width": 64,
    ENCODE + "layers": 8,
    ENCODE + "feedforward": 2048,
    ENCODE + "max_length": 300,
    ENCODE + "boundaries": True,
    ENCODE + "attention_dropout": 0.2,
    ENCODE + "relu_dropout": 0.1,
    ENCODE + "residual_dropout": 0.2,
}


@pytest.mark.parametrize("setting", RECIPE)
@pytest.mark.parametrize("name", PAPER)
def test_settings_of_the_paper_stand_in_the_file(name, setting):
    assert settings_of(name)[setting] == RECIPE[setting]


@pytest.mark.parametrize("name", [name for name in ALL if name != "small"])
def test_dev_is_scored_four_times_in_a_pass_over_ontonotes(name):
    found = settings_of(name)
    updates = 30_060 / found["training.batcher.size"]
    assert found["training.eval_frequency"] == pytest.approx(updates / 4, rel=0.02)
    assert found["training.patience"] == 60 * found["training.eval_frequency"]
    assert found["training.score_weights.constituents_f"] == 1.0


def test_the_rate_rises_over_the_first_160_batches():
    training = read("factored").interpolate()["training"]
    schedule = registry.resolve({"s": training["optimizer"]["learn_rate"]})["s"]
    schedule.report(0.0)
    rates = list(islice(schedule, 200))
    assert rates[0] == pytest.approx(8e-4 / 160)
    assert rates[159:] == [8e-4] * 41


@pytest.mark.parametrize("lexical", LEXICAL)
def test_each_lexical_model_is_an_override_of_one_width(lexical):
    overrides = {"parser__lexical": f"${{lexical.{lexical}}}"}
    config = read("factored", **overrides).interpolate()
    assert set(config["components"]["parser"]["model"]["tok2vec"]["embed"]["*"]) == LEXICAL[lexical]
    model = registry.resolve({"m": config["components"]["parser"]["model"]})["m"]
    assert model.get_ref("tok2vec").get_ref("embed").get_dim("nO") == 512


def test_dropouts_of_the_lexical_models_are_the_codes():
    found = settings_of("factored")
    rates = [found[f"lexical.{part}.rate"] for part in ("word", "tag", "letters", "affixes")]
    assert rates == [0.4, 0.2, 0.2, 0.2]
    assert found["lexical.letters.layer.dropout"] == 0.2
    assert (found["lexical.letters.layer.width"], found["lexical.affixes.layer.width"]) == (64, 32)
    assert found["lexical.word.layer.replace_rare"] is True


def test_the_plain_encoder_has_vectors_of_its_whole_width_added():
    found = settings_of("self_attentive")
    assert found[EMBED + "*.words.layer.width"] == found[EMBED + "*.tags.layer.width"] == 1024
    assert found[ENCODE + "factored"] is False and found[ENCODE + "concat"] is False


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
    config = read("self_attentive", **dotted).interpolate()
    encoder = registry.resolve({"e": config["components"]["parser"]["model"]["tok2vec"]["encode"]})
    shim = encoder["e"].shims[0]
    shim.cfg.update(layers=8, feedforward=32)
    shim.build(width=16)
    assert shim.module.concat == overrides.get("concat", False)
    assert shim.module.factored == overrides.get("factored", False)
    assert shim.module.position_only == overrides.get("position_only", 0)


def test_the_small_parser_is_half_as_wide_and_deep():
    small, full = settings_of("small"), settings_of("factored")
    both = small.keys() & full.keys()
    differs = {key: (small[key], full[key]) for key in both if small[key] != full[key]}
    assert {
        key.removeprefix(ENCODE): v for key, v in differs.items() if key.startswith(ENCODE)
    } == {
        "width": (512, 1024),
        "layers": (4, 8),
        "feedforward": (1024, 2048),
        "attention_dropout": (0.1, 0.2),
        "residual_dropout": (0.1, 0.2),
    }
    recipe = "batcher.size", "eval_frequency", "max_epochs", "max_steps", "patience"
    schedule = "optimizer.learn_rate.@schedules", "optimizer.learn_rate.warmup_steps"
    assert {key for key in differs if key.startswith("training.")} == {
        f"training.{key}" for key in (*recipe, *schedule, "logger.@loggers")
    }
    config = read("small").interpolate()["components"]["parser"]["model"]["tok2vec"]["embed"]
    assert registry.resolve({"e": config})["e"].get_dim("nO") == 256


def test_a_bilstm_gives_its_directions_to_the_fenceposts_sides():
    for name in ("lstm", "psa"):
        assert settings_of(name)["components.parser.model.sides"] == "halves"
