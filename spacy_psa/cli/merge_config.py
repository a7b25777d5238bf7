"""`spacy-psa merge-config`: one training config from those of a model and a corpus."""

from pathlib import Path
from typing import Annotated

import typer


def merge_config(
    base: Annotated[Path, typer.Argument(metavar="BASE.cfg", help="Complete training config.")],
    settings: Annotated[
        Path,
        typer.Argument(metavar="SETTINGS.cfg", help="Settings that replace those of BASE.cfg."),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT.cfg", help="Config to write.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings that replace those of both files."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="File to which the training logs its scores, as JSON lines.")
    ] = None,
) -> None:
    """Combine a training config with settings of a corpus.

    Writes OUT.cfg for `spacy train`: BASE.cfg, where the settings of SETTINGS.cfg and then those on
    the command line replace the original ones. Variables such as ${paths.train} stay variables. A
    section that BASE.cfg does not have is an error, because it would be a typing error; only
    [initialize.components.NAME] may be new.

    SETTINGS.cfg may have a section [corpus] with the number of training `sentences`, and of their
    `words` for a BASE.cfg whose batches are counted in words. Then OUT.cfg evaluates, stops and
    lowers the learning rate after the same numbers of epochs as BASE.cfg, but epochs of this
    corpus. With another training.max_epochs, it stops and has lowered the rate after that many
    epochs. BASE.cfg must evaluate once in each epoch.

    A VALUE is JSON, as for `spacy train`, or else a string. A section takes a JSON object, whose
    settings replace those of the section; if it names another function, it replaces the section.

    \b
    Example:
      spacy-psa merge-config configs/ner/psa.cfg configs/corpora/conll2003.cfg \\
          config.cfg training.max_epochs=3
    """
    from spacy_psa.corpora.atomic import atomic_path
    from spacy_psa.training.layers import assignments, layered, set_log

    merged = layered(base, [settings], assignments(values or []))
    if log is not None:
        set_log(merged, log)
    with atomic_path(target) as temporary:
        merged.to_disk(temporary, interpolate=False)
    typer.echo(f"{base} + {settings} -> {target}")
