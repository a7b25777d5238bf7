"""The configs of the papers: that spaCy takes them, and that they hold the papers' settings."""

import math
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
import spacy
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.util import load_config, load_model_from_config, registry
from torch import nn

from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.psa import ContextFusion
from spacy_psa.modules.psa_bilstm import PSABiLSTM
from spacy_psa.training.optimizers import MomentumSGD

CONFIGS = Path(__file__).parent.parent / "configs"
TASKS = ("ner", "tagger", "chunker")
ALL = sorted(
    f"{path.parent.name}/{path.stem}" for t in TASKS for path in CONFIGS.glob(f"{t}/*.cfg")
)
# They take their vectors from elsewhere than a table of words.
CONTEXTUAL = {"ner/transformer_crf", "ner/tok2vec_crf"}
PSA = ["psa", "psa_arxiv", "bilstm_crf"]  # of the PSA paper
CONLL_SENTENCES = 14_041


def read(name):
    return load_config(path_of(name))


def path_of(name):
    """Of "tagger/psa"; "psa" is one of configs/ner."""
    return CONFIGS / (f"{name}.cfg" if "/" in name else f"ner/{name}.cfg")


def filled(name):
    """As `spacy init fill-config` writes it, with variables left as they are."""
    return load_model_from_config(read(name), auto_fill=True).config


def flat(section, at=""):
    for key, value in section.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


@cache
def settings_of(name):
    return dict(flat(filled(name).interpolate()))


def training_of(name):
    """The [training] section as `spacy train` resolves it."""
    section = filled(name).interpolate()["training"]
    return registry.resolve(section, schema=ConfigSchemaTraining)


@pytest.fixture(scope="module")
def pipelines():
    """A pipeline from each config, initialized on one sentence."""
    made = {}
    for name in PSA:
        # Interpolated: outside of `spacy train`, spaCy makes the optimizer without variables.
        nlp = load_model_from_config(read(name).interpolate(), auto_fill=True)
        doc = nlp.make_doc("Ada Lovelace lives in London")
        gold = {"entities": [(0, 12, "PER"), (22, 28, "LOC")]}
        example = Example.from_dict(doc, gold)
        nlp.initialize(lambda example=example: [example])
        made[name] = nlp
    return made


def modules(nlp, kind):
    """The torch modules of a kind in a pipeline's `ner`, in order."""
    return [
        module
        for node in nlp.get_pipe("ner").model.walk()
        for shim in node.shims
        for module in shim.module.modules()
        if isinstance(module, kind)
    ]


def module_of(nlp, node_name):
    (node,) = (n for n in nlp.get_pipe("ner").model.walk() if n.name == node_name)
    return node.shims[0].module


def skip_without_parts(name):
    if name == "ner/transformer_crf":
        pytest.importorskip("spacy_transformers", reason="needs the extra `transformers`")


# spaCy takes them


@pytest.mark.parametrize("name", ALL)
def test_spacy_builds_the_pipeline_and_the_training_of_every_config(name):
    skip_without_parts(name)
    nlp = load_model_from_config(read(name), auto_fill=True, validate=True)
    assert nlp.pipe_names[-1] == name.partition("/")[0]
    assert len(nlp.pipe_names) == 1 + (name in CONTEXTUAL)
    training = training_of(name)
    assert callable(training["batcher"]) and callable(training["optimizer"])


@pytest.mark.parametrize("name", ALL)
def test_a_filled_config_is_complete(name):
    skip_without_parts(name)
    load_model_from_config(filled(name), auto_fill=False, validate=True)


@pytest.mark.parametrize("name", ALL)
def test_filling_changes_no_line(name):
    skip_without_parts(name)
    before, after = dict(flat(read(name))), dict(flat(filled(name)))
    assert {key: after.get(key) for key in before} == before


