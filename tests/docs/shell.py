"""The commands of the documentation: checked without running, or run in this process."""

import importlib.util
import re
import runpy
import shlex
import sys
from collections.abc import Callable
from inspect import Parameter
from itertools import dropwhile
from pathlib import Path
from typing import Any

import typer
from typer.models import ArgumentInfo

from docs.generate.commands import Command, _names, _parameters, commands

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
# Commands that prepare the reader's terminal.
UNCHECKED = ("python -m venv", ". ", "git clone", "cd ")


class BadCommand(AssertionError):
    """A command of the documentation that cannot work."""


def check(line: str) -> None:
    """Check a command line: the command, its options, and the settings and extras it names.

    Raises:
        BadCommand: with what is wrong.
    """
    if line.startswith(UNCHECKED):
        return
    words = _without_variables(shlex.split(line, comments=True))
    if words[0] == "torchrun":
        _check_torchrun(words[: words.index("-m")], line)
        words = ["python", *words[words.index("-m") :]]
    if words[0] == "pip":
        _check_pip(words, line)
    elif words[0] == "spacy-psa" or words[:3] == ["python", "-m", "spacy_psa"]:
        _check_ours(words[1 if words[0] == "spacy-psa" else 3 :], line)
    elif words[:4] == ["python", "-m", "spacy", "project"]:
        _check_project(words[4:], line)
    elif words[:3] == ["python", "-m", "spacy"]:
        _check_spacy(words[3:], line)
    elif words[:2] == ["python", "-m"]:
        if importlib.util.find_spec(words[2]) is None:
            raise BadCommand(f"{line}: there is no module {words[2]}")
    elif words[0] == "python" and words[1].endswith(".py"):
        if not Path(words[1]).is_file() and not (ROOT / words[1]).is_file():
            raise BadCommand(f"{line}: there is no file {words[1]}")
    elif words[0] == "zensical":
        return
    else:
        raise BadCommand(f"{line}: a command that the test does not know")


def run(line: str) -> None:
    """Run a command line of the documentation in this process.

    Raises:
        BadCommand: if it fails.
    """
    check(line)
    words = shlex.split(line, comments=True)
    if line.startswith(UNCHECKED) or words[0] in ("pip", "zensical") or "--help" in words:
        return
    if words[0] == "spacy-psa" or words[:3] == ["python", "-m", "spacy_psa"]:
        from spacy_psa.app import app

        _invoke(app, words[1 if words[0] == "spacy-psa" else 3 :], line)
    elif words[:3] == ["python", "-m", "spacy"]:
        import spacy.cli  # noqa: F401 - it adds the commands
        from spacy.cli._util import app as spacy_app

        _invoke(spacy_app, words[3:], line)
    else:
        _run_python(words[1:])


def _without_variables(words: list[str]) -> list[str]:
    """Leave out NAME=VALUE before a command."""
    return list(dropwhile(re.compile(r"[A-Z_]+=").match, words))


def _check_torchrun(words: list[str], line: str) -> None:
    from torch.distributed.run import get_args_parser

    try:
        get_args_parser().parse_args([*words[1:], "script"])
    except SystemExit as end:
        raise BadCommand(f"{line}: an option that torchrun does not know") from end


def _invoke(app: typer.Typer, words: list[str], line: str) -> None:
    try:
        code = typer.main.get_command(app).main(words, standalone_mode=False)
    except SystemExit as end:
        code = end.code
    if code not in (None, 0):
        raise BadCommand(f"{line}: exit code {code}")


def _run_python(words: list[str]) -> None:
    before = sys.argv
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    finally:
        sys.argv = before


def _check_pip(words: list[str], line: str) -> None:
    if words[1] != "install":
        raise BadCommand(f"{line}: pip only installs here")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    known = project["project"]["optional-dependencies"]
    for word in words[2:]:
        for extras in re.findall(r"^(?:\.|spacy-psa)\[(.+)\]$", word):
            for extra in extras.split(","):
                if extra not in known:
                    raise BadCommand(f"{line}: there is no extra {extra}")


def _check_ours(words: list[str], line: str) -> None:
    if words == ["--help"]:
        return
    found = _command(words)
    if found is None:
        raise BadCommand(f"{line}: there is no such command of spacy-psa")
    rest = words[len(found.name.split()) :]
    if "--help" in rest:
        return
    names: dict[str, Parameter] = {}
    required = optional = 0
    for parameter, info in _parameters(found.function):
        if isinstance(info, ArgumentInfo):
            many = "list" in str(parameter.annotation)
            required += parameter.default is Parameter.empty
            optional += 99 if many else parameter.default is not Parameter.empty
        else:
            for name in re.findall(r"`(-[^`]+)`", _names(parameter, info)):
                names[name] = parameter
    given = _positional(rest, names, found, line)
    if not required <= given <= required + optional:
        raise BadCommand(f"{line}: {given} arguments, not {required}")


def _positional(words: list[str], names: dict[str, Parameter], command: Command, line: str) -> int:
    """The number of arguments that are no options."""
    count, position = 0, 0
    while position < len(words):
        word = words[position]
        position += 1
        if not word.startswith("-") or word == "-":
            count += 1
            continue
        name = word.split("=")[0]
        if name not in names:
            if not command.extra:
                raise BadCommand(f"{line}: there is no option {name}")
            position += "=" not in word
        elif names[name].annotation is not bool:
            position += "=" not in word
    return count


def _command(words: list[str]) -> Command | None:
    for command in commands():
        parts = command.name.split()
        if words[: len(parts)] == parts:
            return command
    return None


def _check_project(words: list[str], line: str) -> None:
    import srsly

    project: dict[str, Any] = srsly.read_yaml(ROOT / "project.yml")
    if words[0] not in ("run", "assets"):
        raise BadCommand(f"{line}: a project has no {words[0]}")
    if words[0] == "run":
        known = {*project["workflows"], *(command["name"] for command in project["commands"])}
        if words[1] not in known:
            raise BadCommand(f"{line}: there is no workflow or command {words[1]}")
    for word in words:
        name = word.partition(".")[2].partition("=")[0]
        if word.startswith("--vars.") and name not in project["vars"]:
            raise BadCommand(f"{line}: there is no variable {word}")


def _check_spacy(words: list[str], line: str) -> None:
    known: dict[str, Callable[[list[str], str], None]] = {"train": _check_train}
    import spacy.cli  # noqa: F401 - it adds the commands
    from spacy.cli._util import app as spacy_app

    command: Any = typer.main.get_command(spacy_app)
    for depth, word in enumerate(words):
        if not hasattr(command, "commands"):
            break
        if word not in command.commands:
            raise BadCommand(f"{line}: spaCy has no command {' '.join(words[: depth + 1])}")
        command = command.commands[word]
    options = {name for parameter in command.params for name in parameter.opts}
    for word in words:
        if word.startswith("--") and "." not in word and word.split("=")[0] not in options:
            raise BadCommand(f"{line}: {words[0]} has no option {word}")
    if words[0] in known:
        known[words[0]](words[1:], line)


def _check_train(words: list[str], line: str) -> None:
    from spacy.cli._util import parse_config_overrides
    from spacy.util import dot_to_object, load_config

    config = load_config(Path(words[0]), interpolate=False)
    named = [i for i, word in enumerate(words) if word.startswith("--") and "." in word]
    overrides = parse_config_overrides([word for i in named for word in words[i : i + 2]])
    for name in overrides:
        try:
            dot_to_object(config, name)
        except KeyError as error:
            raise BadCommand(f"{line}: the config has no setting {name}") from error
