"""The app itself: what `spacy-psa` says without a command."""

from spacy_psa import __version__
from tests.helpers.commands import command

run = command()


def test_the_version_is_printed():
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"spacy-psa {__version__}\n")


def test_help_says_what_the_package_does():
    result = run("--help")
    assert "Train, run and measure CRF taggers" in result.output and "--version" in result.output
