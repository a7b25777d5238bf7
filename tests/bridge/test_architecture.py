"""Registered architectures that take their settings from a torch module."""

import inspect
import re
from collections.abc import Sequence
from io import BytesIO
from typing import Literal

import pytest
import torch
from spacy.util import registry
from thinc.api import Config
from thinc.config import ConfigValidationError
from torch import nn

from spacy_psa.bridge.architecture import encoder
from spacy_psa.bridge.shim import shim_of
from spacy_psa.errors import InputError, check_choice, check_sizes
from tests.helpers.layers import arrays, module_of, same

Shape = Literal["round", "square"]


class Toy(nn.Module):
    """A line for a docstring."""

    def __init__(
        self,
        input_width: int,
        filters: int = 4,
        shape: Shape = "round",
        places: Sequence[int] = (1, 2),
        bias: bool = True,
        dropout: float = 0.5,
    ):
        super().__init__()
        check_sizes(filters=filters)
        check_choice("shape", shape, Shape)
        self.linear = nn.Linear(input_width, filters, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.output_width = filters

    def forward(self, x, lengths):
        return self.dropout(self.linear(x))


toy = encoder(Toy, renamed={"kernels": "filters"})

# Small settings of each registered encoder, and the width that they give.
SMALL = {
    "BiLSTM": ({"hidden": 3}, 6),
    "CrossBiLSTM": ({"hidden": 3}, 6),
    "SelfAttentiveBiLSTM": ({"hidden": 5}, 20),
    "PSABiLSTM": ({"hidden": 3}, 6),
    "PSATransformer": ({"heads": 2, "head_width": 3, "feedforward": 8}, 6),
    "TENER": ({"heads": 2, "head_width": 4}, 8),
    "Transformer": ({"heads": 2, "head_width": 4}, 8),
    "FactoredTransformer": (
        {"width": 8, "heads": 2, "head_width": 4, "layers": 1, "feedforward": 8},
        8,
    ),
    "IDCNN": ({"kernels": 5}, 5),
}
CHARACTERS = ["CharBiLSTM", "CharCNN", "CharTransformer", "CharAdaTrans", "CharNgramCNN"]


def architecture_of(name):
    return registry.get("architectures", f"spacy-psa.{name}.v1")


def parameters_of(make):
    return inspect.signature(make).parameters


# Signatures


def test_the_signature_is_the_modules_with_the_names_of_the_config():
    own, modules = parameters_of(toy), parameters_of(Toy)
    assert list(own) == ["kernels", "shape", "places", "bias", "dropout"]
    assert own["kernels"].default == 4 and own["kernels"].annotation is int
    for name in ("shape", "places", "bias", "dropout"):
        assert own[name].default == modules[name].default
        assert own[name].annotation == modules[name].annotation


def test_name_and_docstring_are_the_modules_where_none_are_given():
    assert (toy.__name__, toy.__doc__) == ("Toy", "A line for a docstring.")
    assert encoder(Toy, name="Other").__name__ == "Other"


def test_settings_have_names_and_no_places():
    with pytest.raises(TypeError, match="positional"):
        toy(4)


def test_a_default_of_the_architecture_takes_the_place_of_the_modules():
    other = encoder(Toy, defaults={"filters": 7, "bias": False}, renamed={"kernels": "filters"})
    assert parameters_of(other)["kernels"].default == 7
    assert shim_of(other()).cfg["filters"] == 7 and shim_of(other()).cfg["bias"] is False


def test_a_fixed_setting_cannot_be_set():
    fixed = encoder(Toy, fixed={"bias": False})
    assert "bias" not in parameters_of(fixed)
    assert shim_of(fixed()).cfg["bias"] is False
    with pytest.raises(TypeError, match="bias"):
        fixed(bias=True)


def test_a_cross_bilstm_is_never_separate():
    cross, plain = (shim_of(architecture_of(name)()).cfg for name in ("CrossBiLSTM", "BiLSTM"))
    assert cross["separate"] is False and "separate" in plain
    config = {"@architectures": "spacy-psa.CrossBiLSTM.v1", "separate": True}
    with pytest.raises(ConfigValidationError, match="separate"):
        registry.resolve({"encode": config})


# Errors


@pytest.mark.parametrize("name", [*SMALL, *CHARACTERS])
def test_an_unknown_setting_of_a_config_is_one_error_that_names_it(name):
    config = {"@architectures": f"spacy-psa.{name}.v1", "kernals": 8}
    with pytest.raises(ConfigValidationError) as error:
        registry.resolve({"part": config})
    assert f"spacy-psa.{name}.v1" in str(error.value)
    # confection has said it in other words before its version 1
    assert re.search(r"unexpected argument: 'kernals'|kernals\textra fields", str(error.value))


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("PSABiLSTM", "bottom"),
        ("PSABiLSTM", "middle"),
        ("PSABiLSTM", "top"),
        ("PSABiLSTM", "position"),
        ("PSABiLSTM", "version"),
        ("PSABiLSTM", "activation"),
        ("PSABiLSTM", "precision"),
        ("BiLSTM", "precision"),
        ("CrossBiLSTM", "precision"),
        ("SelfAttentiveBiLSTM", "precision"),
        ("IDCNN", "precision"),
        ("PSATransformer", "position"),
        ("PSATransformer", "version"),
        ("PSATransformer", "precision"),
        ("TENER", "precision"),
        ("Transformer", "precision"),
        ("FactoredTransformer", "precision"),
        ("CharBiLSTM", "pool"),
    ],
)
def test_a_wrong_choice_is_one_error_that_names_the_right_ones(name, setting):
    """Called from Python; of a config, spaCy finds it first."""
    default = parameters_of(architecture_of(name))[setting].default
    with pytest.raises(InputError) as error:
        architecture_of(name)(**{setting: "other"})
    message = str(error.value)
    assert message.startswith(f"{name}.v1: {setting} is 'other': it must be one of (")
    assert repr(default) in message and "\n" not in message


