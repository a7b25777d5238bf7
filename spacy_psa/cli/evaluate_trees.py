"""`spacy-psa evaluate-trees`: PARSEVAL of predicted trees, as EVALB prints it."""

import json
from dataclasses import asdict, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy_psa.scoring.evalb_params import Params
    from spacy_psa.scoring.parseval import SentenceScore, Totals

Trees = Annotated[
    Path, typer.Argument(metavar="GOLD", help="Gold trees: in brackets, or a .spacy file.")
]


def evaluate_trees(
    gold: Trees,
    test: Annotated[
        Path, typer.Argument(metavar="TEST", help="Predicted trees of the same sentences.")
    ],
    max_length: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Longest sentence of the second column, in words; default: as in the rules.",
        ),
    ] = None,
    prm: Annotated[
        Path | None, typer.Option(help="Rules in EVALB's format; default: COLLINS.prm.")
    ] = None,
    keep_punctuation: Annotated[
        bool,
        typer.Option("--keep-punctuation", help="Delete no words, as in the SPMRL shared tasks."),
    ] = False,
    json_path: Annotated[
        Path | None, typer.Option("--json", metavar="PATH", help="JSON file for the figures.")
    ] = None,
    gold_tags: Annotated[
        bool,
        typer.Option("--gold-tags", help="Let the gold tags alone say which words are deleted."),
    ] = False,
    per_sentence: Annotated[
        bool, typer.Option("--per-sentence", help="Print a line for each sentence, too.")
    ] = False,
) -> None:
    """Compare predicted constituency trees with gold trees.

    Prints labelled recall, precision and F1 as EVALB does: of all sentences in the first column, of
    sentences up to --max-length in the second. GOLD and TEST hold the same sentences in the same
    order. A sentence without a parse is "(())" in TEST and is skipped. A sentence is an error if
    its words differ from the gold words, also if other words were deleted as punctuation; it is
    counted and left out, and a warning says so. If all tags of TEST are X, it has no tags, and the
    gold tags say which words are deleted, as --gold-tags does.

    \b
    Example:
      spacy-psa evaluate-trees gold.txt parsed.txt --json figures.json
    """
    from spacy_psa.corpora.atomic import atomic_path
    from spacy_psa.scoring.evalb_params import COLLINS, SPMRL, read_params
    from spacy_psa.scoring.parseval import total

    if prm is not None:
        params = read_params(prm, keep_punctuation)
    else:
        params = SPMRL if keep_punctuation else COLLINS
    params = replace(params, cutoff=max_length or params.cutoff)
    places, scores = _score(gold, test, params, gold_tags)
    if scores and all(score.status == "error" for score in scores):
        raise InputError(
            f"{places[0]}: no sentence has the words of its gold tree: {scores[0].reason}; give "
            "the same sentences in the same order, or --gold-tags if only the tags differ"
        )
    columns = {"All": total(scores), f"<= {params.cutoff}": total(scores, params.cutoff)}
    if json_path is not None:
        record = _record(gold, test, params, list(columns.values()))
        if per_sentence:
            record["sentences"] = [_sentence(score) for score in scores]
        with atomic_path(json_path) as temporary:
            temporary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf8")
    if per_sentence:
        _print_sentences(scores)
    _print(columns)
    _warn(scores, places)


def summary(totals: "Totals") -> dict[str, str]:
    """Format the lines of EVALB's summary; percentages and the average have two decimals.

    Examples:
        >>> from spacy_psa.scoring.parseval import Totals
        >>> summary(Totals())["Bracketing F1"]
        '0.00'
    """
    return {
        "Sentences": f"{totals.sentences}",
        "Error sentences": f"{totals.errors}",
        "Skipped sentences": f"{totals.skipped}",
        "Valid sentences": f"{totals.valid}",
        "Bracketing recall": _percent(totals.recall),
        "Bracketing precision": _percent(totals.precision),
        "Bracketing F1": _percent(totals.f1),
        "Complete match": _percent(totals.exact),
        "Average crossing": f"{totals.average_crossing:.2f}",
        "No crossing": _percent(totals.no_crossing),
        "2 or less crossing": _percent(totals.two_or_less_crossing),
        "Tagging accuracy": _percent(totals.tagging),
    }


