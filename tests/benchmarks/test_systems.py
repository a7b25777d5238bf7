"""benchmarks/systems/systems.yml, the list of what is trained on real corpora."""

from thinc.api import Config

from benchmarks.systems.train import RESULTS, read_systems
from spacy_psa.cli.configs import merge_config
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
