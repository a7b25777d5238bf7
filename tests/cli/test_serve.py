"""`spacy-psa serve`: what it refuses before it opens a model."""

import socket
import subprocess
import sys
import urllib.request

import pytest
import spacy
import torch

from spacy_psa.errors import InputError
from spacy_psa.studio.server import serve as server
from spacy_psa.studio.server.serve import open_socket
from tests.helpers.commands import assert_one_error, command
from tests.helpers.patience import PATIENCE

serve = command("serve")


def test_a_port_in_use_is_one_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"--port {port} cannot be opened"):
            open_socket("127.0.0.1", port)
        result = serve("nowhere", "--port", port)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert f"--port {port} cannot be opened" in result.stderr


def test_an_address_of_another_machine_is_an_error():
    with pytest.raises(InputError, match="cannot be opened"):
        open_socket("203.0.113.7", 0)


def test_other_machines_need_a_token():
    result = serve("nowhere", "--host", "0.0.0.0")
    assert (result.exit_code, "set a --token" in result.stderr) == (2, True)


@pytest.mark.parametrize("token", ["", "two words", "a\nb", "\udce4"])
def test_a_token_that_cannot_be_sent_is_an_error(token):
    assert_one_error(serve("nowhere", "--token", token), "--token is empty or has a blank")


@pytest.mark.parametrize("name", ["https://names.example.org", "names.example.org/page", ""])
def test_an_address_for_a_host_is_an_error(name):
    assert_one_error(serve("nowhere", "--allow-host", name), "--allow-host")


def test_a_model_that_is_not_there_is_one_error(tmp_path):
    result = serve(tmp_path / "none", "--port", 0)
    assert (result.exit_code, "no pipeline to open" in result.stderr) == (2, True)


def test_a_server_answers_and_ends_when_it_is_told(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "model")
    line = [sys.executable, "-m", "spacy_psa", "serve", str(tmp_path / "model"), "--port", "0"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().split()[0]
            with urllib.request.urlopen(f"{address}api/models", timeout=PATIENCE) as answer:
                assert b'"name":"model"' in answer.read()
        finally:
            process.terminate()
        process.wait(PATIENCE)


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Starts a server with some options, and returns its app and its number of threads."""
    spacy.blank("en").to_disk(tmp_path / "model")
    seen, threads = [], torch.get_num_threads()
    monkeypatch.setattr(
        server, "run", lambda app, opened: seen.append((app, torch.get_num_threads()))
    )

    def start(*options):
        assert serve(tmp_path / "model", "--port", 0, *options).exit_code == 0
        return seen.pop()

    yield start
    torch.set_num_threads(threads)


def test_a_model_has_one_thread_unless_more_are_asked_for(started):
    assert [started(*options)[1] for options in ([], ["--threads", 2])] == [1, 2]


@pytest.mark.parametrize("path", ["names", "/names", "/names/"])
def test_names_and_path_of_a_proxy_reach_the_guard(started, path):
    app, _ = started("--root-path", path, "--allow-host", "Names.example.org:8443")
    settings = app.settings
    assert (settings.root_path, settings.allowed) == ("/names", ("names.example.org:8443",))


def test_what_the_view_compare_cannot_use_is_one_error(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "model")
    result = serve(tmp_path / "model", "--train", "train.spacy")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "also use --gold" in result.stderr
    result = serve(tmp_path / "model", "--gold", tmp_path / "none.spacy", "--port", 0)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "model: no component for entities, chunks, spans, tags" in result.stderr
