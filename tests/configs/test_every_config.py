"""All configs of the repository: that spaCy takes them, and that they keep to our rules."""

from functools import cache

import pytest
from spacy.schemas import ConfigSchemaTraining
from spacy.util import load_model_from_config, registry

from spacy_psa.training.schedules import WarmupHalving
from tests.helpers.configs import filled, flat, read, settings_of
from tests.helpers.paths import CONFIGS

# The files for `spacy-psa merge-config` are parts of configs.
ALL = sorted(
    f"{path.parent.name}/{path.stem}"
    for task in ("ner", "tagger", "chunker", "parser", "shared")
    for path in CONFIGS.glob(f"{task}/*.cfg")
)
PARSERS = [name for name in ALL if name.startswith("parser/")]
TAGGERS = [name for name in ALL if name not in PARSERS]
# They listen to a component. The numbers are those of the components.
CONTEXTUAL = {"ner/transformer_crf": 2, "ner/tok2vec_crf": 2, "shared/pretrained": 5}


# They need the extra `transformers`.
PRETRAINED = {"ner/transformer_crf"}


@pytest.fixture(scope="module")
def complete():
    """Reads a config as it stands, where it can be built."""

    @cache
    def read_complete(name):
        if name in PRETRAINED:
            pytest.importorskip("spacy_transformers", reason="needs the extra `transformers`")
        return read(name)

    return read_complete


@pytest.fixture(scope="module")
def full(complete):
    """Gives the same, filled."""
    return cache(lambda name: filled(complete(name)))


@pytest.mark.parametrize("name", ALL)
def test_spacy_builds_the_pipeline_and_a_training_whose_rate_hears_its_scores(name, complete):
    config = complete(name).interpolate()
    nlp = load_model_from_config(config, auto_fill=True, validate=True)
    task = name.partition("/")[0]
    assert nlp.pipe_names[-1] == {"shared": "parser"}.get(task, task)
    assert len(nlp.pipe_names) == CONTEXTUAL.get(name, 1)
    section = nlp.config.interpolate()["training"]
    training = registry.resolve(section, schema=ConfigSchemaTraining)
    assert callable(training["batcher"])
    halves = isinstance(training["optimizer"].schedules.get("learn_rate"), WarmupHalving)
    assert (section["logger"]["@loggers"] == "spacy-psa.score_listener.v1") == halves


@pytest.mark.parametrize("name", ALL)
def test_a_filled_config_is_complete_and_changes_no_line(name, complete, full):
    load_model_from_config(full(name), auto_fill=False, validate=True)
    before = dict(flat(complete(name)))
    after = dict(flat(full(name)))
    assert {key: after.get(key) for key in before} == before


@pytest.mark.parametrize("name", TAGGERS)
def test_filling_adds_only_what_does_nothing_to_the_training(name, complete, full):
    written = dict(flat(complete(name)))
    # Arguments of the models' parts have defaults; ner/grid has blocks of its own.
    parts = ("components", "words", "characters", "char", "word", "encoder")
    added = {
        key: value
        for key, value in flat(full(name))
        if key not in written and key.split(".")[0] not in parts
    }
    named = "${paths.init_tok2vec}", "spacy.Tokenizer.v1", "spacy.Vectors.v1"
    inert = (None, False, 0, [], {}, *named)
    assert added.pop("training.optimizer.layer_decay", 1.0) == 1.0
    assert [key for key, value in added.items() if value not in inert] == []


@pytest.mark.parametrize("name", [n for n in ALL if n in CONTEXTUAL or "pretrained" in n])
def test_the_optimizer_has_no_variables(name):
    """Outside of `spacy train`, spaCy creates it without filling them in."""
    assert "${" not in str(read(name)["training"]["optimizer"])


@pytest.mark.parametrize("name", ALL)
def test_paths_and_seed_can_be_overridden(name):
    found = settings_of(name, paths__train="a", paths__dev="b", system__seed=7)
    assert found["corpora.train.path"] == "a" and found["corpora.dev.path"] == "b"
    assert found["training.seed"] == 7


@pytest.mark.parametrize("name", TAGGERS)
def test_the_paths_of_vectors_and_of_pretrained_weights_can_be_overridden(name):
    found = settings_of(name, paths__vectors="v", paths__init_tok2vec="w")
    assert found["initialize.vectors"] == "v" and found["initialize.init_tok2vec"] == "w"


@pytest.mark.parametrize("name", TAGGERS)
def test_labels_of_the_development_set_are_checked(name):
    callback = read(name)["initialize"]["after_init"]
    assert callback == {"@callbacks": "spacy-psa.check_dev_labels.v1"}


@pytest.mark.parametrize("name", PARSERS)
def test_a_bilstm_gives_its_directions_to_the_sides_of_the_fenceposts(name):
    config = read(name).interpolate()
    model = config["components"]["parser"]["model"]
    encode = model["tok2vec"].get("encode", {}).get("@architectures", "")
    assert (model.get("sides") == "halves") == ("BiLSTM" in encode)
