"""`spacy-psa train`: training that can be resumed after it was interrupted."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spacy_psa.errors import InputError
from spacy_psa.training.config import initialize, read_training_config

if TYPE_CHECKING:
    from thinc.api import Config


def train(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(metavar="CONFIG.cfg", help="Training config.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the pipelines and checkpoints.")
    ],
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the last checkpoint, if there is one.")
    ] = False,
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
    gpu_id: Annotated[
        int, typer.Option("--gpu-id", "-g", min=-1, help="Number of the GPU; -1 for the CPU.")
    ] = -1,
) -> None:
    """Train a pipeline, with checkpoints to resume from.

    Trains CONFIG.cfg as `spacy train` does. Further options override settings in the same way:
    --training.max_steps 1000 and so on. OUTPUT gets model-best, model-last and, until the training
    ends, checkpoints/. After an interruption, the same command with --resume continues the
    training; if it is finished, --resume leaves it as it is.

    A loss that is infinite or not a number ends the training and names the documents. The last
    checkpoint and model-best stay.

    Under torchrun several processes train together: each takes a batch in a step, and the
    gradients are averaged. With --gpu-id each process takes the GPU of its local rank.

    \b
    Example:
      spacy-psa train config.cfg --output training --resume \\
          --paths.train train.spacy --paths.dev dev.spacy
    """
    settings = read_training_config(config, ctx.args)
    _import(code)
    run(
        config,
        settings,
        output,
        resume=resume,
        save_every=save_every,
        skip_bad_loss=skip_bad_loss,
        gpu_id=gpu_id,
    )


def run(
    config: Path,
    settings: "Config",
    output: Path,
    *,
    resume: bool = False,
    save_every: int = 0,
    skip_bad_loss: bool = False,
    gpu_id: int = -1,
) -> None:
    """Train what a config says, alone or in the processes of torchrun, and tell where it is.

    Args:
        config: the file of the config, for errors.
        settings: the config with its overrides.
        output: the folder for the pipelines and checkpoints.
        resume: whether to continue from the last checkpoint.
        save_every: steps between further checkpoints.
        skip_bad_loss: whether to leave out steps whose loss is not finite.
        gpu_id: the number of the GPU; -1 for the CPU.

    Raises:
        InputError: if it cannot be trained.
    """
    from spacy_psa.loading import use_device
    from spacy_psa.training import loop
    from spacy_psa.training.checks import ENDS, no_evaluation
    from spacy_psa.training.processes import local_gpu, started_by_torchrun

    gpu_id = local_gpu(gpu_id)
    use_device(gpu_id)
    with started_by_torchrun(gpu=gpu_id >= 0) as processes:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=ENDS)  # which is said here in one line
            nlp = initialize(config, settings, gpu_id)
        if processes.first and (told := no_evaluation(nlp, processes.count)):
            typer.echo(f"warning: {told}", err=True)
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{output}: is no folder to write to ({error.strerror})") from error
        model = loop.train(
            nlp,
            output,
            resume=resume,
            save_every=save_every,
            skip_bad_loss=skip_bad_loss,
            use_gpu=gpu_id,
            processes=processes,
        )
    if processes.first:
        typer.echo(f"Saved the pipeline to {model}")


def _import(code: Path | None) -> None:
    from spacy.util import import_file

    if code is None:
        return
    try:
        import_file("python_code", code)
    except Exception as error:  # whatever the file raises
        raise InputError(
            f"--code {code}: cannot be imported ({type(error).__name__}: {error}); correct the file"
        ) from error
