"""Opens trained pipelines, and finds components in them."""

import re
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy_psa.entry_points import only_factories
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.vocab import Vocab

    from spacy_psa.pipeline.chain.spans import SpanLabeler
    from spacy_psa.pipeline.chain.tagger import CRFTagger


def load_pipeline(model: str, gpu_id: int = -1) -> "Language":
    """Open a pipeline as `spacy.load` does, on the CPU or on a GPU.

    Args:
        model: the folder of a pipeline, or the name of an installed package.
        gpu_id: the number of the GPU; -1 for the CPU.
    """
    use_device(gpu_id)
    try:
        return _load(model)
    except InputError as error:
        raise InputError(f"{_file_of(error, Path(model))}: {error}") from error
    except Exception as error:  # each kind of file has its own errors
        if isinstance(error, OSError) and not Path(model).exists():
            raise InputError(
                f"{model}: no pipeline to open (there is no such folder or package); use a "
                "folder of `spacy train` or the name of an installed package"
            ) from error
        raise InputError(
            f"{_file_of(error, Path(model))}: the pipeline cannot be opened "
            f"({type(error).__name__}: {str(error).partition('. ')[0]}); check that its files are "
            "complete and the packages of its components installed"
        ) from error


def _load(model: str) -> "Language":
    """Open a pipeline, and import the packages of its own components only, if they suffice."""
    import spacy

    config = Path(model) / "config.cfg"
    if config.is_file():
        try:
            text = config.read_text(encoding="utf8")
            with only_factories(re.findall(r'^factory ?= ?"(.+)"', text, re.MULTILINE)):
                return spacy.load(model)
        except Exception:  # a package may register several components by one entry point
            pass
    return spacy.load(model)


def _file_of(error: Exception, folder: Path) -> Path:
    """Find the file or folder below `folder` that was read last before the error.

    The errors of spaCy do not name it, but the functions that were called have it.
    """
    last = folder
    for raised in (error, error.__cause__):
        for frame, _ in traceback.walk_tb(raised.__traceback__ if raised else None):
            for value in frame.f_locals.values():
                if isinstance(value, Path) and folder in value.parents:
                    last = value
    return last


def use_device(gpu_id: int) -> None:
    """Compute on the GPU of this number; -1 is the CPU. InputError if there is no such GPU."""
    from thinc.api import require_gpu

    if gpu_id >= 0:
        try:
            require_gpu(gpu_id)
        except Exception as error:  # CuPy and torch raise errors of different types
            raise InputError(f"--gpu-id {gpu_id}: {error}") from error


def find_pipe(
    nlp: "Language",
    name: str | None,
    kind: type | tuple[type, ...],
    what: str,
    option: str = "--pipe",
) -> Any:
    """Find the component of a kind.

    Args:
        name: the name of the component; None if the pipeline has only one.
        what: the factories of this kind in words, for errors.
        option: the option that chooses the name, for errors.
    """
    pipes = {key: pipe for key, pipe in nlp.pipeline if isinstance(pipe, kind)}
    if not pipes:
        model = f"{nlp.path}: has" if nlp.path else "the pipeline has"
        raise InputError(
            f"{model} no {what} among its components ({', '.join(nlp.pipe_names) or 'none'}); "
            "choose another pipeline"
        )
    if name is None and len(pipes) > 1:
        raise InputError(f"several components fit: choose one with {option} {' or '.join(pipes)}")
    if name is not None and name not in pipes:
        raise InputError(f"{option} {name}: no such {what}; choose {' or '.join(pipes)}")
    return pipes[name or next(iter(pipes))]


def confident_pipe(
    nlp: "Language", name: str | None, option: str = "--pipe"
) -> "SpanLabeler | CRFTagger":
    """Find a component as `find_pipe` does, and make it write confidences.

    Without a name, it is the `crf_ner` or `crf_chunker`, or else the `crf_tagger`.
    """
    from spacy_psa.pipeline.chain.extensions import register
    from spacy_psa.pipeline.chain.spans import SpanLabeler
    from spacy_psa.pipeline.chain.tagger import CRFTagger

    spans = name is None and any(isinstance(pipe, SpanLabeler) for _, pipe in nlp.pipeline)
    kinds = (SpanLabeler,) if spans else (SpanLabeler, CRFTagger)
    pipe: SpanLabeler | CRFTagger = find_pipe(
        nlp, name, kinds, "crf_ner, crf_chunker or crf_tagger", option
    )
    register()
    pipe.confidence = True
    return pipe


def vocab_with_vectors(model: str) -> "Vocab":
    """Open a pipeline with word vectors, and return its vocabulary; InputError without vectors."""
    vocab = load_pipeline(model).vocab
    if not len(vocab.vectors):
        raise InputError(f"{model}: has no word vectors; use a pipeline of `spacy init vectors`")
    return vocab


def model_names(models: Sequence[str]) -> dict[str, str]:
    """Name each model by its folder, with the folders before it if two are equal."""
    paths = {model: Path(model).parts for model in dict.fromkeys(models)}
    for length in range(1, max(len(parts) for parts in paths.values()) + 1):
        names = {"/".join(parts[-length:]): model for model, parts in paths.items()}
        if len(names) == len(paths):
            return names
    return {model: model for model in paths}
