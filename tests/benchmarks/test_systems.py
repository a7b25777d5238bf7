"""benchmarks/systems/systems.yml, the list of what is trained on real corpora."""

import pytest
from thinc.api import Config

from benchmarks.systems.train import RESULTS, read_systems
from spacy_psa.cli.merge_config import merge_config
from tests.helpers.paths import CONFIGS

SYSTEMS = read_systems()


@pytest.mark.parametrize("name", SYSTEMS)
def test_settings_are_those_of_the_config_and_end_with_an_evaluation(name, tmp_path):
    system = SYSTEMS[name]
    merge_config(
        CONFIGS / system["task"] / f"{system['config']}.cfg",
        CONFIGS / "corpora" / f"{system['corpus']}.cfg",
        tmp_path / "config.cfg",
        system["settings"],
    )
    training = Config().from_disk(tmp_path / "config.cfg")["training"]
    if not training["max_epochs"]:
        assert training["max_steps"] > 0
        assert training["max_steps"] % training["eval_frequency"] == 0
    rate = training["optimizer"]["learn_rate"]
    if isinstance(rate, dict) and "total_steps" in rate:
        steps = training["max_epochs"] * training["eval_frequency"]
        assert rate["total_steps"] == (training["max_steps"] or steps)


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_system_has_its_record(name):
    assert (RESULTS / f"{name}.json").exists()
