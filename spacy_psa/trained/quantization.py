"""A pipeline with weights in int8, and its accuracy and speed."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import torch
from spacy.language import Language
from spacy.training import Example

from spacy_psa.bridge.shim import TorchShim
from spacy_psa.corpora.atomic import atomic_folder, check_free, replaced_pipeline
from spacy_psa.errors import InputError
from spacy_psa.loading import load_pipeline
from spacy_psa.modules.int8 import left_in_float32
from spacy_psa.scoring.result import measure_speed, read_examples

SPEED = "words a second"


class Quantized(NamedTuple):
    """A pipeline whose weights are in int8."""

    summary: str
    """One line with the numbers of weights in int8 and in float32."""
    before: dict[str, float]
    """Scores in percent and words a second with float32; empty without data."""
    after: dict[str, float]
    """The same with int8."""


def quantize(
    model: str, output: Path, data: Path | None = None, overwrite: bool = False
) -> Quantized:
    """Write a pipeline with the weights of its large layers in int8.

    `data` are gold documents to compare both pipelines on. With `overwrite`, a pipeline at `output`
    is replaced.
    """
    if not (overwrite and (output / "meta.json").is_file()):
        check_free(output)
    nlp = load_pipeline(model)
    shims = _shims(nlp, model)
    examples = [] if data is None else read_examples(nlp, data)
    before = _measure(nlp, examples) if examples else {}
    for shim in shims:
        shim.quantize()
    after = _measure(nlp, examples) if examples else {}
    with (replaced_pipeline if overwrite else atomic_folder)(output) as folder:
        nlp.to_disk(folder)
    return Quantized(_summary(nlp, shims), before, after)


def _nodes(pipe: Any) -> list[Any]:
    """Return the layers of a component; none if it is not a model of thinc."""
    return list(getattr(getattr(pipe, "model", None), "walk", list)())


def _shims(nlp: Language, model: str) -> list[TorchShim]:
    """Return the torch modules of spacy-psa in a pipeline, each once."""
    shims = {
        id(shim): shim
        for _, pipe in nlp.pipeline
        for node in _nodes(pipe)
        for shim in node.shims
        if isinstance(shim, TorchShim)
    }
    if not shims:
        raise InputError(
            f"{model}: none of its components ({', '.join(nlp.pipe_names) or 'there are none'}) "
            "has weights of spacy-psa; choose another pipeline"
        )
    if any(shim.int8 for shim in shims.values()):
        raise InputError(f"{model}: has its weights in int8 already; use the original pipeline")
    return list(shims.values())


def _summary(nlp: Language, shims: list[TorchShim]) -> str:
    modules: list[Any] = [shim.module for shim in shims]
    rounded = sum(b.numel() for m in modules for b in m.buffers() if b.dtype == torch.int8)
    left: Counter[str] = Counter()
    for module in modules:
        left.update(left_in_float32(module))
    kinds = [f"{kind} {number:,}" for kind, number in left.most_common()]
    kinds += [f"layers of {name} that are not of spacy-psa" for name in _with_other_layers(nlp)]
    why = "" if rounded else " (no layer is large enough to gain)"
    return f"In int8: {rounded:,} weights{why}. As they were: {', '.join(kinds) or 'none'}."


def _with_other_layers(nlp: Language) -> list[str]:
    """Name the components with layers that are not of spacy-psa."""
    return [
        name
        for name, pipe in nlp.pipeline
        if any(
            node.param_names or any(not isinstance(shim, TorchShim) for shim in node.shims)
            for node in _nodes(pipe)
        )
    ]


def _measure(nlp: Language, examples: list[Example]) -> dict[str, float]:
    """Return the scores that are single numbers, in percent, and the words per second."""
    figures = {
        key: 100 * value
        for key, value in nlp.evaluate(examples).items()
        if isinstance(value, float) and not key.startswith(("token", "speed"))
    }
    return figures | {SPEED: measure_speed(nlp, examples)[0]["words_per_second"]}
