"""`spacy-psa quantize`: a pipeline with weights in int8, and its accuracy and speed."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language

Figures = dict[str, float]


def quantize(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder or installed package of a pipeline.")
    ],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; new or empty.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Gold documents, a .spacy file, to compare both pipelines on."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the pipeline in OUT, if there is one.")
    ] = False,
) -> None:
    """Store the weights of a pipeline in int8.

    The weights of large linear layers, LSTMs and dilated convolutions are rounded to 8 bits, for
    annotation on a CPU. Word vectors, embeddings and small layers, such as those of character
    encoders, stay as they are: they would become slower. The pipeline in OUT is smaller, and faster
    if the processor multiplies in int8 (VNNI, AMX). spacy.load opens it like any other. It cannot
    be trained or used on a GPU.

    One line says how many weights are in int8, and what is not. If --data is given, scores and
    speed are printed with both weights.

    \b
    Example:
      spacy-psa quantize training/model-best model-int8 --data dev.spacy
    """
    from spacy_psa.corpora.atomic import atomic_folder, check_free, replaced_pipeline
    from spacy_psa.loading import load_pipeline
    from spacy_psa.scoring.result import read_examples

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
    if examples:
        _print(before, after)
    typer.echo(_told(nlp, shims))
    typer.echo(f"Written: {output}")


def _shims(nlp: "Language", model: str) -> list[Any]:
    """Give the torch modules of spacy-psa in a pipeline, each once."""
    from spacy_psa.bridge.shim import TorchShim

    found = {
        id(shim): shim
        for _, pipe in nlp.pipeline
        if hasattr(pipe, "model")
        for node in getattr(pipe.model, "walk", list)()
        for shim in node.shims
        if isinstance(shim, TorchShim)
    }
    if not found:
        raise InputError(
            f"{model}: none of its components ({', '.join(nlp.pipe_names) or 'there are none'}) "
            "has weights of spacy-psa; give another pipeline"
        )
    if any(shim.int8 for shim in found.values()):
        raise InputError(f"{model}: has its weights in int8 already; give the original pipeline")
    return list(found.values())


def _told(nlp: "Language", shims: list[Any]) -> str:
    """Say in one line what is in int8, and what is not."""
    import torch

    from spacy_psa.modules.int8 import left_in_float32

    modules = [shim.module for shim in shims]
    rounded = sum(b.numel() for m in modules for b in m.buffers() if b.dtype == torch.int8)
    left: Counter[str] = Counter()
    for module in modules:
        left.update(left_in_float32(module))
    kinds = [f"{kind} {number:,}" for kind, number in left.most_common()]
    kinds += [f"layers of {name} that are not of spacy-psa" for name in _others(nlp)]
    why = "" if rounded else " (no layer is large enough to gain)"
    return f"In int8: {rounded:,} weights{why}. As they were: {', '.join(kinds) or 'none'}."


def _others(nlp: "Language") -> list[str]:
    """Name the components with layers that are not of spacy-psa."""
    from spacy_psa.bridge.shim import TorchShim

    return [
        name
        for name, pipe in nlp.pipeline
        for node in [getattr(pipe, "model", None)]
        if any(
            each.param_names or any(not isinstance(shim, TorchShim) for shim in each.shims)
            for each in getattr(node, "walk", list)()
        )
    ]


def _measure(nlp: "Language", examples: list[Any]) -> Figures:
    """Give the scores that are single numbers, in percent, and the words per second."""
    from spacy_psa.scoring.result import measure_speed

    figures = {
        key: 100 * value
        for key, value in nlp.evaluate(examples).items()
        if isinstance(value, float) and not key.startswith(("token", "speed"))
    }
    figures["words a second"] = measure_speed(nlp, examples)["words_per_second"]
    return figures


def _print(before: Figures, after: Figures) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for name in ("", "float32", "int8", "difference"):
        table.add_column(name, justify="right" if name else "left")
    for name, value in before.items():
        digits = ",.0f" if name == "words a second" else ".2f"
        cells = [format(x, digits) for x in (value, after[name], after[name] - value)]
        table.add_row(name, *cells)
    Console().print(table)
