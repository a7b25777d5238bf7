"""`spacy-psa find-errors` and `correct`: annotation that is probably wrong, and its correction."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_psa.cli.console import print_table, watched
from spacy_psa.cli.options import TrainingGpu
from spacy_psa.errors import InputError

HEADS = ["chance", "kind", "doc", "annotated", "proposed"]
Corpus = Annotated[Path, typer.Argument(metavar="CORPUS.spacy", help="Annotated documents.")]


def find_errors(
    ctx: typer.Context,
    corpus: Corpus,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File for the probable errors (JSON lines).")
    ] = Path("errors.jsonl"),
    model: Annotated[
        str | None, typer.Option(help="Pipeline that has not learned from CORPUS.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Training config, to train a pipeline for each fold.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 5,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at a time.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed by which documents are dealt.")] = 0,
    work: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for the trainings; default: OUTPUT-folds."),
    ] = None,
    pipe: Annotated[str | None, typer.Option(help="Component that has the annotation.")] = None,
    top: Annotated[int, typer.Option(min=0, help="Rows to print.")] = 20,
    gpu_id: TrainingGpu = -1,
) -> None:
    """Find annotation that is probably wrong.

    Compares the annotation of CORPUS.spacy with the exact probabilities of a pipeline: entities,
    chunks, tags or trees. OUTPUT gets what is probably missed, invented, or has wrong bounds or a
    wrong type, each with its best correction, the most suspicious first.

    With --config, the documents are dealt into folds, and each is judged by a pipeline that is
    trained on the others. Further options override settings of the config; --paths.dev names
    development data. After an interruption the same command continues.

    \b
    Examples:
      spacy-psa find-errors train.spacy --config config.cfg --paths.dev dev.spacy --jobs 2
      spacy-psa find-errors test.spacy --model training/model-best
    """
    from spacy_psa.laboratory.find_errors import by_model, check_component, table, train_folds
    from spacy_psa.laboratory.find_errors import find_errors as find
    from spacy_psa.training.config import read_training_config

    if (model is None) == (config is None):
        raise InputError("use --model PIPELINE or --config CONFIG.cfg")
    if config is None:
        if ctx.args:
            raise InputError(f"{ctx.args[0]}: settings are for --config, not for --model")
        for name in ("folds", "jobs", "seed", "work"):
            source = ctx.get_parameter_source(name)
            if source and source.name == "COMMANDLINE":
                raise InputError(f"--{name}: is for --config, not for --model; leave it out")
        of_folds = by_model(str(model))
    else:
        settings = read_training_config(config, ctx.args)
        check_component(config, settings, pipe)
        folder = work or output.with_name(f"{output.stem}-folds")
        options: dict[str, Any] = {"folds": folds, "seed": seed, "jobs": jobs, "gpu_id": gpu_id}
        of_folds = partial(train_folds, config=settings, folder=folder, tell=typer.echo, **options)
    rows, result, asked = find(corpus, output, of_folds, pipe, gpu_id, watched)
    for number, reason in result.failed:
        typer.echo(f"{corpus}, document {number}: {reason}", err=True)
    if result.bare:
        typer.echo(f"{corpus}: {result.bare:,} documents without annotation: left out", err=True)
    print_table(HEADS, table(rows[:top]))
    typer.echo(f"{output}: {len(rows):,} places where the annotation may be wrong")
    typer.echo(f"Next: spacy-psa serve {asked} --review {output}")


def correct(
    corpus: Corpus,
    errors: Annotated[
        Path, typer.Argument(metavar="ERRORS.jsonl", help="The file of `find-errors`.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT.spacy", help="File to write.")],
    above: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Also accept what nobody decided, from this chance."),
    ] = None,
) -> None:
    """Write a corpus with the accepted corrections.

    The decisions are those of `spacy-psa serve --review`. OUT.log.jsonl lists what was changed.

    \b
    Example:
      spacy-psa correct train.spacy errors.jsonl corrected.spacy
    """
    from spacy_psa.laboratory.find_errors import correct_file

    done = correct_file(corpus, errors, target, above)
    log = target.with_suffix(".log.jsonl")
    typer.echo(f"{corpus} -> {target}: {len(done):,} corrections, see {log}")
