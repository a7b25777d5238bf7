"""The Typer app with all commands."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spacy_psa import __version__
from spacy_psa.cli.analyze import analyze_app
from spacy_psa.cli.annotate import annotate
from spacy_psa.cli.assets import assets
from spacy_psa.cli.benchmark import benchmark_app
from spacy_psa.cli.calibrate import calibrate
from spacy_psa.cli.compare import compare
from spacy_psa.cli.configure import configure
from spacy_psa.cli.convert import convert_app
from spacy_psa.cli.debug_data import debug_data
from spacy_psa.cli.describe import describe
from spacy_psa.cli.distill import distill
from spacy_psa.cli.ensemble import ensemble
from spacy_psa.cli.evaluate_trees import evaluate_trees
from spacy_psa.cli.experiment import experiment_app
from spacy_psa.cli.export_annotations import export_annotations
from spacy_psa.cli.init_config import init_config
from spacy_psa.cli.init_corpus import init_corpus
from spacy_psa.cli.jackknife import jackknife
from spacy_psa.cli.merge_config import merge_config
from spacy_psa.cli.parse import parse, trees
from spacy_psa.cli.prepare import prepare
from spacy_psa.cli.profile import profile
from spacy_psa.cli.push import push
from spacy_psa.cli.quantize import quantize
from spacy_psa.cli.report import report
from spacy_psa.cli.search import search
from spacy_psa.cli.serve import serve
from spacy_psa.cli.termination import ended_by_signals
from spacy_psa.cli.train import train
from spacy_psa.cli.visualize import visualize_app
from spacy_psa.errors import InputError


class OneLineErrors(TyperGroup):
    """Prints an `InputError` as one line on stderr and exits with code 2.

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


app = typer.Typer(
    name="spacy-psa",
    help="""
    Train, run and measure CRF taggers and constituency parsers for spaCy.

    \b
    Example:
      spacy-psa convert conll2003 eng.train train.spacy
      spacy-psa convert conll2003 eng.testa dev.spacy
      spacy-psa train configs/ner/psa.cfg --output training \\
          --paths.train train.spacy --paths.dev dev.spacy
      spacy-psa annotate training/model-best texts.txt annotated.jsonl
    """,
    cls=OneLineErrors,
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
    """Options that stand before the command."""


init_app = typer.Typer(
    name="init", help="Make a corpus and a config of your own data.", no_args_is_help=True
)
init_app.command("corpus")(init_corpus)
init_app.command("config")(init_config)
debug_app = typer.Typer(name="debug", help="Look into data.", no_args_is_help=True)
debug_app.callback()(lambda: None)
debug_app.command("data")(debug_data)
benchmark_app.command("profile")(profile)

app.add_typer(init_app)
app.add_typer(convert_app)
app.add_typer(debug_app)
app.add_typer(visualize_app)
app.add_typer(benchmark_app)
app.add_typer(experiment_app)
app.add_typer(analyze_app)
app.command()(annotate)
app.command()(parse)
app.command()(trees)
app.command()(serve)
app.command()(export_annotations)
app.command()(report)
app.command()(compare)
app.command()(ensemble)
app.command()(describe)
app.command()(push)
app.command()(calibrate)
app.command()(quantize)
app.command()(evaluate_trees)
app.command()(assets)
app.command()(prepare)
app.command()(merge_config)
app.command()(configure)
for command in (distill, jackknife, search, train):  # which take settings of a config as options
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
        command
    )


def main() -> None:
    """Run the console script `spacy-psa`."""
    app(prog_name="spacy-psa")
