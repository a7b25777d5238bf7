"""`spacy-psa report`: accuracy, speed and provenance of a pipeline as Markdown and JSON."""

import html
import json
from pathlib import Path
from typing import Annotated, Any

import typer

Rows = list[list[str]]


def report(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder or installed package of a pipeline.")
    ],
    test: Annotated[Path, typer.Argument(metavar="TEST.spacy", help="Gold documents.")],
    output: Annotated[
        Path, typer.Option(help="Path of the output files, without the ending.")
    ] = Path("report"),
    data: Annotated[
        list[Path] | None,
        typer.Option(help="File or folder to record checksums of; may be repeated."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Log that spacy.ConsoleLogger.v3 wrote to its output_file.")
    ] = None,
    gpu_id: Annotated[int, typer.Option(min=-1, help="Number of the GPU; -1 for the CPU.")] = -1,
) -> None:
    """Evaluate a pipeline and write a report.

    Evaluates MODEL on TEST.spacy. Writes scores, speed, settings, seed, checksums of the data and
    the machine as tables in OUTPUT.md and as OUTPUT.json, whose keys are described in
    spacy_psa.scoring.result.

    \b
    Example:
      spacy-psa report training/model-best test.spacy --output metrics/ner \\
          --log training/log.jsonl --data train.spacy
    """
    from spacy_psa.corpora.atomic import atomic_path
    from spacy_psa.loading import load_pipeline
    from spacy_psa.scoring.result import measure

    nlp = load_pipeline(model, gpu_id)
    result = measure(nlp, model, test, data or [], log)
    written = {
        ".json": json.dumps(result, indent=2, ensure_ascii=False) + "\n",
        ".md": markdown(result, nlp.config.to_str()),
    }
    for suffix, content in written.items():
        # with_suffix would remove the end of a name like psa.v1.
        with atomic_path(output.with_name(output.name + suffix)) as temporary:
            temporary.write_text(content, encoding="utf8")
    _print(result)
    typer.echo(f"Written: {output}.md, {output}.json")
    typer.echo(f"Use it: spacy-psa annotate {model} texts.txt annotated.jsonl, or in Python")
    typer.echo(f'  nlp = spacy.load("{model}")')


def overall(result: dict[str, Any]) -> Rows:
    """Give name, P, R and F of each group of scores, and each accuracy, in percent.

    Examples:
        >>> overall({"scores": {"ents_p": 0.5, "ents_r": 1.0, "ents_f": 2 / 3, "tag_acc": 0.97}})
        [['ents', '50.00', '100.00', '66.67'], ['tag_acc', '', '', '97.00']]
    """
    scores = result["scores"]
    rows = []
    for key, value in scores.items():
        name, _, kind = key.rpartition("_")
        # The words are usually given, so these scores tell nothing.
        if name == "token" or not isinstance(value, int | float):
            continue
        if kind == "f":
            rows.append([name, *(_percent(scores.get(f"{name}_{k}")) for k in "prf")])
        elif kind not in ("p", "r"):
            rows.append([key, "", "", _percent(value)])
    return rows


def per_type(result: dict[str, Any]) -> Rows:
    """Give group, label, number in the truth, P, R and F in percent, for each label."""
    rows = []
    for key, types in result["scores"].items():
        if not key.endswith("_per_type"):
            continue
        name = key.removesuffix("_per_type")
        support = result["support"].get(name.removeprefix("spans_"), {})
        for label, scores in sorted(types.items()):
            figures = [_percent(scores[k]) for k in "prf"]
            rows.append([name, label, f"{support.get(label, 0):,}", *figures])
    return rows


OVERALL = ["", "P", "R", "F"]
PER_TYPE = ["", "Type", "Gold", "P", "R", "F"]


def markdown(result: dict[str, Any], config: str) -> str:
    """Write the whole result as Markdown.

    Args:
        result: see `spacy_psa.scoring.result`.
        config: the text of config.cfg.
    """
    model, test, speed = result["model"], result["test"], result["speed"]
    parts = [
        f"# {plain(model['path'])} on {plain(test['path'])}",
        f"{test['documents']:,} documents, {test['words']:,} words. {_speed(speed)}",
        markdown_table(OVERALL, overall(result)),
    ]
    if types := per_type(result):
        parts += ["## By type", markdown_table(PER_TYPE, types)]
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


def _facts(result: dict[str, Any]) -> list[tuple[str, str, str]]:
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


def _speed(speed: dict[str, Any]) -> str:
    return (
        f"{speed['words_per_second']:,.0f} words a second "
        f"({speed['device']}, {speed['threads']} threads, batches of {speed['batch_size']})."
    )


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


def markdown_table(header: list[str], rows: Rows) -> str:
    """Write a table as Markdown, whatever is in its cells."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(plain, line)) + " |" for line in lines)


def plain(text: str) -> str:
    """Write text so that Markdown shows it, whatever is in it."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "&#124;")


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for header, rows in ((OVERALL, overall(result)), (PER_TYPE, per_type(result))):
        table = Table(title=None)
        for name in header:
            table.add_column(name, justify="left" if name in ("", "Type") else "right")
        for row in rows:
            table.add_row(*map(Text, row))
        if rows:
            console.print(table)
    console.print(_speed(result["speed"]), highlight=False)
