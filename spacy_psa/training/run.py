"""A config trained from beginning to end, by one process or by those of torchrun."""

from collections.abc import Callable
from pathlib import Path

from spacy.util import import_file
from thinc.api import Config

from spacy_psa.errors import InputError
from spacy_psa.loading import use_device
from spacy_psa.training.checks import evaluation_checked_later, no_evaluation
from spacy_psa.training.config import initialize
from spacy_psa.training.loop import train
from spacy_psa.training.processes import local_gpu, started_by_torchrun


def run(
    config: Path,
    settings: Config,
    output: Path,
    warn: Callable[[str], None],
    *,
    resume: bool = False,
    save_every: int = 0,
    skip_bad_loss: bool = False,
    gpu_id: int = -1,
) -> Path | None:
    """Train a config.

    Args:
        output: the folder for the pipelines and checkpoints.
        warn: called with a warning before the training.
        resume, save_every, skip_bad_loss: as in `train`.

    Returns:
        The folder of the pipeline; None in all processes of torchrun but the first.
    """
    gpu_id = local_gpu(gpu_id)
    use_device(gpu_id)
    with started_by_torchrun(gpu=gpu_id >= 0) as processes:
        with evaluation_checked_later():
            nlp = initialize(config, settings, gpu_id)
        if processes.first and (warning := no_evaluation(nlp, processes.count)):
            warn(warning)
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{output}: is not a folder to write to ({error.strerror})") from error
        model = train(
            nlp,
            output,
            resume=resume,
            save_every=save_every,
            skip_bad_loss=skip_bad_loss,
            use_gpu=gpu_id,
            processes=processes,
        )
    return model if processes.first else None


def import_code(code: Path) -> None:
    """Import a Python file, as `spacy train --code` does; InputError if it raises an error."""
    try:
        import_file("python_code", code)
    except Exception as error:  # the file may raise any error
        raise InputError(
            f"--code {code}: cannot be imported ({type(error).__name__}: {error}); correct the file"
        ) from error
