"""benchmarks/systems.yml, the list of what is trained on real corpora."""

from pathlib import Path

import pytest
import srsly
from thinc.api import Config

from spacy_psa.cli.merge_config import merge_config

ROOT = Path(__file__).parents[2]
SYSTEMS = srsly.read_yaml(ROOT / "benchmarks" / "systems.yml")


@pytest.mark.parametrize("name", SYSTEMS)
def test_settings_are_those_of_the_config_and_end_with_an_evaluation(name, tmp_path):
    system = SYSTEMS[name]
    merge_config(
        ROOT / "configs" / system["task"] / f"{system['config']}.cfg",
        ROOT / "configs" / "corpora" / f"{system['corpus']}.cfg",
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
