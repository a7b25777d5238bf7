"""Commands that train one pipeline: `train`, `distill` and `teach-label`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_psa.cli.console import tell
from spacy_psa.cli.options import Model, Pipe, TrainingGpu

Output = Annotated[
    Path, typer.Option("--output", "-o", help="Folder for the pipelines and checkpoints.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue from the last checkpoint, if there is one.")
]


def train(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.cfg", help="Training config.")],
    output: Output,
    resume: Resume = False,
    save_every: Annotated[
        int, typer.Option(min=0, help="Steps between further checkpoints; 0: only at evaluations.")
    ] = 0,
    skip_bad_loss: Annotated[
        bool,
        typer.Option(
            "--skip-bad-loss", help="Leave out steps whose loss is infinite or not a number."
        ),
    ] = False,
    code: Annotated[
        Path | None, typer.Option("--code", "-c", help="Python file to import first.")
    ] = None,
    gpu_id: TrainingGpu = -1,
) -> None:
    """Train a pipeline, with checkpoints to resume from.

    Trains CONFIG.cfg as `spacy train` does. Further options override settings in the same way:
    --training.max_steps 1000 and so on. OUTPUT gets model-best, model-last and, until the training
    ends, checkpoints/. After an interruption, the same command with --resume continues the
    training; a finished training is not changed.

    A loss that is infinite or not a number ends the training and names the documents. The last
    checkpoint and model-best stay.

    Under torchrun several processes train together: each trains on a batch in a step, and the
    gradients are averaged. With --gpu-id each process uses the GPU of its local rank.

    \b
    Example:
      spacy-psa train config.cfg --output training --resume \\
          --paths.train train.spacy --paths.dev dev.spacy
    """
    from spacy_psa.training.config import read_training_config
    from spacy_psa.training.run import import_code

    settings = read_training_config(config, ctx.args)
    if code is not None:
        import_code(code)
    options = {"resume": resume, "save_every": save_every, "skip_bad_loss": skip_bad_loss}
    _run(config, settings, output, gpu_id=gpu_id, **options)


def distill(
    ctx: typer.Context,
    teacher: Annotated[
        str, typer.Argument(metavar="TEACHER", help="Folder of a trained pipeline.")
    ],
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG.cfg", help="Training config of the student.")
    ],
    output: Output,
    weight: Annotated[
        float, typer.Option(help="Share of the teacher in the loss; the annotation has the rest.")
    ] = 0.5,
    unlabelled: Annotated[
        Path | None,
        typer.Option(
            help="Text without annotation: .spacy, a folder of such files, or .txt with a text in "
            "each line."
        ),
    ] = None,
    pipe: Pipe = None,
    cache_gb: Annotated[
        float,
        typer.Option(
            help="Gigabytes of the teacher's potentials to keep, so that it scores each text once."
        ),
    ] = 0.0,
    resume: Resume = False,
    gpu_id: TrainingGpu = -1,
) -> None:
    """Train a pipeline on the predictions of another.

    CONFIG.cfg is trained as `spacy-psa train` does, with the same overrides. The cross entropy of
    the two models' distributions over all analyses, which is exact, is added to the loss. TEACHER
    has the component of the config, such as a pipeline that `spacy-psa ensemble` made of several
    seeds, with the same scheme; a parser with loss = "log_likelihood", as that of the config. Its
    encoder may be another one. The student learns its labels, and is as small and fast as its
    config: it does not hold the teacher.

    Text without annotation only has the teacher's part of the loss. Each step also needs the time
    of a prediction of the teacher; with --cache-gb, only in the first pass.

    \b
    Example:
      spacy-psa distill joined config.cfg --output student \\
          --paths.train train.spacy --paths.dev dev.spacy --unlabelled news.txt
    """
    from spacy_psa.training.config import read_training_config
    from spacy_psa.training.distillation import add_teacher

    settings = read_training_config(config, ctx.args)
    add_teacher(settings, teacher, output, weight, unlabelled, pipe, cache_gb)
    _run(config, settings, output, resume=resume, gpu_id=gpu_id)


def teach_label(
    model: Model,
    examples: Annotated[
        Path,
        typer.Argument(
            metavar="EXAMPLES",
            help="File with annotated texts: JSONL, .spacy or another format of `init corpus`.",
        ),
    ],
    label: Annotated[str, typer.Option(help="The new label.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write; new or empty.")],
    texts: Annotated[
        Path | None,
        typer.Option(help="Text without annotation: .spacy, or .txt with a text on each line."),
    ] = None,
    pipe: Pipe = None,
    updates: Annotated[
        int, typer.Option(min=0, help="Updates; 0 for ten passes over EXAMPLES, and at least 900.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the order and the dropout.")] = 0,
    gpu_id: TrainingGpu = -1,
) -> None:
    """Teach a new label to a trained pipeline.

    Its crf_ner or crf_chunker keeps the other labels. In EXAMPLES, all spans with the new label are
    annotated; spans with other labels may be. The predictions of MODEL, with their probabilities,
    replace all other annotation of EXAMPLES and of the text in --texts. Old labels keep their
    probabilities. The new label wins tokens outside of spans, and tokens of old spans where
    EXAMPLES have it. Use a few thousand sentences of text like that which the pipeline will
    annotate.

    The training data of MODEL is not needed. Its other components stay as they are. Temperature and
    coverage are removed: calibrate the new pipeline.

    \b
    Example:
      spacy-psa teach-label training/model-best vessels.jsonl --label VESSEL \\
          --texts news.txt --output with-vessels
    """
    from spacy_psa.training.new_label import teach_label as teach

    learned = teach(model, label, examples, output, texts, pipe, updates, seed, gpu_id)
    sentences = f"{learned.examples:,} sentences with annotation and {learned.texts:,} other texts"
    kept = f"{learned.kept:,} of the {learned.before:,} old spans are predicted as before"
    tell([f"Learned in {learned.updates:,} updates from {sentences}"], learned.warnings)
    typer.echo(f"On these, {kept}, and {learned.new:,} with the label {label}")
    typer.echo(f"Written: {output}")


def _run(config: Path, settings: Any, output: Path, **options: Any) -> None:
    from spacy_psa.training.run import run

    model = run(config, settings, output, lambda warning: tell([], [warning]), **options)
    if model is not None:
        typer.echo(f"Saved the pipeline to {model}")
