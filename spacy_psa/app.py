"""The command line: `spacy-psa`, `python -m spacy_psa` and `python -m spacy psa`.

The app has the commands of the library, the studio and the laboratory. Each command has a file in
the `cli/` of its wing, which imports everything except Typer when it runs, so that `--help` is
fast.
"""

import atexit
import gc
import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spacy_psa import __version__
from spacy_psa.cli import commands as library
from spacy_psa.cli.groups import RESEARCH, USE, YOUR_DATA
from spacy_psa.entry_points import leave_out_commands, leave_out_torch
from spacy_psa.errors import InputError
from spacy_psa.laboratory.cli import commands as laboratory
from spacy_psa.studio.cli import commands as studio

COMMANDS = [*library.COMMANDS, *studio.COMMANDS, *laboratory.COMMANDS]
WITHOUT_TORCH = ["init", "corpus"], ["debug", "data"], ["convert"]
"""The commands that only read and write data."""
ADDRESSES = 5 * 2**28
"""The bytes of address space that torch and numba need; with fewer, LLVM aborts the process."""
_ITS = "pipelines of this package work with it"
OF_SPACY = {
    "evaluate": "`spacy-psa report` has more figures, with intervals",
    "apply": "`spacy-psa annotate` reads and writes more formats",
    "find-threshold": "the setting decode = 'threshold' chooses by probability",
    **dict.fromkeys(("project", "assemble", "pretrain", "download", "info", "validate"), _ITS),
}
"""Commands of spaCy that users look for here, and the way to the same end."""
SIGNALS = "SIGTERM", "SIGHUP"  # Windows has no SIGHUP


class Commands(TyperGroup):
    """Shows the commands in groups, and prints an `InputError` as one line, with exit code 2.

    The group does this, not `main`, so that `python -m spacy psa` does the same.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            with ended_by_signals():
                return super().invoke(ctx)
        except InputError as error:
            typer.echo(f"error: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from error

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; the name of a command of spaCy is an error that names the one to use."""
        if args and args[0] in OF_SPACY and args[0] not in self.commands:
            raise InputError(
                f"{args[0]} is a command of spaCy: python -m spacy {args[0]}; {OF_SPACY[args[0]]}"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group; Typer itself has groups in Rich's boxes only."""
        width = formatter.width - 6 - max(map(len, self.commands))
        for group in (YOUR_DATA, USE, RESEARCH):
            names = [
                name_of(each) for held, commands in COMMANDS if held == group for each in commands
            ]
            with formatter.section(group):
                formatter.write_dl(
                    [(name, self.commands[name].get_short_help_str(width)) for name in names]
                )


def name_of(command: typer.Typer | Callable[..., None]) -> str:
    """Return the name of a command, or of an app with several, as it is typed."""
    if isinstance(command, typer.Typer):
        return str(command.info.name)
    return command.__name__.replace("_", "-")


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end this block by `SystemExit`, so that temporary files are removed.

    A signal that is ignored, as under nohup, or that has another handler, keeps its effect.
    """
    process = os.getpid()

    def end(number: int, _: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != process:  # a forked worker, which has nothing to remove
            os.kill(os.getpid(), number)
        raise SystemExit(128 + number)

    if current_thread() is not main_thread():  # other threads cannot set handlers
        yield
        return
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


app = typer.Typer(
    name="spacy-psa",
    help="""
    Train, run and measure CRF taggers and constituency parsers for spaCy.

    \b
    Example:
      spacy-psa init corpus my_files corpus
      spacy-psa init config config.cfg --train corpus/train.spacy --dev corpus/dev.spacy
      spacy-psa train config.cfg --output training
      spacy-psa annotate training/model-best texts.txt annotated.jsonl
    """,
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spacy-psa {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options before the command."""
    if not ("--help" in sys.argv or _is_without_torch()):
        _check_addresses()


def _is_without_torch() -> bool:
    return any(sys.argv[1 : 1 + len(words)] == words for words in WITHOUT_TORCH)


def _check_addresses() -> None:
    try:
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit
    except ModuleNotFoundError:  # Windows
        return
    limit = getrlimit(RLIMIT_AS)[0]
    if limit != RLIM_INFINITY and limit < ADDRESSES:
        raise InputError(
            f"this process may use {limit / 2**30:.2f} GB of address space (ulimit -v), and torch "
            f"and numba need {ADDRESSES / 2**30:.2f} GB: raise the limit"
        )


for _, commands in COMMANDS:
    for command in commands:
        if isinstance(command, typer.Typer):
            app.add_typer(command)
            continue
        further = "ctx" in inspect.signature(command).parameters  # settings of a config
        settings = {"allow_extra_args": further, "ignore_unknown_options": further}
        app.command(context_settings=settings)(command)


def main() -> None:
    """Run the console script `spacy-psa`."""
    atexit.register(gc.freeze)  # else Python searches all that torch has for garbage as it ends
    leave_out_commands()
    if _is_without_torch():
        leave_out_torch()
    app(prog_name="spacy-psa")
