"""Commands on trained pipelines: rules, ensembles, int8, descriptions and packages."""

from pathlib import Path
from typing import Annotated

import typer

from spacy_psa.cli.console import print_table, tell
from spacy_psa.cli.options import Gpu, Model, Pipe

Report = Annotated[
    Path | None, typer.Option(help="JSON of `spacy-psa report`, with the scores to show.")
]
Data = Annotated[str, typer.Option(help="Name of the training data.")]
DataLicense = Annotated[str, typer.Option(help="Licence of the training data.")]
License = Annotated[str, typer.Option("--license", help="Licence of the model.")]
Author = Annotated[str, typer.Option(help="Author of the model.")]
Url = Annotated[str, typer.Option(help="Address with more about the model.")]
Text = Annotated[
    str, typer.Option(help="Description of the model; default: its components' annotation.")
]
Measured = Annotated[
    list[Path] | None,
    typer.Option(help="JSON of `spacy-psa calibrate --json`, for the card; may be repeated."),
]
Use = Annotated[str, typer.Option(help="Purpose of the model, for the card.")]


def ensemble(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Folders of pipelines, at least two.")
    ],
    output: Annotated[Path, typer.Option(help="Folder to write; new or empty.")],
    pipe: Pipe = None,
) -> None:
    """
    Join trained pipelines into one.

    It predicts with the mean of their log potentials. The pipelines have the same component
    (crf_ner, crf_spans, crf_chunker, crf_tagger or constituency_parser) with the same labels, such
    as one config trained with several seeds. Everything stays exact: decoding, probabilities,
    n-best, evidence. Everything else, such as the tokenizer, is that of the first pipeline, except
    what was calibrated, which is removed: calibrate the joined pipeline. It needs the time and the
    memory of all models together.

    \b
    Example:
      spacy-psa ensemble seed-1/model-best seed-2/model-best seed-3/model-best --output joined
    """
    from spacy_psa.trained.ensemble import ensemble as join

    join(models, output, pipe)
    typer.echo(f"Written: {output}, of {len(models)} models")