@pytest.mark.parametrize("name", ALL)
def test_filling_adds_only_what_does_nothing_to_the_training(name):
    skip_without_parts(name)
    written = dict(flat(read(name)))
    # Arguments of the models' parts have defaults; ner/grid has blocks of its own.
    parts = ("components", "words", "characters", "char", "word")
    added = {
        key: value
        for key, value in flat(filled(name))
        if key not in written and key.split(".")[0] not in parts
    }
    named = "${paths.init_tok2vec}", "spacy.Tokenizer.v1", "spacy.Vectors.v1"
    inert = (None, False, 0, [], {}, *named)
    assert [key for key, value in added.items() if value not in inert] == []


@pytest.mark.parametrize("name", ALL)
def test_paths_and_seed_can_be_overridden(name):
    overrides = {"paths.train": "a.spacy", "paths.dev": "b.spacy", "paths.vectors": "v"}
    config = load_config(path_of(name), overrides={**overrides, "system.seed": 7})
    config = config.interpolate()
    assert config["corpora"]["train"]["path"] == "a.spacy"
    assert config["corpora"]["dev"]["path"] == "b.spacy"
    assert config["initialize"]["vectors"] == (None if name in CONTEXTUAL else "v")
    assert config["training"]["seed"] == 7


@pytest.mark.parametrize("name", ALL)
def test_labels_of_the_development_set_are_checked(name):
    callback = read(name)["initialize"]["after_init"]
    assert callback == {"@callbacks": "spacy-psa.check_dev_labels.v1"}


# The settings of the PSA paper, J-13 to J-15

ALIKE = {
    "components.ner.scheme": "BIOES",
    "components.ner.max_grad_norm": 5.0,
    "components.ner.model.potentials": "label_pair",
    "components.ner.model.tok2vec.embed.*.words.width": 100,
    "components.ner.model.tok2vec.embed.*.characters.width": 30,
    "components.ner.model.tok2vec.embed.*.characters.hidden": 100,
    "components.ner.model.tok2vec.encode.hidden": 300,
    "training.batcher.size": 10,
    "training.optimizer.@optimizers": "spacy-psa.SGD.v1",
    "training.optimizer.momentum": 0.9,
    "training.optimizer.learn_rate.@schedules": "spacy-psa.inverse_decay.v1",
    "training.optimizer.learn_rate.initial_rate": 0.015,
    "training.optimizer.learn_rate.decay": 0.05,
    "training.score_weights.ents_f": 1.0,
}
ENCODE = "components.ner.model.tok2vec.encode."
ATTENTION = {
    "bottom": "attention",
    "middle": "bilstm",
    "top": "attention",
    "position": "psa",
    "window": 10,
    "use_mask": True,
    "use_token_bias": True,
    "use_gaussian": True,
    "input_dropout": 0.55,
    "lstm_input_dropout": 0.0,
    "lstm_output_dropout": 0.55,
    "attention_dropout": 0.2,
}
OWN = {
    "psa": {**ATTENTION, "@architectures": "spacy-psa.PSABiLSTM.v1", "version": "journal"},
    "psa_arxiv": {**ATTENTION, "@architectures": "spacy-psa.PSABiLSTM.v1", "version": "arxiv"},
    "bilstm_crf": {
        "@architectures": "spacy-psa.BiLSTM.v1",
        "layers": 1,
        "input_dropout": 0.55,
        "output_dropout": 0.55,
    },
}


@pytest.mark.parametrize("setting", ALIKE)
@pytest.mark.parametrize("name", PSA)
def test_settings_that_the_systems_share(name, setting):
    assert settings_of(name)[setting] == ALIKE[setting]


@pytest.mark.parametrize(
    ("name", "setting"), [(name, setting) for name in OWN for setting in OWN[name]]
)
def test_settings_of_each_encoder(name, setting):
    assert settings_of(name)[ENCODE + setting] == OWN[name][setting]


@pytest.mark.parametrize("name", PSA)
def test_every_setting_of_the_paper_is_written_out(name):
    """A reader finds it in the file, and a change of our defaults does not change it."""
    settled = [*ALIKE, *(ENCODE + setting for setting in OWN[name])]
    written = dict(flat(read(name)))
    assert [setting for setting in settled if setting not in written] == []


