"""`spacy-psa push`, to a small hub of our own."""

import pytest
import spacy

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
from huggingface_hub import constants

from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.hub import Hub
from tests.helpers.serving import running

run = command("push")


@pytest.fixture
def hub(monkeypatch):
    hub = Hub()
    with running(hub.app()) as address:
        hub.address = address
        monkeypatch.setattr(constants, "ENDPOINT", address)
        yield hub


@pytest.fixture
def model(trained, tmp_path):
    path = tmp_path / "model"
    trained.to_disk(path)
    card = "--card", path / "README.md", "--license", "MIT", "--author", "Ada"
    assert command("describe")(path, tmp_path / "meta.json", *card).exit_code == 0
    return path


def push(model, *options, token="secret", name="ada/en_names"):
    return run(model, name, "--token", token, *options)


def test_what_was_pushed_can_be_opened_as_a_pipeline(hub, model, trained, tmp_path):
    result = succeed(push(model, "--message", "First"))
    assert f"{hub.address}/ada/en_names/commit/1" in result.output
    assert hub.large  # the weights
    for name, content in hub.files.items():
        path = tmp_path / "fetched" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    text = "Ada Lovelace met Charles Babbage in London ."
    fetched = spacy.load(tmp_path / "fetched")
    assert fetched(text).to_json()["ents"] == trained(text).to_json()["ents"] != []
    assert hub.files["README.md"].startswith(b"---")
    assert hub.messages == ["First"]


def test_a_package_stands_beside_the_pipeline(hub, model, tmp_path):
    (tmp_path / "en_names-1.0.0.tar.gz").write_bytes(b"packed")
    succeed(push(model, "--package", tmp_path / "en_names-1.0.0.tar.gz", "--private"))
    assert hub.files["en_names-1.0.0.tar.gz"] == b"packed"
    assert hub.repositories["ada/en_names"]["private"] is True


def test_a_repository_that_is_there_gets_another_commit(hub, model):
    assert push(model).exit_code == push(model).exit_code == 0
    assert len(hub.messages) == 2


def test_without_a_card_there_is_a_warning(hub, model):
    (model / "README.md").unlink()
    result = succeed(push(model))
    assert "has no README.md for the page" in result.stderr


def test_what_cannot_be_pushed_is_one_error_and_nothing_arrives(hub, model, tmp_path):
    assert_one_error(push(model, token="wrong"), "ada/en_names: the hub has refused")
    (tmp_path / "empty").mkdir()
    assert_one_error(push(tmp_path / "empty"), "is not a folder of a pipeline")
    assert_one_error(push(model, name="a/b/c"), "a/b/c: the hub has refused")
    absent = push(model, "--package", tmp_path / "none.whl")
    assert_one_error(absent, "none.whl: no such file")
    assert hub.files == {}


def test_a_hub_that_cannot_be_reached_is_one_error(model, monkeypatch):
    with running(Hub().app()) as address:
        monkeypatch.setattr(constants, "ENDPOINT", address)
    assert_one_error(push(model), "ada/en_names: the hub has refused")
