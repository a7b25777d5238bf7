"""A measured pipeline as tables and as a page of Markdown; see `spacy_psa.scoring.result`."""

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy_psa.corpora.atomic import write_json, write_text
from spacy_psa.errors import InputError
from spacy_psa.scoring.partial_credit import SCHEMES
from spacy_psa.scoring.result import measure

if TYPE_CHECKING:
    from spacy.language import Language

Rows = list[list[str]]
OVERALL = ["", "P", "R", "F"]
PER_TYPE = ["", "Type", "Gold", "P", "R", "F"]
PARTIAL_CREDIT = ["", "Scheme", "P", "R", "F"]
BY_SCHEME = ["", "", "Gold", *(f"F, {scheme}" for scheme in SCHEMES)]

MARKS = re.compile(
    r"[\\`*~\[\]|]|(?<![^\W_])_|_(?![^\W_])|^#(?=#{0,5} )|^[-+](?= |-+$)|(?<=^\d)[.)](?= )"
)
"""The marks of Markdown, of which those of a heading or a list count at the beginning."""


def report(
    nlp: "Language", model: str, test: Path, output: Path, data: list[Path], log: Path | None
) -> dict[str, Any]:
    """Measure a pipeline, and write the result to OUTPUT.json and OUTPUT.md.

    The arguments are those of `measure`, as is the result.

    Raises:
        InputError: if nothing can be scored.
    """
    result = measure(nlp, model, test, data, log)
    if not overall(result):
        raise InputError(
            f"{test}: has none of the annotation that {model} predicts; use annotated documents"
        )
    # with_suffix would remove the end of a name like psa.v1.
    write_json(output.with_name(f"{output.name}.json"), result)
    page = markdown(result, nlp.config.to_str())
    write_text(output.with_name(f"{output.name}.md"), page)
    return result


def overall(result: Mapping[str, Any]) -> Rows:
    """Return name, P, R and F of each group of scores, and each accuracy, in percent."""
    scores = result["scores"]
    rows = []
    for key, value in scores.items():
        name, _, kind = key.rpartition("_")
        # The words are usually given, so these scores mean nothing.
        if name == "token" or not isinstance(value, int | float):
            continue
        if kind == "f":
            rows.append([name, *(_percent(scores.get(f"{name}_{k}")) for k in "prf")])
        elif kind not in ("p", "r"):
            rows.append([key, "", "", _percent(value)])
    return rows


def per_type(result: Mapping[str, Any]) -> Rows:
    """Return group, label, number in the truth, P, R and F in percent, of each label."""
    rows = []
    for key, types in result["scores"].items():
        if not key.endswith("_per_type"):
            continue
        name = key.removesuffix("_per_type")
        support = result["support"].get(name.removeprefix("spans_"), {})
        for label, scores in sorted(types.items()):
            if not isinstance(scores, Mapping):  # cats_auc_per_type
                continue
            figures = [_percent(scores[k]) for k in "prf"]
            rows.append([name, label, f"{support.get(label, 0):,}", *figures])
    return rows


def partial_credit(result: Mapping[str, Any]) -> Rows:
    """Return group, scheme, P, R and F in percent."""
    return [
        [group, scheme, *(_percent(scores[kind]) for kind in "prf")]
        for group, schemes in result["partial_credit"].items()
        for scheme, scores in schemes.items()
    ]


def by_scheme(result: Mapping[str, Any]) -> Rows:
    """Return group, label or number of tokens, number in the truth, and F in each scheme."""
    rows = []
    for group, schemes in result["partial_credit"].items():
        for part in ("per_type", "per_length"):
            for name, scores in schemes["strict"][part].items():
                figures = [_percent(schemes[scheme][part][name]["f"]) for scheme in SCHEMES]
                unit = "" if part == "per_type" else " token" if name == "1" else " tokens"
                rows.append([group, f"{name}{unit}", f"{scores['gold']:,}", *figures])
    return rows


def per_genre(result: Mapping[str, Any]) -> Rows:
    """Return a head, and a row with the words and each F and accuracy of each genre, in percent."""
    keys = [key for key in result["scores"] if key.endswith(("_f", "_acc")) and "token" not in key]
    rows = [
        [genre, f"{part['words']:,}", *(_percent(part["scores"].get(key)) for key in keys)]
        for genre, part in result["genres"].items()
    ]
    return [["Genre", "Words", *keys], *rows] if rows else []


def markdown(result: Mapping[str, Any], config: str) -> str:
    """Write a result of `measure` and the text of its config as Markdown."""
    model, test = result["model"], result["test"]
    parts = [
        f"# {plain(model['path'])} on {plain(test['path'])}",
        f"{test['documents']:,} documents, {test['words']:,} words. {speed_of(result)}",
        markdown_table(OVERALL, overall(result)),
    ]
    if types := per_type(result):
        parts += ["## By type", markdown_table(PER_TYPE, types)]
    if rows := partial_credit(result):
        parts += ["## Partial credit", markdown_table(PARTIAL_CREDIT, rows)]
        parts += [markdown_table(BY_SCHEME, by_scheme(result))]
    if genres := per_genre(result):
        parts += ["## By genre", markdown_table(genres[0], genres[1:])]
    if result["dev"]:
        best = result["best"]
        rows = [
            [str(row["epoch"]), str(row["step"]), _percent(row["score"])] for row in result["dev"]
        ]
        parts += [
            "## Development set while training",
            f"Best: {_percent(best['score'])} in epoch {best['epoch']}, step {best['step']}.",
            markdown_table(["Epoch", "Step", "Score"], rows),
        ]
    parts += [
        "## Made by",
        markdown_table(["", "", ""], [[name, key, value] for name, key, value in _facts(result)]),
        "## Data",
        markdown_table(["File", "MD5"], [[path, md5] for path, md5 in result["data"].items()]),
        "## Config",
        f"```ini\n{config.strip()}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _facts(result: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    commit = result["commit"] or "none"
    if result["modified"]:
        commit += ", with changes"
    seed = "none" if result["seed"] is None else str(result["seed"])
    facts = [
        ("run", "date", result["date"]),
        ("run", "seed", seed),
        ("run", "commit", commit),
        ("run", "pipeline", ", ".join(result["model"]["pipeline"])),
    ]
    for name in ("machine", "versions"):
        facts += [(name, k, str(v)) for k, v in result[name].items() if v is not None]
    return facts


def speed_of(result: Mapping[str, Any]) -> str:
    """Describe the speed in a sentence."""
    speed = result["speed"]
    return (
        f"{speed['words_per_second']:,.0f} words a second "
        f"({speed['device']}, {speed['threads']} threads, batches of {speed['batch_size']})."
    )


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


def markdown_table(header: list[str], rows: Rows) -> str:
    """Write a table as Markdown, with any text in its cells."""
    head, *lines = ("| " + " | ".join(map(plain, line)) + " |" for line in [header, *rows])
    return "\n".join([head, "|" + " --- |" * len(header), *lines])


def plain(text: str) -> str:
    """Escape text, so that Markdown shows it as it is: no link, picture, code or heading."""
    escaped = html.escape(" ".join(text.split()), quote=False)
    return MARKS.sub(lambda mark: f"&#{ord(mark[0])};", escaped)
