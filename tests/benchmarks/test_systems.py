"""The lists and plans of what is trained on real corpora, in benchmarks/systems and conll2003."""

import pytest
from spacy import util
from spacy.util import registry
from thinc.api import Config

from benchmarks.record import FOLDER, read_record
from benchmarks.systems.train import RESULTS, read_systems
from spacy_psa.cli.configs import merge_config
from spacy_psa.laboratory.experiments.plan import read_plan
from spacy_psa.modules.characters import CharAdaTrans, CharBiLSTM, CharCNN
from spacy_psa.training.layers import layered
from tests.helpers.layers import modules_of
from tests.helpers.paths import CONFIGS

SYSTEMS = read_systems()


def test_settings_are_those_of_the_config_and_end_with_an_evaluation(tmp_path):
    for name, system in SYSTEMS.items():
        merge_config(
            CONFIGS / system["task"] / f"{system['config']}.cfg",
            CONFIGS / "corpora" / f"{system['corpus']}.cfg",
            tmp_path / "config.cfg",
            system["settings"],
        )
        training = Config().from_disk(tmp_path / "config.cfg")["training"]
        if not training["max_epochs"]:
            assert training["max_steps"] > 0, name
            assert training["max_steps"] % training["eval_frequency"] == 0, name
        rate = training["optimizer"]["learn_rate"]
        if isinstance(rate, dict) and "total_steps" in rate:
            steps = training["max_epochs"] * training["eval_frequency"]
            assert rate["total_steps"] == (training["max_steps"] or steps), name


def test_each_system_has_its_record():
    assert [name for name in SYSTEMS if not (RESULTS / f"{name}.json").exists()] == []


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The configs of a plan by the names of its runs."""
    (tmp_path / "configs").symlink_to(CONFIGS)
    (tmp_path / "corpus" / "conll2003").mkdir(parents=True)
    (tmp_path / "corpus" / "conll2003" / "test.spacy").touch()
    monkeypatch.chdir(tmp_path)

    def configs(name, folder="systems"):
        plan = read_plan(FOLDER / folder / f"{name}.toml").runs
        return {run.name: layered(run.config, run.layers, run.settings) for run in plan}

    return configs


@pytest.mark.parametrize("plan", ["tener", "tener_100", "tener_dev", "tener_batches"])
def test_plans_of_tener_end_with_their_rate_and_an_evaluation(runs, plan):
    for config in runs(plan).values():
        training = config.interpolate()["training"]
        assert training["max_steps"] == training["optimizer"]["learn_rate"]["total_steps"]
        assert training["max_steps"] % training["eval_frequency"] == 0


def test_the_characters_of_the_plan_of_tener_have_the_size_and_dropout_of_the_authors(runs):
    for name, config in runs("tener").items():
        embed = config.interpolate()["components"]["ner"]["model"]["tok2vec"]["embed"]
        model = registry.resolve({"it": embed})["it"]
        model.initialize()
        kind = {"bilstm": CharBiLSTM, "adatrans": CharAdaTrans}.get(name.split("_")[0], CharCNN)
        (letters,) = modules_of(model, kind)
        assert (letters.output_width, letters.embed.embedding_dim) == (30, 30)
        assert (letters.dropout.p, letters.output_dropout.p) == (0.3, 0.3)


def test_before_has_the_settings_of_the_older_records(runs):
    before, authors = (runs("tener_dev")[name].interpolate() for name in ("before", "authors"))
    older = read_record(RESULTS / "conll2003-tener.json")["config"]
    for section in (("components", "ner", "model", "tok2vec"), ("training", "batcher")):
        now, then, other = before, older, authors
        for key in section:
            now, then, other = now[key], then[key], other[key]
        for size in ("heads", "head_width"):
            now.get("encode", {}).pop(size, None)
            then.get("encode", {}).pop(size, None)
        resolved = registry.fill({"it": now}, validate=False)["it"]
        assert differing(then, resolved) == {} and differing(then, other)


def test_the_runs_of_tener_batches_differ_in_their_batches(runs):
    any_length, by_length = (config.interpolate() for config in runs("tener_batches").values())
    changed = {key.rpartition(".")[0] for key in differing(by_length, any_length)}
    assert changed == {"training.batcher"}


@pytest.mark.parametrize(
    "plan, system",
    [
        *(("settings", system) for system in ("baseline", "psa", "psa_arxiv")),
        *(("settings_quarter", system) for system in ("baseline", "psa")),
    ],
)
def test_settings_of_psa_and_its_baseline_differ_in_one_thing(runs, plan, system):
    configs = {name: config.interpolate() for name, config in runs(plan, "conll2003").items()}
    own = {name: config for name, config in configs.items() if name.rpartition("_")[0] == system}
    base = own.pop(f"{system}_all")
    assert base["training"]["max_steps"] == 12 * base["training"]["eval_frequency"]
    embed = "components.ner.model.tok2vec.embed.*."
    for name, config in own.items():
        expected = {
            "numbers": {f"{embed}words.without_vector": "numbers"},
            "characters": {f"{embed}characters.dropout": 0.55},
        }[name.rpartition("_")[2]]
        assert differing(config, base) == expected
        assert registry.resolve({"it": config["components"]["ner"]["model"]})["it"]
    assert own


def differing(expected, actual):
    """The settings of one config that have another value in the other, by path."""
    return {
        key: value
        for key, value in util.dict_to_dot(expected).items()
        if util.dict_to_dot(actual).get(key) != value
    }
