"""`spacy-psa train`: training that can be resumed after it was interrupted."""

from pathlib import Path
from typing import Annotated, Any

import typer


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
        int, typer.Option(help="Steps between further checkpoints; 0: only at evaluations.")
    ] = 0,
    code: Annotated[
        Path | None, typer.Option("--code", "-c", help="Python file to import first.")
    ] = None,
    gpu_id: Annotated[
        int, typer.Option("--gpu-id", "-g", help="Number of the GPU; -1 for the CPU.")
    ] = -1,
) -> None:
    """Train a pipeline, with checkpoints to resume from.

    Trains CONFIG.cfg as `spacy train` does. Further options override settings in the same way:
    --training.max_steps 1000 and so on. OUTPUT gets model-best, model-last and, until the training
    ends, checkpoints/. After an interruption, the same command with --resume continues the
    training.

    \b
    Example:
      spacy-psa train config.cfg --output training --resume \\
          --paths.train train.spacy --paths.dev dev.spacy
    """
    from spacy.cli._util import import_code, parse_config_overrides
    from spacy.training.initialize import init_nlp
    from spacy.util import load_config

    from spacy_psa.errors import InputError
    from spacy_psa.loading import use_device
    from spacy_psa.training import loop

    if not config.is_file():
        raise InputError(f"{config}: there is no such config; check the path")
    if save_every < 0:
        raise InputError(f"--save-every {save_every}: take 0 or more steps")
    overrides: dict[str, Any] = parse_config_overrides(ctx.args)
    import_code(code)
    use_device(gpu_id)
    nlp = init_nlp(load_config(config, overrides=overrides, interpolate=False), use_gpu=gpu_id)
    output.mkdir(parents=True, exist_ok=True)
    model = loop.train(nlp, output, resume=resume, save_every=save_every, use_gpu=gpu_id)
    typer.echo(f"Saved the pipeline to {model}")
