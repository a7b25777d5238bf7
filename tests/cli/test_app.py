"""The app itself: what `spacy-psa` says without a command."""

import resource
import subprocess

import pytest

from spacy_psa import __version__
from tests.helpers.commands import command
from tests.helpers.quick_python import PYTHON

run = command()


def test_the_version_is_printed():
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"spacy-psa {__version__}\n")


def test_help_says_what_the_package_does():
    result = run("--help")
    assert "Train, run and measure CRF taggers" in result.output and "--version" in result.output


def test_help_shows_all_of_what_each_command_does():
    commands = run("--help").output.partition("Your data:")[2]
    assert "..." not in commands and "serve " in commands


@pytest.mark.parametrize(("options", "code"), [(["--help"], 0), (["model", "in", "out"], 2)])
def test_an_address_space_that_is_too_small_for_torch_is_one_error(options, code, tmp_path):
    result = subprocess.run(
        [PYTHON, "-m", "spacy_psa", "annotate", *options],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == code, result.stderr
    expected = "error: this process may use 1.00 GB of address space"
    assert result.stderr.startswith(expected * (code == 2)) and result.stderr.count("\n") < 2
