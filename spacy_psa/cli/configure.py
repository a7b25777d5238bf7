"""`spacy-psa configure`: the training config of a project, for any corpus."""

import json
from pathlib import Path
from typing import Annotated

import typer

from spacy_psa.cli.init_config import TaskChoice, make_config, write_config
from spacy_psa.cli.merge_config import merge_config

CHECK = "check.json"


def configure(
    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help="Name of a corpus, or folder with own files.")
    ],
    source: Annotated[
        Path, typer.Argument(metavar="PREPARED", help="Folder that `prepare` has written.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT.cfg", help="Config to write.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings that replace those of the config."),
    ] = None,
    task: Annotated[TaskChoice, typer.Option(help="What is learned.")] = TaskChoice.ner,
    config: Annotated[str, typer.Option(help="Config of the task, for a known corpus.")] = "psa",
    log: Annotated[
        Path | None, typer.Option(help="File to which the training logs its scores, as JSON lines.")
    ] = None,
) -> None:
    """Write the training config of a project.

    For a known corpus, this is `merge-config` with configs/TASK/CONFIG.cfg and the settings in
    configs/corpora/. For a folder with own files, it is `init config`.

    \b
    Example:
      spacy-psa configure conll2003 corpus/conll2003 training/config.cfg --config bilstm_crf
    """
    from spacy_psa.corpora.layouts import LAYOUTS
    from spacy_psa.training.layers import assignments, set_log, with_settings

    if corpus in LAYOUTS:
        base = Path(f"configs/{task.value}/{config}.cfg")
        merge_config(base, Path(f"configs/corpora/{corpus}.cfg"), target, values, log)
        return
    train, dev = (source / f"{part}.spacy" for part in ("train", "dev"))
    counted, told = make_config(task, train, dev, sentencizer=_cut_by_rules(source / CHECK))
    counted = with_settings(counted, assignments(values or []), target)
    if log is not None:
        set_log(counted, log)
    write_config(counted, told, target)


def _cut_by_rules(check: Path) -> bool:
    """Tell whether `init corpus` found the sentences by rules."""
    try:
        return bool(
            json.loads(check.read_text(encoding="utf8"))["source"]["sentences found by rules"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False
