"""`spacy-psa describe`: the meta data with which `spacy package` fills the card of a model."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language

REPORT = "report of `spacy-psa report`"
CALIBRATION = "record of `spacy-psa calibrate`"


def describe(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder or installed package of a pipeline.")
    ],
    output: Annotated[Path, typer.Argument(metavar="META.json", help="File to write.")],
    report: Annotated[
        Path | None, typer.Option(help="JSON of `spacy-psa report`, with the scores to show.")
    ] = None,
    data: Annotated[str, typer.Option(help="Name of the training data.")] = "",
    data_license: Annotated[str, typer.Option(help="Licence of the training data.")] = "",
    license_: Annotated[str, typer.Option("--license", help="Licence of the model.")] = "",
    author: Annotated[str, typer.Option(help="Who made the model.")] = "",
    url: Annotated[str, typer.Option(help="Where more is to be read.")] = "",
    description: Annotated[
        str, typer.Option(help="What the model is for; default: what its components find.")
    ] = "",
    card: Annotated[
        Path | None,
        typer.Option(help="Card to write as Markdown, such as MODEL/README.md."),
    ] = None,
    calibration: Annotated[
        list[Path] | None,
        typer.Option(help="JSON of `spacy-psa calibrate --json`, for the card; may be repeated."),
    ] = None,
    intended_use: Annotated[
        str, typer.Option(help="What the model is to be used for, for the card.")
    ] = "",
) -> None:
    """Write the meta data of a model, and its card.

    `spacy package --meta-path META.json` puts them into a package: description, licence, author,
    data, and the scores of a report on test data in place of those of the training. The card has
    scores by type, speed, calibration and intended use, too; `spacy package` and `spacy-psa push`
    take it from MODEL/README.md.

    \b
    Example:
      spacy-psa describe training/model-best meta.json --report metrics/ner.json --license MIT \\
          --card training/model-best/README.md
      python -m spacy package training/model-best packages --meta-path meta.json
    """
    from spacy_psa.cli.model_card import model_card
    from spacy_psa.corpora.atomic import atomic_path
    from spacy_psa.loading import load_pipeline

    nlp = load_pipeline(model)
    meta = dict(nlp.meta)
    result = _read(report, REPORT, "scores", "speed", "test") if report else None
    measured = [_read(path, CALIBRATION, "model", "data") for path in calibration or ()]
    scores = meta.get("performance", {})
    if result:
        scores = {**result["scores"], "speed": result["speed"]["words_per_second"]}
    meta["performance"] = {name: s for name, s in scores.items() if not name.endswith("_loss")}
    source = {"name": data, "license": data_license, "author": "", "url": ""}
    given = {"license": license_, "author": author, "url": url}
    meta.update({key: value for key, value in given.items() if value})
    meta["description"] = description or _description(nlp, data)
    if data:
        meta["sources"] = [source]
    written = {output: json.dumps(meta, indent=2, ensure_ascii=False) + "\n"}
    if card:
        factories = [nlp.get_pipe_meta(name).factory for name in nlp.pipe_names]
        written[card] = model_card(meta, factories, result, measured, intended_use)
    for path, text in written.items():
        with atomic_path(path) as temporary:
            temporary.write_text(text, encoding="utf8")
    missing = [key for key in ("license", "author") if not meta.get(key)]
    if missing:
        typer.echo(f"warning: {model}: no {' and no '.join(missing)} in the card", err=True)
    typer.echo(f"Written: {', '.join(map(str, written))}")


def _description(nlp: "Language", data: str) -> str:
    from spacy_psa.cli.model_card import WHAT

    found = []
    for name in nlp.pipe_names:
        factory = nlp.get_pipe_meta(name).factory
        if factory in WHAT:
            labels = nlp.pipe_labels[name]
            shown = ", ".join(labels[:12]) + (", …" if len(labels) > 12 else "")
            found.append(f"{WHAT[factory]} ({shown})")
    trained = f", trained on {data}" if data else ""
    if not found:
        return f"Pipeline of {', '.join(nlp.pipe_names)}{trained}."
    text = f"Finds {'; '.join(found)}{trained}."
    return text + " Each prediction has an exact probability under the model (confidence = true)."


def _read(path: Path, what: str, *keys: str) -> dict[str, Any]:
    try:
        result = json.loads(path.read_text(encoding="utf8"))
        missing = [key for key in keys if not isinstance(result[key], dict)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is no {what} ({error}); give its .json file") from error
    if missing:
        raise InputError(f"{path}: is no {what} (no {missing[0]}); give its .json file")
    return dict(result)
