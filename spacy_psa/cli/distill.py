"""`spacy-psa distill`: one model that learns from what another, trained one says."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_psa.cli.train import run
from spacy_psa.errors import InputError
from spacy_psa.training.config import read_training_config

if TYPE_CHECKING:
    from thinc.api import Config


def distill(
    ctx: typer.Context,
    teacher: Annotated[
        str, typer.Argument(metavar="TEACHER", help="Folder of a trained pipeline.")
    ],
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG.cfg", help="Training config of the student.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the pipelines and checkpoints.")
    ],
    weight: Annotated[
        float, typer.Option(help="How much the teacher counts beside the annotation, 0 to 1.")
    ] = 0.5,
    unlabelled: Annotated[
        Path | None,
        typer.Option(
            help="Text without annotation: .spacy, a folder of such files, or .txt with a text in "
            "each line."
        ),
    ] = None,
    pipe: Annotated[
        str | None, typer.Option(help="Name of the component, if there are several.")
    ] = None,
    cache_gb: Annotated[
        float,
        typer.Option(
            help="Gigabytes of the teacher's potentials to keep, so that it scores each text once."
        ),
    ] = 0.0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the last checkpoint, if there is one.")
    ] = False,
    gpu_id: Annotated[
        int, typer.Option("--gpu-id", "-g", min=-1, help="Number of the GPU; -1 for the CPU.")
    ] = -1,
) -> None:
    """Train a pipeline on its annotation and on what a trained one says of each text.

    CONFIG.cfg is trained as `spacy-psa train` does, with the same overrides. To the loss comes the
    cross entropy of the two models' distributions over all analyses, which is exact. TEACHER has
    the component of the config (crf_ner, crf_chunker or crf_tagger) with the same scheme, such as a
    pipeline that `spacy-psa ensemble` made of several seeds; its encoder may be another one. The
    student takes its labels, and is as small and fast as the config says: it does not hold the
    teacher.

    Text without annotation has the teacher's part of the loss alone. Each step takes the time of a
    prediction of the teacher more; with --cache-gb, those of the first pass alone.

    \b
    Example:
      spacy-psa distill joined config.cfg --output student \\
          --paths.train train.spacy --paths.dev dev.spacy --unlabelled news.txt
    """
    taught = Path(teacher).resolve()
    if taught.exists() and output.resolve() in (taught, taught.parent):
        raise InputError(f"--output {output}: the teacher {teacher} is there; give another folder")
    settings = read_training_config(config, ctx.args)
    _teach(settings, teacher, weight, pipe, cache_gb)
    if unlabelled is not None:
        _read_too(settings, unlabelled)
    run(config, settings, output, resume=resume, gpu_id=gpu_id)


def _teach(
    settings: "Config", teacher: str, weight: float, pipe: str | None, cache_gb: float
) -> None:
    """Write the teacher and its labels into the config of the student."""
    from spacy_psa.loading import load_pipeline
    from spacy_psa.training.distillation import labeler_name

    if not 0 <= weight <= 1:
        raise InputError(f"--weight {weight:g}: take a number from 0 to 1")
    nlp = load_pipeline(teacher)
    name = labeler_name(nlp, pipe, teacher)
    own: Any = nlp.get_pipe(name)
    students = [
        key
        for key, component in settings["components"].items()
        if pipe in (None, key) and _factory(key, component) == nlp.get_pipe_meta(name).factory
    ]
    if len(students) != 1:
        raise InputError(
            f"the config has {len(students)} components {nlp.get_pipe_meta(name).factory!r}, which "
            f"the teacher's {name!r} is: give a config that has one, or choose with --pipe"
        )
    start = settings.setdefault("initialize", {})
    start.setdefault("components", {}).setdefault(students[0], {}).setdefault(
        "labels", list(own.labels)
    )
    start["after_init"] = {
        "@callbacks": "spacy-psa.distill.v1",
        "teacher": teacher,
        "weight": weight,
        "pipe": pipe,
        "also": start.get("after_init"),
        "cache_gb": cache_gb,
    }


def _factory(name: str, component: dict[str, Any]) -> str | None:
    """The factory of a component of a config, also of one that `source` takes from a pipeline."""
    from spacy_psa.loading import load_pipeline

    if "source" not in component:
        return component.get("factory")
    nlp, taken = load_pipeline(component["source"]), component.get("component", name)
    return nlp.get_pipe_meta(taken).factory if taken in nlp.component_names else None


def _read_too(settings: "Config", path: Path) -> None:
    """Put text without annotation behind the training corpus of a config."""
    if not path.exists():
        raise InputError(f"--unlabelled {path}: there is no such file or folder; check the path")
    block, _, name = settings["training"]["train_corpus"].rpartition(".")
    if block != "corpora" or name not in settings["corpora"]:
        raise InputError(
            f"train_corpus of [training] is {settings['training']['train_corpus']!r}: --unlabelled "
            "needs a section of [corpora]"
        )
    settings["corpora"][name] = {
        "@readers": "spacy-psa.WithUnlabelled.v1",
        "path": str(path),
        "labelled": settings["corpora"][name],
    }
