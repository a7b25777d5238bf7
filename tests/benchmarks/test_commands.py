"""The commands on the pages of benchmarks/ can be given: their scripts, options and settings are
there."""

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
from spacy_psa.cli.merge_config import merge_config
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
    known = [["python", "-m", "spacy_psa"], ["python", "-m", "spacy"], ["mv"]]
    other = [
        words
        for _, words in COMMANDS
        if not any(words[: len(start)] == start for start in known)
        and not (words[:2] == ["python", "-m"] and words[2].startswith("benchmarks."))
    ]
    assert other == [] and len(COMMANDS) > 30


@pytest.mark.parametrize("path", SCRIPTS, ids=module_of)
def test_a_script_has_help_and_names_itself(path, capsys, monkeypatch):
    name = module_of(path)
    script = importlib.import_module(name)
    parser = script.parser()
    with pytest.raises(SystemExit) as end:
        parser.parse_args(["--help"])
    told = capsys.readouterr().out
    assert end.value.code == 0 and f"usage: python -m {name}" in told
    assert script.__doc__.splitlines()[0] in told


@pytest.mark.parametrize(
    "script, usage",
    [
        ("speed/flair_worker.py", "FOLDER THREADS"),
        ("parser_speed/supar_worker.py", "TREES.json THREADS PARAMETERS"),
    ],
)
def test_the_worker_for_a_peer_has_help_without_the_peer(script, usage):
    done = subprocess.run(
        [sys.executable, FOLDER / script, "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0 and usage in done.stdout


@pytest.mark.parametrize("name", ["benchmarks.record", "benchmarks.tables"])
def test_shared_modules_import_from_the_root_alone(name):
    done = subprocess.run(
        [sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def benchmark_commands():
    return [
        words[2:]
        for _, words in COMMANDS
        if words[:2] == ["python", "-m"] and words[2].startswith("benchmarks.")
    ]


@pytest.mark.parametrize("words", benchmark_commands(), ids=lambda words: " ".join(words)[:60])
def test_scripts_take_the_arguments_on_the_pages(words):
    importlib.import_module(words[0]).parser().parse_args(words[1:])


def test_each_script_has_a_command_on_a_page():
    pages = "\n".join(page.read_text(encoding="utf8") for page in FOLDER.rglob("README.md"))
    assert [name for name in map(module_of, SCRIPTS) if f"python -m {name}" not in pages] == []


@pytest.mark.parametrize("words", of("python", "-m", "spacy_psa"), ids=" ".join)
def test_commands_of_the_package_take_the_arguments_on_the_pages(words):
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    context = typer.Context(command)
    values, rest, _ = command.make_parser(context).parse_args(list(words))
    assert rest == []
    missing = [
        parameter.name
        for parameter in command.params
        if parameter.required and values.get(parameter.name) in (None, ())
    ]
    assert missing == []


@pytest.mark.parametrize(
    "words", of("python", "-m", "spacy_psa", "merge-config"), ids=lambda words: words[2]
)
def test_configs_merge_with_the_settings_on_the_pages(words, tmp_path):
    base, settings, _, *values = words
    merge_config(ROOT / base, ROOT / settings, tmp_path / "config.cfg", values)
    assert (tmp_path / "config.cfg").exists()


def projects():
    """Of each `spacy project run`: the variables that it sets."""
    found = []
    for words in of("python", "-m", "spacy", "project", "run"):
        options = words[2:]
        assert words[1] == "." and len(options) % 2 == 0, words
        found.append(dict(zip(options[::2], options[1::2])))
    return found


@pytest.mark.parametrize("options", projects(), ids=str)
def test_variables_and_settings_of_projects_are_there(options, tmp_path):
    known = srsly.read_yaml(ROOT / "project.yml")["vars"]
    chosen = {key.removeprefix("--vars."): value for key, value in options.items()}
    assert set(chosen) <= set(known)
    values = {**known, **chosen}
    merge_config(
        CONFIGS / values["task"] / f"{values['config']}.cfg",
        CONFIGS / "corpora" / f"{values['corpus']}.cfg",
        tmp_path / "config.cfg",
        values["set"].split(),
    )
    assert (tmp_path / "config.cfg").exists()


@pytest.mark.parametrize(
    "words",
    [words for words in of("python", "-m", "spacy", "train") if words[0].startswith("configs")],
    ids=lambda words: words[2],
)
def test_overrides_of_trainings_are_settings_of_their_configs(words):
    assert words[1] == "--output"
    overrides = parse_config_overrides(list(words[3:]))
    assert overrides
    config = load_config(ROOT / words[0], overrides=overrides, interpolate=False)
    for key, value in overrides.items():
        place = config
        for part in key.split("."):
            place = place[part]
        assert place == value
    config.interpolate()
