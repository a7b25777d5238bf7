"""`spacy-psa jackknife`: predicted tags on training data, by taggers that have not seen it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spacy.language import Language
    from spacy.tokens import Doc


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
    gpu_id: Annotated[
        int, typer.Option("--gpu-id", "-g", min=-1, help="Number of the GPU; -1 for the CPU.")
    ] = -1,
) -> None:
    """Predict the tags of training data by n-fold jackknifing.

    Deals the sentences of TRAIN.spacy into folds, those of a document into one. The tags of each
    fold are predicted by a tagger that is trained on the others. All other annotation stays. With
    --apply, a tagger that is trained on all of TRAIN tags development and test data.

    Further options override settings of CONFIG.cfg; --paths.dev names the data that chooses the
    best tagger of each training. After an interruption the same command goes on, and finished folds
    are not trained again. The taggers stay in --work, which can be removed afterwards.

    \b
    Example:
      spacy-psa jackknife configs/tagger/bilstm_crf.cfg train.spacy train-tagged.spacy \\
          --apply dev.spacy --to dev-tagged.spacy --paths.dev dev.spacy
    """
    from spacy_psa.corpora.docbin import check_docbin_path, write_docbin
    from spacy_psa.laboratory import jackknife as knife
    from spacy_psa.loading import use_device
    from spacy_psa.training.config import read_training_config

    inputs, outputs = apply or [], to or []
    if len(inputs) != len(outputs):
        raise InputError(
            f"{len(inputs)} --apply and {len(outputs)} --to: give one --to for each --apply"
        )
    for path in (target, *outputs):
        check_docbin_path(path)
        if [other.resolve() for other in (target, *outputs)].count(path.resolve()) > 1:
            raise InputError(f"{path}: would be written twice; give each --to a file of its own")
        if path.resolve() in [read.resolve() for read in (source, *inputs)]:
            raise InputError(
                f"{path}: is read, too, and its gold tags would be lost; write to another"
            )
    settings = read_training_config(config, ctx.args)
    use_device(gpu_id)
    docs = knife.read_tagged(source)
    others = [knife.read_tagged(path) for path in inputs]
    folder = work or target.with_name(f"{target.stem}-folds")

    def tagger(name: str, part: "Sequence[Doc]") -> "Language":
        typer.echo(f"{name}: {len(part):,} sentences to learn from")
        return knife.train_tagger(config, settings, part, folder / name, gpu_id)

    whole = tagger("all", docs) if inputs else None
    settings = knife.without_label_check(settings)  # a fold may lack a label of development data
    tagged = knife.jackknife(docs, folds, seed, tagger, typer.echo)
    write_docbin(tagged.docs, target)
    typer.echo(f"{source} -> {target}: {tagged.share:.2%} of the tags are right")
    for path, part, out in zip(inputs, others, outputs):
        assert whole is not None  # since there are inputs
        found = knife.retag(whole, part)
        write_docbin(found.docs, out)
        typer.echo(f"{path} -> {out}: {found.share:.2%} of the tags are right")
    typer.echo(f"The taggers are in {folder}, which can be removed")
