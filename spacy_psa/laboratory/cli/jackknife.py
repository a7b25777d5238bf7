"""`spacy-psa jackknife`: predicted tags on training data, by taggers trained without it."""

from pathlib import Path
from typing import Annotated

import typer

from spacy_psa.cli.options import TrainingGpu
from spacy_psa.errors import InputError


def jackknife(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.cfg", help="Config of a tagger.")],
    source: Annotated[
        Path, typer.Argument(metavar="TRAIN.spacy", help="Training data with gold tags.")
    ],
    target: Annotated[
        Path, typer.Argument(metavar="OUT.spacy", help="The same with predicted tags.")
    ],
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed by which sentences are dealt.")] = 0,
    apply: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="IN.spacy", help="Also tag this file, by a tagger trained on all of TRAIN."
        ),
    ] = None,
    to: Annotated[
        list[Path] | None,
        typer.Option(metavar="OUT.spacy", help="File for the --apply in the same place."),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for the taggers; default: OUT without .spacy and with -folds.",
        ),
    ] = None,
    gpu_id: TrainingGpu = -1,
) -> None:
    """Predict the tags of training data by jackknifing.

    Deals the sentences of TRAIN.spacy into folds, those of a document into one. The tags of each
    fold are predicted by a tagger that is trained on the others. All other annotation stays. With
    --apply, a tagger that is trained on all of TRAIN tags development and test data.

    Further options override settings of CONFIG.cfg; --paths.dev names the data that chooses the
    best tagger of each training. After an interruption the same command continues, and finished
    folds are not trained again. The taggers stay in --work, which can be removed afterwards.

    \b
    Example:
      spacy-psa jackknife configs/tagger/bilstm_crf.cfg train.spacy train-tagged.spacy \\
          --apply dev.spacy --to dev-tagged.spacy --paths.dev dev.spacy
    """
    from spacy_psa.laboratory.jackknife import jackknife_files
    from spacy_psa.training.config import read_training_config

    inputs, outputs = apply or [], to or []
    if len(inputs) != len(outputs):
        raise InputError(
            f"{len(inputs)} --apply and {len(outputs)} --to: use one --to for each --apply"
        )
    files = [(source, target), *zip(inputs, outputs)]
    folder = work or target.with_name(f"{target.stem}-folds")
    settings = read_training_config(config, ctx.args)
    jackknife_files(config, settings, files, folder, folds, seed, typer.echo, gpu_id)
    typer.echo(f"The taggers are in {folder}, which can be removed")
