"""Commands of `spacy-psa`, in this process."""

from collections.abc import Callable
from functools import cache

from typer import testing
from typer.testing import CliRunner, Result

from spacy_psa.app import app
from spacy_psa.cli.convert import convert_app
from spacy_psa.errors import InputError

# Otherwise, Typer builds all commands of an app again for each one that runs.
testing._get_command = cache(testing._get_command)


def command(*name: str) -> Callable[..., Result]:
    """A function that runs one command with its arguments."""

    def run(*arguments: object, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [*name, *map(str, arguments)], input=stdin)

    return run


def convert(*arguments: object) -> Result:
    """Run `convert`; an InputError is raised."""
    result = CliRunner().invoke(convert_app, [str(argument) for argument in arguments])
    if isinstance(result.exception, InputError):
        raise result.exception
    return result


def succeed(result: Result) -> Result:
    """The result of a command, which has succeeded."""
    assert result.exit_code == 0, result.output
    return result


def assert_one_error(result: Result, *reasons: str) -> None:
    """A command has failed with code 2 and one line, which names the reasons."""
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    for reason in reasons:
        assert reason in result.stderr