def _score(
    gold: Path, test: Path, params: "Params", gold_tags: bool
) -> "tuple[list[str], list[SentenceScore]]":
    """Give the place of each tree of TEST, and its score."""
    from spacy_psa.scoring.parseval import score_pair
    from spacy_psa.scoring.parseval_scorer import read_scored_trees

    scores = []
    parsed = list(read_scored_trees(test))
    if gold_tags or all(tag in ("", "X") for _, tree in parsed for tag in tree.tags):
        parsed = [(place, tree._replace(tags=[""] * len(tree.words))) for place, tree in parsed]
    pairs = zip_longest(read_scored_trees(gold), parsed)
    for number, (ours, theirs) in enumerate(pairs, 1):
        if ours is None or theirs is None:
            (rich, poor), (place, _) = (
                ((test, gold), theirs) if ours is None else ((gold, test), ours)
            )
            raise InputError(
                f"{place}: sentence {number} has no tree in {poor}, which ends before {rich}; "
                'write "(())" for a sentence without a parse'
            )
        scores.append(score_pair(ours[1], theirs[1], params))
    return [place for place, _ in parsed], scores


def _warn(scores: "list[SentenceScore]", places: list[str]) -> None:
    left_out = [(i, score) for i, score in enumerate(scores) if score.status == "error"]
    if left_out:
        number, first = left_out[0]
        typer.echo(
            f"warning: {len(left_out):,} of {len(scores):,} sentences are errors and left out; the "
            f"first is sentence {number + 1} ({places[number]}): {first.reason}. If the "
            "tags differ, give --gold-tags",
            err=True,
        )


def _record(gold: Path, test: Path, params: "Params", columns: "list[Totals]") -> dict[str, Any]:
    from spacy_psa.scoring.provenance import checksums

    settings = {
        key: sorted(value) if isinstance(value, frozenset) else value
        for key, value in asdict(params).items()
    }
    return {
        "gold": gold.as_posix(),
        "test": test.as_posix(),
        "data": checksums([gold, test]),
        "params": settings,
        "all": _figures(columns[0]),
        "up_to_cutoff": _figures(columns[1]),
        "per_label": columns[0].per_label(),
    }


def _figures(totals: "Totals") -> dict[str, Any]:
    names = (
        *("sentences", "errors", "skipped", "valid", "matched", "recall", "precision", "f1"),
        *("exact", "average_crossing", "no_crossing", "two_or_less_crossing", "tagging"),
    )
    return {name: getattr(totals, name) for name in names} | {
        "gold": totals.gold.total(),
        "test": totals.test.total(),
    }


def _sentence(score: "SentenceScore") -> dict[str, Any]:
    found = {
        "length": score.length,
        "status": score.status,
        "matched": score.matched,
        "gold": score.gold.total(),
        "test": score.test.total(),
        "crossing": score.crossing,
        "words": score.words,
        "tags": score.tags,
    }
    return found | ({"reason": score.reason} if score.reason else {})


def _print_sentences(scores: "list[SentenceScore]") -> None:
    typer.echo("  Sent.  Len.  Stat.  Recall  Prec.  Match  Gold  Test  Cross  Words  Tags")
    for number, score in enumerate(scores, 1):
        figures = _sentence(score)
        recall, precision = (
            100 * score.matched / figures[side] if figures[side] else 0.0
            for side in ("gold", "test")
        )
        line = (
            f"{number:7d} {score.length:5d}  {score.status:>5} {recall:7.2f} {precision:6.2f}"
            f" {score.matched:6d} {figures['gold']:5d} {figures['test']:5d}"
            f" {score.crossing:6d} {score.words:6d} {score.tags:5d}"
        )
        typer.echo(f"{line}  {score.reason}".rstrip())


def _print(columns: "dict[str, Totals]") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", *columns)
    for column in table.columns[1:]:
        column.justify = "right"
    found = [summary(totals) for totals in columns.values()]
    for name in found[0]:
        table.add_row(name, *(column[name] for column in found))
    Console().print(table)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
