"""What a torch module inside a thinc model saves, loads and refuses to load."""

import json
import pickle
from io import BytesIO
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn

from spacy_psa.bridge.layers import torch_layer
from spacy_psa.bridge.shim import TorchShim
from spacy_psa.errors import InputError
from spacy_psa.modules.psa import PSABiLSTM
from spacy_psa.training.optimizers import sgd
from tests.helpers.layers import (
    ENCODERS,
    SMALL,
    WIDTH,
    Affine,
    arrays,
    bare_layer,
    layer,
    module_of,
    same,
    step,
    weights_of,
)


@pytest.mark.parametrize("name", ENCODERS)
def test_a_layer_can_be_loaded_before_it_was_initialized(name):
    make, settings = ENCODERS[name]
    model, X = layer(make, **settings), arrays([3, 0, 1])
    fresh = torch_layer("layer", make, settings).from_bytes(model.to_bytes())
    assert same(fresh.predict(X), model.predict(X))
    assert fresh.shims[0].cfg == model.shims[0].cfg
    assert fresh.get_dim("nO") == model.get_dim("nO")
    assert fresh.to_bytes() == model.to_bytes()
    fresh.initialize(X=X)
    assert same(fresh.predict(X), model.predict(X))


@pytest.mark.parametrize("initialized", [True, False])
def test_settings_of_version_0_1_have_their_present_names(initialized):
    """Its bytes have no number of their format, and say `width` for `input_width`."""
    model, fresh, X = layer(), bare_layer(), arrays([3])
    state = module_of(model).state_dict() if initialized else None
    settings = {**SMALL, "width": WIDTH} if initialized else SMALL
    fresh.shims[0].from_bytes(saved({"make": "BiLSTM", "arguments": settings, "state": state}))
    fresh.initialize(X=X)
    assert fresh.shims[0].cfg == model.shims[0].cfg
    assert same(fresh.predict(X), model.predict(X)) == initialized


@pytest.mark.parametrize(("form", "write"), [(2, dict), (3, json.dumps)])
def test_what_torch_saved_in_former_formats_is_read(form, write):
    model, fresh, X = layer(), bare_layer(), arrays([3])
    settings, state = {**SMALL, "input_width": WIDTH}, module_of(model).state_dict()
    written = {"format": form, "make": "BiLSTM", "arguments": write(settings), "state": state}
    fresh.shims[0].from_bytes(saved({**written, "int8": False}))
    assert fresh.shims[0].cfg == model.shims[0].cfg
    assert same(fresh.predict(X), model.predict(X))


def test_an_uninitialized_layer_is_saved_as_such():
    fresh = bare_layer()
    again = bare_layer().from_bytes(fresh.to_bytes())
    assert again.shims[0]._model is None
    again.initialize(X=arrays([2]))
    assert len(again.predict(arrays([2]))[0]) == 2


def test_a_layer_goes_to_disk_and_back(tmp_path):
    model, X = layer(PSABiLSTM, hidden=3), arrays([3])
    model.to_disk(tmp_path / "model")
    fresh = torch_layer("layer", PSABiLSTM, {"hidden": 3}).from_disk(tmp_path / "model")
    assert same(fresh.predict(X), model.predict(X))


class Truncated(nn.Linear):
    """Weights that are drawn until all of them are in range."""

    def reset_parameters(self):
        nn.init.trunc_normal_(self.weight, std=0.02, a=-0.04, b=0.04)
        nn.init.trunc_normal_(self.bias, a=2.0, b=3.0)
        with torch.no_grad():
            while self.bias.normal_().min() < -0.5:
                pass


def test_a_module_that_draws_until_its_numbers_fit_is_loaded():
    shim = TorchShim(Truncated, {"in_features": 30, "out_features": 5})
    shim.build()
    loaded = TorchShim(Truncated, {}).from_bytes(shim.to_bytes())
    assert torch.equal(loaded.module.weight, shim.module.weight)
    assert torch.equal(loaded.module.bias, shim.module.bias)


DUPLICATES = {"copy": lambda m: m.copy(), "pickle": lambda m: pickle.loads(pickle.dumps(m))}


@pytest.mark.parametrize("how", DUPLICATES)
@pytest.mark.parametrize("trained", [False, True])
def test_a_duplicate_is_equal_and_lives_its_own_life(how, trained):
    model, X = layer(), arrays([3])
    if trained:
        step(model, X, sgd(0.1))
    Y = model.predict(X)
    double = DUPLICATES[how](model)
    assert same(double.predict(X), Y)
    step(model, X, sgd(0.1))
    assert same(double.predict(X), Y) and not same(model.predict(X), Y)
    held = model.predict(X)
    step(double, X, sgd(0.1))
    assert same(model.predict(X), held) and not same(double.predict(X), Y)


