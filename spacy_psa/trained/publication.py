"""Meta data and cards of trained pipelines, and their way to a wheel or the Hugging Face Hub."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import srsly
from spacy.cli.package import package as package_folder
from spacy.language import Language
from spacy.util import get_minor_version_range
from thinc.api import Model

from spacy_psa import __version__
from spacy_psa.bridge.shim import shim_of
from spacy_psa.child_processes import child_environment
from spacy_psa.corpora.atomic import unwritable_as_input_error, write_json, write_text
from spacy_psa.errors import InputError
from spacy_psa.loading import load_pipeline
from spacy_psa.scoring.report import OVERALL, PER_TYPE, markdown_table, overall, per_type, plain

ANNOTATION = {
    "crf_ner": "named entities",
    "crf_chunker": "chunks",
    "crf_spans": "nested spans",
    "crf_tagger": "parts of speech",
    "constituency_parser": "constituency trees",
}
"""The annotation of the components of this package, by their factories."""
TASK = "token-classification"
USE = (
    "It is for text like its training data. On text of another kind it finds less, and its "
    "probabilities fit less: measure it on some of your own documents first."
)
REPORT = "report of `spacy-psa report`"
_BUILD = (
    "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"
)
CALIBRATION = "record of `spacy-psa calibrate`"


@dataclass(frozen=True)
class Description:
    """The parts of the meta data and the card of a model that are not in the pipeline."""

    report: Path | None = None
    """JSON of `spacy-psa report`."""
    calibration: Sequence[Path] = ()
    """JSON of `spacy-psa calibrate --json`."""
    data: str = ""
    """The name of the training data."""
    data_license: str = ""
    license: str = ""
    author: str = ""
    url: str = ""
    description: str = ""
    """The purpose of the model; by default the annotation of its components."""
    intended_use: str = ""


def describe(
    model: str,
    output: Path,
    about: Description,
    card: Path | None = None,
    name: str = "",
    version: str = "",
) -> list[str]:
    """Write the meta data of a model, for `spacy package`, and its card; list what is missing.

    `name` and `version` are by default those of the pipeline.
    """
    nlp = load_pipeline(model)
    meta = dict(nlp.meta)
    result = _read(about.report, REPORT, "scores", "speed", "test") if about.report else None
    measured = [_read_calibration(path) for path in about.calibration]
    scores = meta.get("performance", {})
    if result:
        scores = {**result["scores"], "speed": result["speed"]["words_per_second"]}
    meta["performance"] = {name: s for name, s in scores.items() if not name.endswith("_loss")}
    given = {"license": about.license, "author": about.author, "url": about.url}
    given |= {"name": name, "version": version}
    meta.update({key: value for key, value in given.items() if value})
    meta["description"] = about.description or _description(nlp, about.data)
    if extra := _extra(nlp):
        requirement = f"spacy-psa[{extra}]{get_minor_version_range(__version__)}"
        meta["requirements"] = [*dict.fromkeys([*meta.get("requirements", ()), requirement])]
    if about.data:
        source = {"name": about.data, "license": about.data_license, "author": "", "url": ""}
        meta["sources"] = [source]
    write_json(output, meta)
    if card:
        factories = [nlp.get_pipe_meta(name).factory for name in nlp.pipe_names]
        write_text(card, model_card(meta, factories, result, measured, about.intended_use))
    return [key for key in ("license", "author") if not meta.get(key)]


def package(
    model: str, output: Path, about: Description, name: str = "", version: str = ""
) -> tuple[Path, list[str]]:
    """Build a wheel of a model with its meta data and its card, without a network.

    The folder of the model does not change. `name` and `version` are by default those of the
    pipeline. Returns the wheel, and the names of missing meta data.
    """
    if not Path(model).is_dir():
        raise InputError(f"{model}: is not a folder; use the folder of a pipeline")
    with tempfile.TemporaryDirectory() as folder, unwritable_as_input_error(output):
        copy, made, meta = (Path(folder) / part for part in ("copy", "made", "meta.json"))
        shutil.copytree(model, copy)
        missing = describe(model, meta, about, copy / "README.md", name, version)
        made.mkdir()
        printed = StringIO()
        try:
            with redirect_stdout(printed), redirect_stderr(printed):
                package_folder(
                    copy, made, meta, name=name or None, version=version or None,
                    create_sdist=False, silent=False,
                )  # fmt: skip
        except SystemExit as error:
            why = " ".join(printed.getvalue().split())
            raise InputError(f"{model}: spaCy does not package it: {why}") from error
        (source,) = made.iterdir()
        output.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", _BUILD, str(output.absolute())],
            cwd=source,
            env=child_environment(),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise InputError(f"{model}: the wheel cannot be built ({lines[-1]})")
    return output / done.stdout.split()[-1], missing


def _extra(nlp: Language) -> str:
    """Name the extra of this package that the models of a pipeline need; "" for none."""
    models = (getattr(pipe, "model", None) for _, pipe in nlp.components)
    nodes = (node for model in models if isinstance(model, Model) for node in model.walk())
    encoders = [shim_of(node) for node in nodes if node.name == "pretrained"]
    if any(shim.cfg["lora_rank"] for shim in encoders):
        return "lora"
    return "pretrained" if encoders else ""


def _description(nlp: Language, data: str) -> str:
    annotated = []
    for name in nlp.pipe_names:
        factory = nlp.get_pipe_meta(name).factory
        if factory in ANNOTATION:
            labels = nlp.pipe_labels[name]
            shown = ", ".join(labels[:12]) + (", …" if len(labels) > 12 else "")
            annotated.append(f"{ANNOTATION[factory]} ({shown})")
    trained = f", trained on {data}" if data else ""
    if not annotated:
        return f"Pipeline of {', '.join(nlp.pipe_names)}{trained}."
    text = f"Finds {'; '.join(annotated)}{trained}."
    return text + " Each prediction has an exact probability under the model (confidence = true)."


def _read(path: Path, what: str, *keys: str) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf8"))
        missing = [key for key in keys if not isinstance(record[key], dict)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is not a {what} ({error}); use its .json file") from error
    if missing:
        raise InputError(f"{path}: is not a {what} (no {missing[0]}); use its .json file")
    return dict(record)


def _read_calibration(path: Path) -> dict[str, Any]:
    record = _read(path, CALIBRATION, "model")
    if not isinstance(record.get("rows"), list):
        _read(path, CALIBRATION, "data")
    return record


def model_card(
    meta: Mapping[str, Any],
    factories: Sequence[str],
    report: Mapping[str, Any] | None = None,
    calibration: Sequence[Mapping[str, Any]] = (),
    intended_use: str = "",
) -> str:
    """Write the card of a model as Markdown, with the meta data of the Hugging Face Hub on top.

    The report is a result of `scoring.result.measure`, and the calibration has records of
    `spacy-psa calibrate --json`. The intended use is by default text like its training data.
    """
    name = f"{meta['lang']}_{meta['name']}"
    scores = overall(report) if report else []
    parts = [
        f"# {plain(name)} {plain(meta['version'])}",
        plain(str(meta.get("description", ""))),
        "## Use",
        f'```python\nimport spacy\n\nnlp = spacy.load({json.dumps(name)})\ndoc = nlp("…")\n```',
        "## Data",
        *(_source(source) for source in meta.get("sources") or ()),
    ]
    if parts[-1] == "## Data":
        parts.append("Not named.")
    if report:
        test = report["test"]
        parts += [
            "## Scores",
            f"On {test['documents']:,} documents ({test['words']:,} words) that it was not trained "
            "or chosen on, in percent:",
            markdown_table(OVERALL, scores),
        ]
        if types := per_type(report):
            parts.append(markdown_table(PER_TYPE, types))
        speed = report["speed"]
        cpu = plain(str(report.get("machine", {}).get("cpu") or ""))
        parts.append(
            f"Speed: {speed['words_per_second']:,.0f} words a second with {speed['threads']} "
            f"thread{'s' * (speed['threads'] != 1)}{f' of {cpu}' if cpu else ''}."
        )
    if calibration:
        parts += ["## Confidence", *map(_confidence, calibration)]
    parts += ["## Intended use and limits", plain(intended_use) if intended_use else USE]
    who = ", ".join(str(meta[key]) for key in ("author", "email", "url") if meta.get(key))
    licence = plain(str(meta.get("license") or "not named"))
    parts += ["## Author and licence", f"{plain(who) or 'Not named.'}\n\nLicence: {licence}"]
    return _front(meta, name, factories, report, scores) + "\n\n".join(parts) + "\n"


def _source(source: Mapping[str, Any]) -> str:
    rest = [source[key] for key in ("author", "url") if source.get(key)]
    about = f" ({', '.join(rest)})" if rest else ""
    licence = source.get("license") or "not named"
    return "- " + plain(f"{source['name']}{about}, licence: {licence}")


def _confidence(record: Mapping[str, Any]) -> str:
    pipe = record["model"]["pipe"]
    if "rows" in record:
        return " ".join(_promised(pipe, record, row) for row in record["rows"])
    part = record["data"].get("test") or record["data"]["dev"]
    if isinstance(part, list):
        held = min(row["held"] for row in part)
        return (
            f"`spacy-psa annotate --counts` counts the mentions of `{pipe}` with intervals of 95%; "
            f"of drawn corpora of 20 documents, at least {held:.3f} had the true count in them."
        )
    if "coverage" in record:
        return (
            f"`{pipe}.prediction_sets` returns sets that hold the truth with a probability of at "
            f"least {record['coverage']['level']:g} in documents like those of the threshold; "
            f"{part['coverage']:.3f} was observed in {part['documents']:,} documents."
        )
    before, after = part["before"], part["after"]
    if before["ece"] is None or after["ece"] is None:
        return f"`{pipe}` predicted nothing in {part['documents']:,} documents of a calibration."
    return (
        f"The probabilities of `{pipe}` were fitted to other documents by a temperature of "
        f"{record['temperature']['after']:.3f}. Their expected calibration error in "
        f"{part['documents']:,} documents is {after['ece']:.4f} ({before['ece']:.4f} before)."
    )


def _promised(pipe: str, record: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    what = "all labels" if row["label"] == "all" else row["label"]
    recall = row["recall"]
    observed = "" if recall is None else f"; {recall:.3f} was observed in {row['data']}"
    return (
        f"`spacy-psa annotate --redact` finds {record['recall']:g} of the spans of {what} in the "
        f"mean over documents like those of dev, by `{pipe}`, with a confidence of "
        f"{record['confidence']:g}{observed}."
    )


def _front(
    meta: Mapping[str, Any],
    name: str,
    factories: Sequence[str],
    report: Mapping[str, Any] | None,
    scores: Sequence[Sequence[str]],
) -> str:
    tags = ["spacy", "spacy-psa", *([TASK] if ANNOTATION.keys() & set(factories) else [])]
    front: dict[str, Any] = {"tags": tags, "library_name": "spacy"}
    front["language"] = [meta["lang"] if meta["lang"] != "xx" else "multilingual"]
    if meta.get("license"):
        front["license"] = meta["license"].replace(" ", "-").lower()
    if report:
        spans, accuracies = [], []
        for row, *values in scores:
            if all(values):
                spans += [
                    {"name": f"{row} {kind}", "type": kind, "value": float(value) / 100}
                    for kind, value in zip(("precision", "recall", "f1"), values)
                ]
            else:
                accuracy = float(values[-1]) / 100
                accuracies.append({"name": row, "type": "accuracy", "value": accuracy})
        task = {"type": TASK, "name": "annotation"}
        data = {"name": report["test"]["path"], "type": "test"}
        result = {"task": task, "dataset": data, "metrics": [*spans, *accuracies]}
        front["model-index"] = [{"name": name, "results": [result]}]
    return f"---\n{srsly.yaml_dumps(front)}---\n"


def push(
    model: Path,
    repository: str,
    package: Path | None = None,
    private: bool = False,
    message: str = "Update the pipeline",
    token: str | None = None,
) -> str:
    """Upload a pipeline to the Hugging Face Hub in one commit; return a line with its address.

    Args:
        repository: its name, NAME/REPOSITORY; a missing one is made.
        package: an archive or wheel to put next to it.
        token: a token with the right to write.
    """
    try:
        from huggingface_hub import CommitOperationAdd, HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ModuleNotFoundError as error:
        raise InputError(
            "huggingface_hub is not installed: pip install 'spacy-psa[hub]'"
        ) from error
    try:
        meta = json.loads((model / "meta.json").read_text(encoding="utf8"))
        title = f"{meta['lang']}_{meta['name']} {meta['version']}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{model}: is not a folder of a pipeline ({error}); use one of `spacy-psa train`"
        ) from error
    if package is not None and not package.is_file():
        raise InputError(
            f"--package {package}: no such file; `spacy package` writes one below dist"
        )
    files = {path.relative_to(model).as_posix(): path for path in sorted(model.rglob("*"))}
    files |= {package.name: package} if package else {}
    added = [CommitOperationAdd(name, path) for name, path in files.items() if path.is_file()]
    hub = HfApi(token=token, library_name="spacy-psa")
    try:
        hub.create_repo(repository, private=private or None, exist_ok=True)
        done = hub.create_commit(repository, added, commit_message=message)
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{repository}: the hub has refused {title} ({reason})") from error
    return f"{title}: {len(added)} files, {done.commit_url}"