def add_rules(
    model: Model,
    patterns: Annotated[
        list[Path],
        typer.Argument(metavar="PATTERNS.jsonl...", help="Patterns as of spaCy's entity_ruler."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write; new or empty.")],
    dev: Annotated[
        Path | None,
        typer.Option(help="Gold documents, not used for training, to learn the weights from."),
    ] = None,
    weight: Annotated[
        float, typer.Option(help="Weight of a suggestion without --dev, and the prior with it.")
    ] = 2.0,
    pipe: Pipe = None,
    gpu_id: Gpu = -1,
) -> None:
    """Let patterns and lists of names suggest spans.

    They suggest them to a trained crf_ner or crf_chunker. The matches are soft evidence: a weight
    is added to the log odds of each span that matches, and the component finds the best analysis.
    With --dev, there is a weight for each file and label, which makes the annotation most probable,
    with a Gaussian prior around --weight. The model itself does not change. Each file becomes a
    span_ruler of the pipeline, with its name.

    \b
    Example:
      spacy-psa add-rules training/model-best towns.jsonl --dev dev.spacy --output with-towns
    """
    from spacy_psa.training.rules import with_rules

    ruled = with_rules(model, patterns, output, dev, pipe, weight, gpu_id)
    if ruled.sources:
        head = ["patterns", "label", "suggested", "right", "weight"]
        rows = [[s.key, s.label, s.suggested, s.right, f"{s.weight:.2f}"] for s in ruled.sources]
        print_table(head, [[str(cell) for cell in row] for row in rows], left=2)
        typer.echo(f"F1 on {dev}: {100 * ruled.before:.2f} without, {100 * ruled.after:.2f} with")
    tell([f"Written: {output}"], ruled.warnings)


def quantize(
    model: Model,
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
    encoders, are not rounded, because they would become slower. The pipeline in OUT is smaller, and
    faster if the processor multiplies in int8 (VNNI, AMX). spacy.load opens it like any other. It
    cannot be trained or used on a GPU.

    One line names the numbers of weights in int8 and of all others. If --data is given, scores and
    speed are printed with both weights.

    \b
    Example:
      spacy-psa quantize training/model-best model-int8 --data dev.spacy
    """
    from spacy_psa.trained.quantization import SPEED
    from spacy_psa.trained.quantization import quantize as write

    done = write(model, output, data, overwrite)
    rows = []
    for name, value in done.before.items():
        figures = (value, done.after[name], done.after[name] - value)
        rows.append([name, *(format(x, ",.0f" if name == SPEED else ".2f") for x in figures)])
    if rows:
        print_table(["", "float32", "int8", "difference"], rows)
    tell([done.summary, f"Written: {output}"])


def describe(
    model: Model,
    output: Annotated[Path, typer.Argument(metavar="META.json", help="File to write.")],
    report: Report = None,
    data: Data = "",
    data_license: DataLicense = "",
    license_: License = "",
    author: Author = "",
    url: Url = "",
    description: Text = "",
    card: Annotated[
        Path | None, typer.Option(help="Card to write as Markdown, such as MODEL/README.md.")
    ] = None,
    calibration: Measured = None,
    intended_use: Use = "",
) -> None:
    """Write the meta data of a model, and its card.

    `spacy package --meta-path META.json` puts them into a package: description, licence, author,
    data, and the scores of a report on test data in place of those of the training. The card also
    has scores by type, speed, calibration and intended use; `spacy package` and `spacy-psa push`
    read it from MODEL/README.md.

    \b
    Example:
      spacy-psa describe training/model-best meta.json --report metrics/ner.json --license MIT \\
          --card training/model-best/README.md
      python -m spacy package training/model-best packages --meta-path meta.json
    """
    from spacy_psa.trained.publication import Description
    from spacy_psa.trained.publication import describe as write

    records = report, calibration or []
    names = data, data_license, license_, author, url
    about = Description(*records, *names, description, intended_use)
    missing = write(model, output, about, card)
    if missing:
        tell([], [f"{model}: no {' and no '.join(missing)} in the card"])
    typer.echo(f"Written: {output}{f', {card}' if card else ''}")


def package(
    model: Model,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the wheel.")],
    name: Annotated[str, typer.Option(help="Name of the package, such as letters.")] = "",
    version: Annotated[str, typer.Option(help="Version of the package.")] = "",
    report: Report = None,
    data: Data = "",
    data_license: DataLicense = "",
    license_: License = "",
    author: Author = "",
    url: Url = "",
    description: Text = "",
    calibration: Measured = None,
    intended_use: Use = "",
) -> None:
    """Build a wheel of a model, with its card, for pip.

    The meta data and the card are those of `spacy-psa describe`, with the same options. The wheel
    is built without a network, and MODEL does not change.

    \b
    Example:
      spacy-psa package training/model-best packages --name letters --license MIT
      pip install packages/en_letters-0.0.0-py3-none-any.whl
    """
    from spacy_psa.trained.publication import Description
    from spacy_psa.trained.publication import package as build

    names = data, data_license, license_, author, url
    about = Description(report, calibration or [], *names, description, intended_use)
    wheel, missing = build(model, output, about, name, version)
    if missing:
        tell([], [f"{model}: no {' and no '.join(missing)} in the card"])
    typer.echo(f"Written: {wheel}")


def push(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a pipeline.")],
    repository: Annotated[
        str, typer.Argument(metavar="NAME/REPOSITORY", help="Repository, such as ada/en_names.")
    ],
    package: Annotated[
        Path | None, typer.Option(help="Archive or wheel of `spacy package`, to put next to it.")
    ] = None,
    private: Annotated[bool, typer.Option(help="Whether a new repository is private.")] = False,
    message: Annotated[str, typer.Option(help="Message of the commit.")] = "Update the pipeline",
    token: Annotated[
        str | None,
        typer.Option(help="Token with the right to write.", envvar="HF_TOKEN", show_default=False),
    ] = None,
) -> None:
    """
    Upload a pipeline to the Hugging Face Hub.

    All files of MODEL are copied in one commit, so that `spacy.load` opens the folder that
    `huggingface_hub.snapshot_download` fetches. MODEL/README.md becomes the page of the repository:
    write it by `spacy-psa describe --card`. A missing repository is made. The variable HF_ENDPOINT
    is the address of another hub.

    \b
    Example:
      spacy-psa describe training/model-best meta.json --card training/model-best/README.md
      spacy-psa push training/model-best ada/en_names
    """
    from spacy_psa.trained.publication import push as upload

    typer.echo(upload(model, repository, package, private, message, token))
    if not (model / "README.md").exists():
        tell([], [f"{model}: has no README.md for the page; see `spacy-psa describe --card`"])