def test_the_systems_differ_in_their_encoder_alone():
    # But for one open choice: the recorded baseline was trained before it was made.
    differs = (ENCODE, "components.ner.model.tok2vec.embed.*.words.without_vector")
    rest = [
        {k: v for k, v in settings_of(name).items() if not k.startswith(differs)} for name in PSA
    ]
    assert rest[0] == rest[1] == rest[2]


@pytest.mark.parametrize("name", PSA)
def test_the_optimizer_follows_the_schedule_of_the_paper(name):
    training = training_of(name)
    optimizer, epoch = training["optimizer"], training["eval_frequency"]
    assert isinstance(optimizer, MomentumSGD) and optimizer.momentum == 0.9
    assert optimizer.learn_rate == 0.015
    rates = list(islice(optimizer.schedules["learn_rate"], 10 * epoch))
    assert rates[epoch - 2] == 0.015  # the first rate was taken at once
    assert rates[-1] == pytest.approx(0.010)


@pytest.mark.parametrize("name", PSA)
def test_dev_is_evaluated_after_each_epoch_and_ends_the_training(name):
    training = training_of(name)
    batch = settings_of(name)["training.batcher.size"]
    assert training["eval_frequency"] == math.ceil(CONLL_SENTENCES / batch)
    assert training["patience"] % training["eval_frequency"] == 0
    assert training["patience"] >= 10 * training["eval_frequency"]
    assert training["max_steps"] == 0 and training["max_epochs"] >= 40
    assert training["accumulate_gradient"] == 1 and training["dropout"] == 0.0


@pytest.mark.parametrize("name", PSA)
def test_a_batch_is_ten_sentences(name):
    batches = list(training_of(name)["batcher"](["a", "bb", "ccc"] * 10))
    assert [len(batch) for batch in batches] == [10, 10, 10]


# What is built from them


@pytest.mark.parametrize("name", PSA)
def test_the_sizes_of_the_paper_are_built(pipelines, name):
    nlp = pipelines[name]
    characters = module_of(nlp, "char_bilstm")
    assert characters.embed.embedding_dim == 30
    assert sorted(lstm.hidden_size for lstm in modules(nlp, nn.LSTM)) == [100, 300]
    assert module_of(nlp, "word_embed").table.embedding_dim == 100
    (words,) = (m for m in modules(nlp, BiLSTM) if m.output_width == 600)
    assert len(words.layers) == 1
    assert words.layers[0].input_size == 100 + characters.output_width
    places = [words.input_dropout.p] + [m.input_dropout.p for m in modules(nlp, PSABiLSTM)]
    assert sorted(places)[-1] == 0.55 and sum(places) == 0.55  # in one of the two places
    assert words.output_dropout.p == 0.55


@pytest.mark.parametrize("name", PSA)
def test_a_label_pair_head_over_bioes_is_built(pipelines, name):
    nlp = pipelines[name]
    head = module_of(nlp, "label_pair")
    tags = 4 * 2 + 1  # PER and LOC
    assert head.pair.weight.shape == (tags * tags, 600)
    assert len(nlp.get_pipe("ner").tags) == tags


@pytest.mark.parametrize(("name", "rows"), [("psa", 11), ("psa_arxiv", 21), ("bilstm_crf", None)])
def test_the_fusion_layers_of_the_paper_are_built(pipelines, name, rows):
    layers = modules(pipelines[name], ContextFusion)
    if rows is None:
        assert layers == []
        return
    assert [layer.inner.in_features for layer in layers] == [300, 600]
    for layer in layers:
        attention = layer.attention
        assert layer.dropout.p == 0.2
        assert len(attention.distances) == rows and attention.window == 10
        assert attention.masked and attention.gaussian and attention.token_bias


@pytest.mark.parametrize("name", PSA)
def test_a_pipeline_from_a_config_annotates(pipelines, name):
    doc = pipelines[name]("Grace Hopper lives in New York .")
    assert all(ent.label_ in {"PER", "LOC"} for ent in doc.ents)
    assert doc.has_annotation("ENT_IOB")


def test_spacy_needs_no_import_of_ours_to_read_a_config():
    assert "crf_ner" in spacy.Language.factories