# Sizes that the module does not have, or that may be 0.
NOT_SIZES = {"position_only", "rows", "max_characters", "cache"}


def sizes_of(name):
    integers = (int, int | None)
    of_module = parameters_of(architecture_of(name)).items()
    return [key for key, p in of_module if p.annotation in integers and key not in NOT_SIZES]


SIZES = [
    (name, setting)
    for name in [*SMALL, *CHARACTERS]
    for setting in sizes_of(name)
    if (name, setting) != ("PSABiLSTM", "width")
]


@pytest.mark.parametrize(("name", "setting"), SIZES)
def test_a_size_below_one_is_one_error_that_names_it_as_a_config_has_it(name, setting):
    with pytest.raises(InputError) as error:
        architecture_of(name)(**{setting: 0})
    assert str(error.value).startswith(f"{name}.v1: {setting} is 0: it must ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [("IDCNN", "size", 4), ("CharCNN", "kernel_width", 4), ("CharNgramCNN", "longest", 21)],
)
def test_other_wrong_sizes_are_named_as_a_config_has_them_too(name, setting, value):
    with pytest.raises(InputError, match=rf"^{name}\.v1: {setting} is {value}: it must be "):
        architecture_of(name)(**{setting: value})


def test_what_torch_refuses_is_an_error_of_the_architecture():
    with pytest.raises(InputError, match=r"^Toy\.v1: dropout probability"):
        toy(dropout=2.0)


# Before initialization


def test_building_draws_nothing_from_torchs_generator():
    before = torch.get_rng_state()
    for name, (settings, _) in SMALL.items():
        architecture_of(name)(**settings)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_model_holds_no_weights_until_it_is_initialized():
    """These would be 16 TB."""
    model = architecture_of("Transformer")(heads=1000, head_width=1000, layers=1)
    assert model.get_dim("nO") == 1_000_000
    assert shim_of(model)._model is None


@pytest.mark.parametrize("name", SMALL)
def test_the_output_width_is_known_before_initialization_and_holds_after(name):
    settings, width = SMALL[name]
    model = architecture_of(name)(**settings)
    assert model.get_dim("nO") == width and not model.has_dim("nI")
    model.initialize(X=arrays([2], width=7))
    assert model.get_dim("nI") == 7
    assert [y.shape for y in model.predict(arrays([3, 1], width=7))] == [(3, width), (1, width)]
    assert model.get_dim("nO") == width


WITHOUT_A_BILSTM = {"middle": "attention", "top": "none"}


def test_an_output_as_wide_as_the_input_must_be_told():
    make = architecture_of("PSABiLSTM")
    with pytest.raises(InputError, match=r"^PSABiLSTM\.v1: .* set `width` to the width of `embed`"):
        make(**WITHOUT_A_BILSTM)
    model = make(**WITHOUT_A_BILSTM, width=5)
    assert model.get_dim("nO") == 5
    model.initialize(X=arrays([2], width=5))
    assert model.predict(arrays([3], width=5))[0].shape == (3, 5)


def test_a_told_input_width_does_not_change_a_width_that_is_known():
    assert architecture_of("PSABiLSTM")(hidden=3, width=5).get_dim("nO") == 6


# Configs


@pytest.mark.parametrize("name", [*SMALL, *CHARACTERS])
def test_a_config_that_spacy_fills_has_the_defaults(name):
    block = {"@architectures": f"spacy-psa.{name}.v1"}
    filled = registry.fill({"part": block})["part"]
    defaults = {key: p.default for key, p in parameters_of(architecture_of(name)).items()}
    plain = {key: list(v) if isinstance(v, tuple) else v for key, v in defaults.items()}
    written = Config().from_str(Config({"part": filled}).to_str())
    assert written["part"] == {**block, **plain}
    model, again = (registry.resolve(c)["part"] for c in ({"part": block}, written))
    assert shim_of(model).cfg == shim_of(again).cfg


