"""Opening a pipeline for a command."""

from pathlib import Path
from typing import TYPE_CHECKING

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language


def load_pipeline(model: str, gpu_id: int = -1) -> "Language":
    """`spacy.load(model)` on the CPU (`gpu_id` -1) or on that GPU.

    Raises:
        InputError: there is no such GPU or no such pipeline.
    """
    import spacy
    from thinc.api import require_gpu

    if gpu_id >= 0:
        try:
            require_gpu(gpu_id)
        except Exception as error:  # CuPy and torch each have errors of their own
            raise InputError(f"--gpu-id {gpu_id}: {error}") from error
    try:
        return spacy.load(model)
    except OSError as error:
        # spaCy's own words are of use only where there is something at the path.
        reason = str(error) if Path(model).exists() else "there is no such folder or package"
        raise InputError(
            f"{model}: no pipeline to open ({reason}); give the folder that `spacy train` wrote "
            "or the name of an installed package"
        ) from error
