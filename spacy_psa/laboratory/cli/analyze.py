"""`spacy-psa analyze`: a trained pipeline as figures, pictures and JSON."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.cli.console import tell
from spacy_psa.cli.options import Model, Output, Pipe

if TYPE_CHECKING:
    from spacy_psa.laboratory.analyses.analyze import Analysis

analyze_app = typer.Typer(
    name="analyze",
    help="Analyse a trained pipeline. Each command writes JSON, PNG and SVG.",
    no_args_is_help=True,
)

Text = Annotated[str, typer.Argument(metavar="TEXT", help="A sentence.")]
Data = Annotated[Path, typer.Argument(metavar="DATA.spacy", help="Gold documents.")]


def _finish(analysis: "Analysis", output: Path) -> None:
    tell(analysis.messages)
    paths = analysis.write(output)
    typer.echo(f"Written: {', '.join(map(str, paths))}")


@analyze_app.command()
def attention(
    model: Model,
    text: Text,
    word: Annotated[str | None, typer.Option(help="Only draw what this word attends to.")] = None,
    pipe: Pipe = None,
    output: Output = Path("attention"),
) -> None:
    """Draw the attention over a sentence, by layer and head (Wei2020 Fig. 6, Li2019 Figs. 2, 3).

    A row has the attention of a token to each token. The encoder is a PSABiLSTM.v1, a
    SelfAttentiveBiLSTM.v1, a TENER.v1, a Transformer.v1 or a PSATransformer.v1.

    Writes OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze attention training/model-best "The door opened sharply ." --word opened
    """
    from spacy_psa.laboratory.analyses import analyze

    analysis = analyze.attention(model, text, word, pipe)
    if word is not None and (times := analysis.figures["words"].count(word)) > 1:
        typer.echo(f"--word {word}: is there {times} times; the first one is drawn", err=True)
    _finish(analysis, output)


@analyze_app.command()
def gates(model: Model, text: Text, pipe: Pipe = None, output: Output = Path("gates")) -> None:
    """Draw the mean gate of each token, by layer (Wei2020 Table 13).

    A gate is the share of a token's own features; its context has the rest. The encoder is a
    PSABiLSTM.v1. Writes OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze gates training/model-best "Results of Asian Cup matches"
    """
    from spacy_psa.laboratory.analyses import analyze

    _finish(analyze.gates(model, text, pipe), output)


@analyze_app.command()
def lengths(
    data: Data,
    models: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]MODEL...", help="Folders or packages of pipelines."),
    ],
    edge: Annotated[
        list[int] | None,
        typer.Option(help="Least tokens of a bin; may be repeated; default: 5, 10, 20, 30, 40."),
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="The score, such as ents_f; default: the first there is.")
    ] = None,
    output: Output = Path("lengths"),
) -> None:
    """Draw the score of pipelines by the length of sentences (Wei2020 Fig. 4).

    Writes OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze lengths test.spacy psa=psa/model-best base=bilstm_crf/model-best
    """
    from spacy_psa.laboratory.analyses import analyze
    from spacy_psa.laboratory.performance.pipelines import named_rows

    _finish(analyze.lengths(data, named_rows(models), edge, score), output)


@analyze_app.command()
def convergence(
    logs: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]LOG.jsonl...", help="Logs of spacy.ConsoleLogger.v3."),
    ],
    output: Output = Path("convergence"),
) -> None:
    """Draw the development scores of trainings against epochs (Yan2019 Fig. 5).

    The figures have the epochs after which each training reaches 90, 95 and 99% of its best score.
    Writes OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze convergence tener=tener/log.jsonl bilstm=bilstm/log.jsonl
    """
    from spacy_psa.laboratory.analyses import analyze
    from spacy_psa.laboratory.performance.pipelines import named_rows

    _finish(analyze.convergence(named_rows(logs)), output)


@analyze_app.command()
def blocks(model: Model, data: Data, pipe: Pipe = None, output: Output = Path("blocks")) -> None:
    """Replace states and heads with zeros, and draw the recalls (Li2019 Tables 3 and 4).

    The encoder is a SelfAttentiveBiLSTM.v1: H are its states, C its heads; with only H or C1, all
    others are 0. Recalls are by token, of the places in an entity and of the types. Writes
    OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze blocks training/model-best dev.spacy
    """
    from spacy_psa.laboratory.analyses import analyze

    _finish(analyze.blocks(model, data, pipe), output)


@analyze_app.command()
def parser(
    model: Model,
    data: Data,
    gold_tags: Annotated[
        bool, typer.Option("--gold-tags", help="Parse with the parts of speech of DATA.")
    ] = False,
    window: Annotated[
        list[int] | None,
        typer.Option(help="Window, tokens; may be repeated; default: 5, 10, 15, 20, 30, 40."),
    ] = None,
    pipe: Pipe = None,
    output: Output = Path("parser"),
) -> None:
    """Score a parser without content or position, and in windows (Kitaev2018 Tables 1 and 2).

    The encoder is a FactoredTransformer.v1; nothing is trained again. For Table 3 train a config
    with each window, as a grid of `spacy-psa experiment run`. Writes OUTPUT.json, OUTPUT.png and
    OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze parser training/model-best dev.spacy
    """
    from spacy_psa.laboratory.analyses import analyze

    _finish(analyze.parser(model, data, gold_tags, window, pipe), output)


@analyze_app.command()
def positions(
    width: Annotated[
        list[int] | None,
        typer.Option(help="Width of an encoding; may be repeated; default: 128, 256, 512."),
    ] = None,
    distance: Annotated[int, typer.Option(min=1, help="Largest distance.")] = 50,
    output: Output = Path("positions"),
) -> None:
    """Draw products of sinusoidal position encodings by distance (Yan2019 Figs. 3 and 4).

    The product of two encodings depends on the distance, but not on the direction; with a random
    projection between them it depends on neither. Writes OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze positions --width 128 --width 512 --distance 100
    """
    from spacy_psa.laboratory.analyses import analyze

    _finish(analyze.positions(width or [128, 256, 512], distance), output)