# Saved models

# The arguments that version 0.1 saved for the module of each encoder.
SAVED = {
    "BiLSTM": {
        "hidden": 3,
        "layers": 1,
        "separate": False,
        "input_dropout": 0.1,
        "output_dropout": 0.2,
    },
    "CrossBiLSTM": {
        "hidden": 3,
        "layers": 2,
        "separate": False,
        "input_dropout": 0.1,
        "output_dropout": 0.2,
    },
    "SelfAttentiveBiLSTM": {
        "hidden": 5,
        "layers": 2,
        "heads": 5,
        "separate": True,
        "input_dropout": 0.1,
        "output_dropout": 0.2,
    },
    "PSABiLSTM": {
        "hidden": 3,
        "bottom": "attention",
        "middle": "bilstm",
        "top": "none",
        "position": "psa",
        "version": "arxiv",
        "window": 4,
        "use_mask": True,
        "use_token_bias": True,
        "use_gaussian": False,
        "activation": "relu",
        "input_dropout": 0.1,
        "lstm_input_dropout": 0.2,
        "lstm_output_dropout": 0.3,
        "dropout": 0.4,
    },
    "PSATransformer": {
        "heads": 2,
        "head_width": 3,
        "layers": 1,
        "feedforward": 8,
        "position": "psa",
        "version": "journal",
        "window": 4,
        "use_mask": True,
        "use_token_bias": False,
        "use_gaussian": True,
        "dropout": 0.1,
        "input_dropout": 0.2,
        "output_dropout": 0.3,
        "precision": "float32",
    },
    "TENER": {
        "heads": 2,
        "head_width": 4,
        "layers": 1,
        "feedforward": None,
        "scale": True,
        "key_projection": True,
        "key_relative_bias": False,
        "dropout": 0.1,
        "input_dropout": 0.2,
        "output_dropout": 0.3,
        "precision": "float32",
    },
    "Transformer": {
        "heads": 2,
        "head_width": 4,
        "layers": 1,
        "feedforward": 9,
        "dropout": 0.1,
        "input_dropout": 0.2,
        "output_dropout": 0.3,
        "precision": "float32",
    },
    "FactoredTransformer": {
        "model_width": 8,
        "heads": 2,
        "head_width": 4,
        "layers": 1,
        "feedforward": 6,
        "max_length": 9,
        "factored": True,
        "concat": None,
        "position_only": 0,
        "boundaries": False,
        "input_norm": True,
        "disable_content": [],
        "disable_position": [],
        "window": None,
        "relaxed": True,
        "attention_dropout": 0.1,
        "relu_dropout": 0.2,
        "residual_dropout": 0.3,
        "precision": "float32",
    },
    "IDCNN": {
        "kernels": 5,
        "size": 5,
        "dilations": [1, 2],
        "iterations": 1,
        "input_dropout": 0.1,
        "block_dropout": 0.2,
        "output_dropout": 0.3,
    },
}


@pytest.mark.parametrize("name", SAVED)
def test_what_version_0_1_saved_loads(name):
    """Its arguments were named as a config names them, with two exceptions."""
    saved = SAVED[name]
    in_config = {"model_width": "width"}
    if name == "PSABiLSTM":
        in_config = {"dropout": "attention_dropout"}
    settings = {in_config.get(key, key): value for key, value in saved.items()}
    if name == "CrossBiLSTM":
        del settings["separate"]
    make = architecture_of(name)
    torch.manual_seed(0)
    model = make(**settings).initialize(X=arrays([2], width=7))
    message = {
        "make": "BiLSTM" if name == "CrossBiLSTM" else name,
        "arguments": {**saved, "width": 7},
        "state": module_of(model).state_dict(),
    }
    buffer = BytesIO()
    torch.save(message, buffer)
    fresh = make()
    shim_of(fresh).from_bytes(buffer.getvalue())
    assert shim_of(fresh).cfg == shim_of(model).cfg
    X = arrays([3, 1], width=7)
    assert same(fresh.predict(X), model.predict(X))


def test_what_is_saved_has_lists_for_tuples():
    model = toy(places=(3, 4)).initialize(X=arrays([2]))
    assert shim_of(model).cfg == {
        "filters": 4,
        "shape": "round",
        "places": [3, 4],
        "bias": True,
        "dropout": 0.5,
        "input_width": 4,
    }
    fresh = toy().from_bytes(model.to_bytes())
    assert shim_of(fresh).cfg == shim_of(model).cfg
    assert same(fresh.predict(arrays([3])), model.predict(arrays([3])))