def with_note(note):
    return nn.Linear(1, 1)


def test_a_header_of_any_length_is_read():
    """The length of this one begins with "PK", as the archives of former formats do."""
    shim = TorchShim(with_note, {})
    shim.build(note="")
    least = int.from_bytes(b"PK", "little") - int.from_bytes(shim.to_bytes()[:8], "little")
    for length in range(least - 8, least + 8):
        shim.cfg["note"] = "x" * length
        if (data := shim.to_bytes()).startswith(b"PK"):
            break
    assert data.startswith(b"PK")
    assert TorchShim(with_note, {}).from_bytes(data).to_bytes() == data


def test_a_layer_without_weights_can_be_duplicated():
    model = bare_layer()
    for double in (model.copy(), pickle.loads(pickle.dumps(model))):
        double.initialize(X=arrays([2]))
    assert model.shims[0]._model is None


def message(**changes) -> bytes:
    """What format 3 saved of `layer()`, changed; settings may also be a dict."""
    shim = layer().shims[0]
    state = shim.module.state_dict()
    content = {"format": 3, "make": "BiLSTM", "arguments": shim.cfg, "state": state}
    return saved({**content, **changes})


def renamed() -> bytes:
    state = module_of(layer()).state_dict()
    return message(state={f"old.{name}": value for name, value in state.items()})


def present() -> bytes:
    return layer().shims[0].to_bytes()


WRONG = {
    "present, cut short": lambda: (present()[:-200], "damaged"),
    "present, a flipped byte in the settings": lambda: (flipped(present()), "damaged"),
    "present, a flipped bit in the weights": lambda: (weights_flipped(present()), "check sum"),
    "present, another setting": lambda: (present().replace(b"rue", b"ruf", 1), "damaged"),
    "safetensors of others": lambda: (safetensors.torch.save({"a": torch.ones(2)}), "damaged"),
    "nothing": lambda: (b"", "damaged"),
    "noise": lambda: (b"\x93NUMPY" * 99, "damaged"),
    "cut short": lambda: (message()[:-200], "damaged"),
    "a flipped byte in the middle": lambda: (flipped(message()), "damaged"),
    "a flipped bit in the weights": lambda: (weights_flipped(message()), "check sum"),
    "not our message": lambda: (saved([1, 2, 3]), "damaged"),
    "a part missing": lambda: (saved({"make": "BiLSTM"}), "damaged"),
    "another module": lambda: (layer(Affine).shims[0].to_bytes(), "belong to Affine"),
    "other sizes": lambda: (message(arguments={"input_width": 5, "hidden": 3}), "do not fit"),
    "other names": lambda: (renamed(), "do not fit"),
    "other options": lambda: (message(arguments={"input_width": 4, "depth": 3}), "do not fit"),
}


def saved(content) -> bytes:
    buffer = BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def weights_flipped(data: bytes) -> bytes:
    weights = module_of(layer()).layers[0].weight_hh_l0.detach().numpy().tobytes()
    at = data.index(weights)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def flipped(data: bytes) -> bytes:
    """Damage to what names the settings, in the first part of the bytes."""
    at = data.index(b"arguments")
    return data[:at] + b"\xff" + data[at + 1 :]


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("initialized", [True, False])
def test_bad_bytes_are_one_clear_error_and_change_nothing(case, initialized):
    data, reason = WRONG[case]()
    model = layer() if initialized else bare_layer()
    shim = model.shims[0]
    module, arguments = shim._model, dict(shim.cfg)
    before = weights_of(model) if initialized else None
    with pytest.raises(InputError, match=reason) as error:
        shim.from_bytes(data)
    assert "\n" not in str(error.value) and "BiLSTM" in str(error.value)
    assert shim._model is module and shim.cfg == arguments
    if initialized:
        assert same(weights_of(model), before)


class Malicious:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_loading_runs_no_code_from_the_file(tmp_path):
    trap = tmp_path / "trap"
    harmful = {
        "in the weights": message(state=Malicious(trap)),
        "in the arguments": message(arguments={"input_width": Malicious(trap)}),
        "alone": pickle.dumps(Malicious(trap), protocol=2),
    }
    torch.load(BytesIO(harmful["in the weights"]), weights_only=False)
    assert trap.exists()  # so the trap works
    trap.unlink()
    for place, data in harmful.items():
        with pytest.raises(InputError, match="damaged"):
            layer().shims[0].from_bytes(data)
        assert not trap.exists(), place
