"""PARSEVAL of files: predicted trees against gold trees, as EVALB prints it."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from spacy_psa.corpora.atomic import write_json
from spacy_psa.errors import InputError
from spacy_psa.scoring.evalb_params import COLLINS, SPMRL, Params, read_params
from spacy_psa.scoring.parseval import SentenceScore, Totals, score_pair, total
from spacy_psa.scoring.parseval_scorer import read_scored_trees
from spacy_psa.scoring.provenance import checksums


@dataclass(frozen=True)
class FileScores:
    """The scores of a file of trees."""

    gold: Path
    test: Path
    params: Params
    places: list[str]
    """The place of each tree of TEST, for messages."""
    sentences: list[SentenceScore]

    @property
    def columns(self) -> dict[str, Totals]:
        """The totals of all sentences, and of those up to the cutoff."""
        cutoff = self.params.cutoff
        return {"All": total(self.sentences), f"<= {cutoff}": total(self.sentences, cutoff)}

    @property
    def warning(self) -> str | None:
        """The number of errors and the first of them; None if there are none."""
        errors = [(i, score) for i, score in enumerate(self.sentences) if score.status == "error"]
        if not errors:
            return None
        number, first = errors[0]
        return (
            f"{len(errors):,} of {len(self.sentences):,} sentences are errors and left out; the "
            f"first is sentence {number + 1} ({self.places[number]}): {first.reason}. If the "
            "tags differ, use --gold-tags"
        )

    def lines(self) -> Iterator[str]:
        """Yield the heads and a line for each sentence."""
        yield "  Sent.  Len.  Stat.  Recall  Prec.  Match  Gold  Test  Cross  Words  Tags"
        for number, score in enumerate(self.sentences, 1):
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
            yield f"{line}  {score.reason}".rstrip()

    def write(self, path: Path, per_sentence: bool = False) -> None:
        """Write all figures as JSON.

        Raises:
            InputError: if the file cannot be written.
        """
        settings = {
            key: sorted(value) if isinstance(value, frozenset) else value
            for key, value in asdict(self.params).items()
        }
        whole, short = self.columns.values()
        record: dict[str, Any] = {
            "gold": self.gold.as_posix(),
            "test": self.test.as_posix(),
            "data": checksums([self.gold, self.test]),
            "params": settings,
            "all": _figures(whole),
            "up_to_cutoff": _figures(short),
            "per_label": whole.per_label(),
        }
        if per_sentence:
            record["sentences"] = [_sentence(score) for score in self.sentences]
        write_json(path, record)


def score_files(
    gold: Path,
    test: Path,
    max_length: int | None = None,
    prm: Path | None = None,
    keep_punctuation: bool = False,
    gold_tags: bool = False,
) -> FileScores:
    """Score the trees of a file; the arguments are those of `spacy-psa evaluate-trees`.

    Raises:
        InputError: if a file cannot be read, or they do not have the same sentences.
    """
    if prm is not None:
        params = read_params(prm, keep_punctuation)
    else:
        params = SPMRL if keep_punctuation else COLLINS
    params = replace(params, cutoff=max_length or params.cutoff)
    parsed = list(read_scored_trees(test))
    if gold_tags or all(tag in ("", "X") for _, tree in parsed for tag in tree.tags):
        parsed = [(place, tree._replace(tags=[""] * len(tree.words))) for place, tree in parsed]
    scores = []
    for number, (ours, theirs) in enumerate(zip_longest(read_scored_trees(gold), parsed), 1):
        if ours is None or theirs is None:
            (rich, poor), (place, _) = (
                ((test, gold), theirs) if ours is None else ((gold, test), ours)
            )
            raise InputError(
                f"{place}: sentence {number} has no tree in {poor}, which ends before {rich}; "
                'write "(())" for a sentence without a parse'
            )
        scores.append(score_pair(ours[1], theirs[1], params))
    places = [place for place, _ in parsed]
    if scores and all(score.status == "error" for score in scores):
        raise InputError(
            f"{places[0]}: no sentence has the words of its gold tree: {scores[0].reason}; use "
            "the same sentences in the same order, or --gold-tags if only the tags differ"
        )
    return FileScores(gold, test, params, places, scores)


def summary(totals: Totals) -> dict[str, str]:
    """Format the lines of EVALB's summary; percentages and the average have two decimals."""
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


def _figures(totals: Totals) -> dict[str, Any]:
    names = (
        *("sentences", "errors", "skipped", "valid", "matched", "recall", "precision", "f1"),
        *("exact", "average_crossing", "no_crossing", "two_or_less_crossing", "tagging"),
    )
    return {name: getattr(totals, name) for name in names} | {
        "gold": totals.gold.total(),
        "test": totals.test.total(),
    }


def _sentence(score: SentenceScore) -> dict[str, Any]:
    values = {
        "length": score.length,
        "status": score.status,
        "matched": score.matched,
        "gold": score.gold.total(),
        "test": score.test.total(),
        "crossing": score.crossing,
        "words": score.words,
        "tags": score.tags,
    }
    return values | ({"reason": score.reason} if score.reason else {})


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
