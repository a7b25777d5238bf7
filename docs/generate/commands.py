"""The page of the commands of `spacy-psa`, from their functions."""

import inspect
import typing
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import Any, NamedTuple

import typer
from typer.models import ArgumentInfo, OptionInfo

from docs.generate.markdown import NOTE, kind, table, value

SKIPPED = {"ctx", "context"}


class Command(NamedTuple):
    """A command.

    Attributes:
        name: its name after `spacy-psa`.
        function: the function that it runs.
        extra: whether it accepts options that it does not declare.
    """

    name: str
    function: Callable[..., Any]
    extra: bool = False


def commands(app: typer.Typer | None = None, before: str = "") -> Iterator[Command]:
    """All commands of an app and of the apps in it; by default of `spacy-psa`."""
    if app is None:
        from spacy_psa.app import app as whole

        app = whole
    for info in app.registered_commands:
        if info.hidden or info.callback is None:
            continue
        name = info.name or info.callback.__name__.replace("_", "-")
        extra = bool((info.context_settings or {}).get("allow_extra_args"))
        yield Command(f"{before}{name}", info.callback, extra)
    for group in app.registered_groups:
        inside = group.typer_instance
        if inside is None:
            continue
        name = inside.info.name if isinstance(inside.info.name, str) else group.name
        yield from commands(inside, f"{before}{name} ")


def page() -> str:
    """The page of all commands."""
    everything = sorted(commands(), key=lambda command: command.name)
    parts = [
        NOTE,
        "# Commands",
        "`spacy-psa COMMAND` and `python -m spacy psa COMMAND` are the same. "
        "`spacy-psa COMMAND --help` prints the text of this page.",
        table(
            ("command", "what it does"),
            [
                (f"[`{c.name}`](#{_anchor(c.name)})", _help(c.function).split("\n\n")[0])
                for c in everything
            ],
        ),
        "## Exit codes",
        table(
            ("code", "meaning"),
            [
                ("0", "The command succeeded."),
                ("1", "No document could be annotated, a training failed, or another error."),
                ("2", "The input or an option is wrong. A line on stderr explains what to do."),
            ],
        ),
    ]
    parts += [_section(command) for command in everything]
    return "\n\n".join(parts) + "\n"


def _section(command: Command) -> str:
    arguments, options = [], []
    for parameter, info in _parameters(command.function):
        if isinstance(info, ArgumentInfo):
            name = info.metavar or parameter.name.upper()
            what = _escaped(info.help or "")
            optional = "required" if parameter.default is Parameter.empty else "optional"
            arguments.append((f"`{name}`", _kind(parameter), optional, what))
        else:
            default = "" if parameter.default is None else value(parameter.default)
            what = _escaped(info.help or "")
            options.append((_names(parameter, info), _kind(parameter), default, what))
    metavars = " ".join(row[0].strip("`") for row in arguments)
    extra = " [--SECTION.NAME VALUE]..." if command.extra else ""
    place = f'{_anchor(command.name)} data-toc-label="{command.name}"'
    usage = f"spacy-psa {command.name} [OPTIONS] {metavars}{extra}".strip()
    parts = [
        f"## `spacy-psa {command.name}` {{ #{place} }}",
        f"```text\n{usage}\n```",
        _help(command.function),
        table(("argument", "type", "", "meaning"), arguments),
        table(("option", "type", "default", "meaning"), options),
    ]
    return "\n\n".join(part for part in parts if part)


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[Parameter, Any]]:
    """The arguments and options of a command, with their metadata from typer."""
    hints = typing.get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in SKIPPED:
            continue
        plain, *extras = typing.get_args(hints[parameter.name]) or (hints[parameter.name],)
        infos = [extra for extra in extras if isinstance(extra, (ArgumentInfo, OptionInfo))]
        if not infos:
            raise TypeError(f"{function.__name__}: {parameter.name} has no help")
        yield parameter.replace(annotation=plain), infos[0]


def _names(parameter: Parameter, info: OptionInfo) -> str:
    # In an annotation, typer uses the first name as the default.
    first = [info.default] if isinstance(info.default, str) else []
    declared = [*first, *(info.param_decls or ())] or [f"--{parameter.name.replace('_', '-')}"]
    return ", ".join(f"`{name}`" for name in declared)


def _kind(parameter: Parameter) -> str:
    return kind(parameter.annotation).replace(" or null", "").replace('"', "")


def _help(function: Callable[..., Any]) -> str:
    """The docstring as Markdown: examples as code, special characters escaped."""
    text = inspect.getdoc(function) or ""
    return "\n\n".join(map(_paragraph, text.split("\n\n")))


def _paragraph(text: str) -> str:
    # After this sign typer keeps lines as they are.
    if not text.lstrip().startswith("\b"):
        return _escaped(" ".join(text.split()))
    lines = [line for line in text.replace("\b", "").splitlines() if line.strip()]
    indented = [line for line in lines if line.startswith(" ")]
    title = [line.strip() for line in lines if not line.startswith(" ")]
    code = inspect.cleandoc("\n".join(["", *indented]))
    return "\n\n".join([_escaped(" ".join(title)), f"```bash\n{code}\n```"])


def _escaped(text: str) -> str:
    """Text outside of `code` without signs of Markdown."""
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        for sign in ("*", "[", "]", "<", "_"):
            parts[i] = parts[i].replace(sign, f"\\{sign}")
    return "`".join(parts)


def _anchor(name: str) -> str:
    return name.replace(" ", "-")
