"""The commands of the documentation: checked without running them, or run in this process."""

import importlib.util
import re
import runpy
import shlex
import sys
from functools import cache
from itertools import dropwhile
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, patch

import srsly
import typer

from spacy_psa.studio.server.serve import open_socket
from tests.helpers.paths import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NOT_RUN = {
    "uses the network": r"pip |.*(push|python -m spacy project) |curl ",
    "needs a GPU": r".*--gpu-id ",
    "needs Ray or torchrun": r".*(--engine ray|torchrun) ",
    "trains several models": r".*(\$seed|jackknife|teach-label|distill|--folds|spacy-psa search) ?"
    r"|spacy-psa (experiment run|ensemble seed|report joined) ?",
    "needs a licensed corpus": r".* convert ontonotes ",
    "needs hundreds of documents": r".*(calibrate .*--recall|annotate promising_model) ?",
    "needs a trained FactoredTransformer.v1": r".* analyze parser ",
    "needs a corpus of nested spans": r".* train configs/spans/",
    "is run by test_from_spacy.py": r"python -m spacy train config\.cfg ",
    "builds this documentation": r"zensical |python -m docs\.generate|python docs/figures/",
}
"""Commands that are only checked, by the reason; all others run, and all of a "slow" block."""
TRAINS = re.compile(r"(spacy-psa|python -m spacy(_psa)?) train ")
ONE_STEP = " --training.max_steps 1 --training.eval_frequency 1"
# Commands that prepare the reader's terminal, or that are not ours.
UNCHECKED = ("python -m venv", ". ", "git clone", "cd ", "curl ", "for ", "done")


class BadCommand(AssertionError):
    """A command of the documentation that cannot work."""


def check(line: str) -> None:
    """Check a command line: the command, its options, and the settings and extras in it.

    Raises:
        BadCommand: with the reason.
    """
    if line.startswith(UNCHECKED):
        return
    try:
        _check(_without_variables(shlex.split(line, comments=True)))
    except BadCommand as error:
        raise BadCommand(f"{line}: {error}") from error


def reason_not_to_run(line: str) -> str | None:
    """Why a command line is only checked."""
    return next((why for why, pattern in NOT_RUN.items() if re.match(pattern, line)), None)


def run(line: str, steps: str = ONE_STEP) -> None:
    """Run a command line of the documentation in this process.

    A server ends when it is ready, and a training after its first step.

    Raises:
        BadCommand: if it fails.
    """
    check(line)
    free = patch.multiple(
        "spacy_psa.studio.server.serve",
        run=DEFAULT,
        open_socket=lambda host, port: open_socket(host, 0),  # several processes run tests
    )
    with free:
        _run(line + steps if TRAINS.match(line) else line)


def _run(line: str) -> None:
    words = shlex.split(line, comments=True)
    if line.startswith(UNCHECKED) or "--help" in words:
        return
    if words[0] == "spacy-psa":
        words = ["python", "-m", "spacy_psa", *words[1:]]
    if words[1] == "-m" and words[2] in ("spacy", "spacy_psa"):
        try:
            code = group(words[2]).main(words[3:], standalone_mode=False)
        except SystemExit as end:
            code = end.code
        if code not in (None, 0):
            raise BadCommand(f"{line}: exit code {code}")
    else:
        _run_python(words[1:])


@cache
def group(module: str) -> Any:
    """The commands of `python -m spacy` or `python -m spacy_psa`."""
    if module == "spacy":
        import spacy.cli  # noqa: F401 - it adds the commands
        from spacy.cli._util import app
    else:
        from spacy_psa.app import app
    return typer.main.get_command(app)


def _without_variables(words: list[str]) -> list[str]:
    """Leave out NAME=VALUE before a command."""
    return list(dropwhile(re.compile(r"[A-Z_]+=").match, words))


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


def _check(words: list[str]) -> None:
    if words[0] == "torchrun":
        _check_torchrun(words[: words.index("-m")])
        words = ["python", *words[words.index("-m") :]]
    if words[0] == "spacy-psa":
        words = ["python", "-m", "spacy_psa", *words[1:]]
    if words[:2] == ["pip", "install"]:
        _check_extras(words)
    elif words[:3] == ["python", "-m", "spacy_psa"]:
        _check_ours(words[3:])
    elif words[:4] == ["python", "-m", "spacy", "project"]:
        _check_project(words[4:])
    elif words[:3] == ["python", "-m", "spacy"]:
        _check_spacy(words[3:])
    elif words[:2] == ["python", "-m"]:
        if importlib.util.find_spec(words[2]) is None:
            raise BadCommand(f"there is no module {words[2]}")
    elif words[0] == "python" and words[1].endswith(".py"):
        if not Path(words[1]).is_file() and not (ROOT / words[1]).is_file():
            raise BadCommand(f"there is no file {words[1]}")
    elif words[0] != "zensical":
        raise BadCommand("a command that the test does not know")


def _check_torchrun(words: list[str]) -> None:
    from torch.distributed.run import get_args_parser

    try:
        get_args_parser().parse_args([*words[1:], "script"])
    except SystemExit as end:
        raise BadCommand("an option that torchrun does not know") from end


def _check_extras(words: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    for word in words[2:]:
        for extras in re.findall(r"^(?:\.|spacy-psa)\[(.+)\]$", word):
            if unknown := {*extras.split(",")} - {*project["optional-dependencies"]}:
                raise BadCommand(f"there is no extra {unknown}")


def _command(module: str, words: list[str]) -> tuple[Any, list[str]]:
    """The command that some words begin with, and the other words."""
    command, rest = group(module), list(words)
    while hasattr(command, "commands") and rest[0] != "--help":
        if rest[0] not in command.commands:
            raise BadCommand(f"{module} has no command {rest[0]}")
        command = command.commands[rest.pop(0)]
    return command, rest


def _check_ours(words: list[str]) -> None:
    command, rest = _command("spacy_psa", words)
    if "--help" not in rest:
        try:
            command.make_context(command.name, rest)
        except Exception as error:
            raise BadCommand(str(error) or repr(error)) from error


def _check_project(words: list[str]) -> None:
    project: dict[str, Any] = srsly.read_yaml(ROOT / "project.yml")
    if words[0] not in ("run", "assets"):
        raise BadCommand(f"a project has no {words[0]}")
    if words[0] == "run":
        known = {*project["workflows"], *(command["name"] for command in project["commands"])}
        if words[1] not in known:
            raise BadCommand(f"there is no workflow or command {words[1]}")
    for word in words:
        if word.startswith("--vars.") and re.split("[.=]", word)[1] not in project["vars"]:
            raise BadCommand(f"there is no variable {word}")


def _check_spacy(words: list[str]) -> None:
    command, rest = _command("spacy", words)
    options = {name for parameter in command.params for name in parameter.opts}
    for word in rest:
        if word.startswith("--") and "." not in word and word.split("=")[0] not in options:
            raise BadCommand(f"{words[0]} has no option {word}")
    if words[0] == "train":
        _check_overrides(rest)


def _check_overrides(words: list[str]) -> None:
    from spacy.cli._util import parse_config_overrides
    from spacy.util import dot_to_object, load_config

    config = load_config(Path(words[0]), interpolate=False)
    named = [i for i, word in enumerate(words) if word.startswith("--") and "." in word]
    overrides = parse_config_overrides([word for i in named for word in words[i : i + 2]])
    for name in overrides:
        try:
            dot_to_object(config, name)
        except KeyError as error:
            raise BadCommand(f"the config has no setting {name}") from error
