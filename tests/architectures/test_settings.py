"""Wrong numbers in the settings of every architecture are refused when it is built."""

import inspect
import math
from importlib.metadata import entry_points

import pytest

from spacy_psa.architectures.embed_attributes import word_shape
from spacy_psa.errors import InputError

ARCHITECTURES = {
    entry.name: entry.load()
    for entry in entry_points(group="spacy_architectures")
    if entry.name.startswith("spacy-psa.")
}


def wrong_numbers():
    """(architecture, setting, value) for each rate and each size with a default."""
    for name, make in ARCHITECTURES.items():
        for setting, parameter in inspect.signature(make).parameters.items():
            default = parameter.default
            if isinstance(default, float) and "dropout" in setting:
                yield from ((name, setting, value) for value in (1.5, -0.1, math.nan))
            elif isinstance(default, int) and not isinstance(default, bool):
                yield name, setting, -1


def test_each_architecture_with_a_default_size_or_rate_is_tried():
    tried = {name for name, _, _ in wrong_numbers()}
    assert {"spacy-psa.PSABiLSTM.v1", "spacy-psa.WordEmbed.v1", "spacy-psa.ChartParser.v1"} <= tried


@pytest.mark.parametrize(("name", "setting", "value"), wrong_numbers())
def test_a_wrong_number_is_refused_with_the_names_of_architecture_and_setting(name, setting, value):
    make = ARCHITECTURES[name]
    required = {
        key: 8
        for key, parameter in inspect.signature(make).parameters.items()
        if parameter.default is parameter.empty and "width" in key
    }
    others = {
        key: None
        for key, parameter in inspect.signature(make).parameters.items()
        if parameter.default is parameter.empty and key not in required
    }
    layers = [word_shape()] if name == "spacy-psa.ConcatEmbed.v1" else []
    if layers:
        del others["layers"]
    with pytest.raises(InputError, match=rf"^{name.split('.', 1)[1]}: {setting} is "):
        make(*layers, **{**required, **others, setting: value})
