"""The card of a model: what it finds, what it was trained on, how good it is, what it is for."""

from collections.abc import Mapping, Sequence
from typing import Any

import srsly

from spacy_psa.cli.report import OVERALL, PER_TYPE, markdown_table, overall, per_type, plain

WHAT = {
    "crf_ner": "named entities",
    "crf_chunker": "chunks",
    "crf_tagger": "parts of speech",
    "constituency_parser": "constituency trees",
}
"""What the components of this package find."""
TASK = "token-classification"
USE = (
    "It is for text like its training data. On text of another kind it finds less, and its "
    "probabilities fit less: measure it on some of your own documents first."
)


def model_card(
    meta: Mapping[str, Any],
    factories: Sequence[str],
    report: Mapping[str, Any] | None = None,
    calibration: Sequence[Mapping[str, Any]] = (),
    intended_use: str = "",
) -> str:
    """Write the card of a model as Markdown, with the meta data of the Hugging Face Hub on top.

    Args:
        meta: the meta data of the pipeline.
        factories: the factories of its components.
        report: what `spacy-psa report` has measured; see `spacy_psa.scoring.result`.
        calibration: what `spacy-psa calibrate --json` has measured.
        intended_use: what the model is for; by default, text like its training data.

    Examples:
        >>> meta = {"lang": "en", "name": "names", "version": "1.0.0"}
        >>> print(model_card(meta, ["crf_ner"]).partition("# ")[2].splitlines()[0])
        en_names 1.0.0
    """
    name = f"{meta['lang']}_{meta['name']}"
    scores = overall(dict(report)) if report else []
    parts = [
        f"# {name} {meta['version']}",
        plain(str(meta.get("description", ""))),
        "## Use",
        f'```python\nimport spacy\n\nnlp = spacy.load("{name}")\ndoc = nlp("…")\n```',
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
        if types := per_type(dict(report)):
            parts.append(markdown_table(PER_TYPE, types))
        speed = report["speed"]
        cpu = report.get("machine", {}).get("cpu", "")
        parts.append(
            f"Speed: {speed['words_per_second']:,.0f} words a second with {speed['threads']} "
            f"thread{'s' * (speed['threads'] != 1)}{f' of {cpu}' if cpu else ''}."
        )
    sure = [_confidence(found) for found in calibration]
    if sure:
        parts += ["## Confidence", *sure]
    parts += ["## Intended use and limits", plain(intended_use) if intended_use else USE]
    who = ", ".join(str(meta[key]) for key in ("author", "email", "url") if meta.get(key))
    licence = plain(str(meta.get("license") or "not named"))
    parts += ["## Author and licence", f"{plain(who) or 'Not named.'}\n\nLicence: {licence}"]
    return _front(meta, name, factories, report, scores) + "\n\n".join(parts) + "\n"


def _source(source: Mapping[str, Any]) -> str:
    rest = [source[key] for key in ("author", "url") if source.get(key)]
    about = f" ({', '.join(rest)})" if rest else ""
    return plain(f"- {source['name']}{about}, licence: {source.get('license') or 'not named'}")


def _confidence(found: Mapping[str, Any]) -> str:
    pipe, data = found["model"]["pipe"], found["data"]
    part = data.get("test") or data["dev"]
    if "coverage" in found:
        return (
            f"`{pipe}.prediction_sets` gives sets that hold what is true with a probability of at "
            f"least {found['coverage']['level']:g} in documents like those that the threshold was "
            f"found with; {part['coverage']:.3f} was observed in {part['documents']:,} documents."
        )
    before, after = part["before"], part["after"]
    return (
        f"The probabilities of `{pipe}` were fitted to other documents by a temperature of "
        f"{found['temperature']['after']:.3f}. Their expected calibration error in "
        f"{part['documents']:,} documents is {after['ece']:.4f} ({before['ece']:.4f} before)."
    )


def _front(
    meta: Mapping[str, Any],
    name: str,
    factories: Sequence[str],
    report: Mapping[str, Any] | None,
    scores: Sequence[Sequence[str]],
) -> str:
    tags = ["spacy", "spacy-psa", *([TASK] if WHAT.keys() & set(factories) else [])]
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
