"""The commands on the pages of benchmarks/ can be given: their scripts, options and settings are
there."""

import argparse
import importlib
import re
import shlex
import subprocess
import sys

import pytest
import srsly
import typer
from spacy.cli._util import parse_config_overrides
from spacy.util import load_config

from benchmarks.record import FOLDER
from spacy_psa.app import app
from spacy_psa.cli.configs import merge_config
from tests.helpers.paths import CONFIGS, ROOT

SCRIPTS = sorted(
    path
    for path in FOLDER.rglob("*.py")
    if 'if __name__ == "__main__"' in path.read_text(encoding="utf8")
    # Other scripts run these, most of them in the environments of Flair, SuPar and other versions.
    and path.name not in ("flair_worker.py", "supar_worker.py", "version_worker.py", "user.py")
)


def commands():
    """The lines of all bash blocks, with continued lines joined."""
    found = []
    for page in sorted(FOLDER.rglob("README.md")):
        for block in re.findall(
            r"^```bash\n(.*?)^```", page.read_text(encoding="utf8"), re.M | re.S
        ):
            lines = block.replace("\\\n", "").splitlines()
            found += [(page.parent.name, shlex.split(line)) for line in lines if line]
    return found


COMMANDS = commands()


def of(*start):
    """Those that begin with some words, without them."""
    return [words[len(start) :] for _, words in COMMANDS if words[: len(start)] == list(start)]


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts)


def test_commands_are_of_a_kind_that_these_tests_know():
    known = [["python", "-m", "spacy_psa"], ["python", "-m", "spacy"], ["mv"], ["pip", "install"]]
    other = [
        words
        for _, words in COMMANDS
        if not any(words[: len(start)] == start for start in known)
        and not (words[:2] == ["python", "-m"] and words[2].startswith("benchmarks."))
    ]
    assert other == [] and len(COMMANDS) > 30


class Parser(Exception):
    """The parser of a script, in place of what the script would do with its arguments."""


@pytest.fixture
def parser_of(monkeypatch):
    """Gives the parser that a script makes."""

    def stop(self, *args):
        raise Parser(self)

    def parser(name):
        with monkeypatch.context() as patch:
            patch.setattr(argparse.ArgumentParser, "parse_known_args", stop)
            with pytest.raises(Parser) as made:
                importlib.import_module(name).main()
        return made.value.args[0]

    return parser


def test_scripts_have_help_and_name_themselves(parser_of):
    wrong = []
    for path in SCRIPTS:
        name = module_of(path)
        text = parser_of(name).format_help()
        first = importlib.import_module(name).__doc__.splitlines()[0]
        if f"usage: python -m {name}" not in text or first not in text:
            wrong.append(name)
    assert wrong == [] and len(SCRIPTS) > 40


@pytest.mark.parametrize(
    "script, usage",
    [
        ("pretrained/flair_worker.py", "FOLDER ENCODER SEED PASSES BATCH RATE"),
        ("speed/flair_worker.py", "FOLDER THREADS"),
        ("parser_speed/supar_worker.py", "TREES.json THREADS PARAMETERS"),
    ],
)
def test_the_worker_for_a_peer_has_help_without_the_peer(script, usage):
    done = subprocess.run(
        [sys.executable, FOLDER / script, "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0 and usage in done.stdout


@pytest.mark.parametrize("name", ["benchmarks.record", "benchmarks.figures"])
def test_shared_modules_import_from_the_root_alone(name):
    done = subprocess.run(
        [sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def accepted(parser, words):
    try:
        parser.parse_args(words)
    except SystemExit:
        return False
    return True


def test_scripts_accept_the_arguments_on_the_pages(parser_of):
    given = [words for words in of("python", "-m") if words[0].startswith("benchmarks.")]
    parsers = {name: parser_of(name) for name in {words[0] for words in given}}
    assert [words for words in given if not accepted(parsers[words[0]], words[1:])] == []
    assert len(given) > 100


def test_each_script_has_a_command_on_a_page():
    pages = "\n".join(page.read_text(encoding="utf8") for page in FOLDER.rglob("README.md"))
    assert [name for name in map(module_of, SCRIPTS) if f"python -m {name}" not in pages] == []


def test_commands_of_the_package_accept_the_arguments_on_the_pages():
    wrong = []
    for given in of("python", "-m", "spacy_psa"):
        command, words = typer.main.get_command(app), given
        while hasattr(command, "commands"):
            command, words = command.commands[words[0]], words[1:]
        parser = command.make_parser(typer.Context(command))
        values, rest, _ = parser.parse_args(list(words))
        missing = [
            parameter.name
            for parameter in command.params
            if parameter.required and values.get(parameter.name) in (None, ())
        ]
        if rest or missing:
            wrong.append(given)
    assert wrong == []


def test_configs_merge_with_the_settings_on_the_pages(tmp_path):
    merged = of("python", "-m", "spacy_psa", "merge-config")
    for number, (base, settings, _, *values) in enumerate(merged):
        merge_config(ROOT / base, ROOT / settings, tmp_path / f"{number}.cfg", values)
    assert len(list(tmp_path.iterdir())) == len(merged) > 10


def projects():
    """Of each `spacy project run`: the variables that it sets."""
    for words in of("python", "-m", "spacy", "project", "run"):
        options = words[2:]
        assert words[1] == "." and len(options) % 2 == 0, words
        yield {key.removeprefix("--vars."): v for key, v in zip(options[::2], options[1::2])}


def test_variables_and_settings_of_projects_are_there(tmp_path):
    known = srsly.read_yaml(ROOT / "project.yml")["vars"]
    for number, chosen in enumerate(projects()):
        assert set(chosen) <= set(known), chosen
        values = {**known, **chosen}
        merge_config(
            CONFIGS / values["task"] / f"{values['config'] or 'psa'}.cfg",
            CONFIGS / "corpora" / f"{values['corpus']}.cfg",
            tmp_path / f"{number}.cfg",
            values["set"].split(),
        )
    assert len(list(tmp_path.iterdir())) > 5


def test_overrides_of_trainings_are_settings_of_their_configs():
    trained = [w for w in of("python", "-m", "spacy", "train") if w[0].startswith("configs")]
    assert trained
    for words in trained:
        assert words[1] == "--output"
        overrides = parse_config_overrides(list(words[3:]))
        assert overrides
        config = load_config(ROOT / words[0], overrides=overrides, interpolate=False)
        for key, value in overrides.items():
            place = config
            for part in key.split("."):
                place = place[part]
            assert place == value, words
        config.interpolate()
