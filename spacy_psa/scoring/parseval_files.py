"""PARSEVAL of files: predicted trees against gold trees, as EVALB prints it."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from spacy_psa.corpora.atomic import write_json
from spacy_psa.errors import InputError
from spacy_psa.scoring.evalb_params import COLLINS, SPMRL, Params, read_params
from spacy_psa.scoring.parseval import SentenceScore, Totals, score_pair, total
from spacy_psa.scoring.parseval_scorer import pair_sentences, read_scored_trees
from spacy_psa.scoring.provenance import checksums


@dataclass(frozen=True)
class FileScores:
    """The scores of a file of trees."""

    gold: Path
    test: Path
    params: Params
    places: list[str]
    """The place of each sentence of TEST, for messages."""
    same_words: list[bool]
    """Whether the gold tree of each sentence has the same words, including deleted ones."""
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
        advice = ""
        if any(self.same_words[i] for i, _ in errors):
            advice = ". Where only the tags differ, use --gold-tags"
        return (
            f"{len(errors):,} of {len(self.sentences):,} sentences are errors and left out; the "
            f"first is sentence {number + 1} ({self.places[number]}): {first.reason}{advice}"
        )

    def lines(self) -> Iterator[str]:
        """Yield the heads and a line for each sentence."""
        yield "  Sent.  Len.  Stat.  Recall  Prec.  Match  Gold  Test  Cross  Words  Tags"
        for number, score in enumerate(self.sentences, 1):
            figures = _sentence(score)
            recall, precision = 100 * score.recall, 100 * score.precision
            line = (
                f"{number:7d} {score.length:5d}  {score.status:>5} {recall:7.2f} {precision:6.2f}"
                f" {score.matched:6d} {figures['gold']:5d} {figures['test']:5d}"
                f" {score.crossing:6d} {score.words:6d} {score.tags:5d}"
            )
            yield f"{line}  {score.reason}".rstrip()

    def write(self, path: Path, per_sentence: bool = False) -> None:
        """Write all figures as JSON."""
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
    """Score the trees of a file; the arguments are those of `spacy-psa evaluate-trees`."""
    if prm is not None:
        params = read_params(prm, keep_punctuation)
    else:
        params = SPMRL if keep_punctuation else COLLINS
    params = replace(params, cutoff=max_length or params.cutoff)
    ours, theirs = pair_sentences(read_scored_trees(gold), read_scored_trees(test))
    if len(ours) != len(theirs):
        poor, rich = (gold, test) if len(ours) < len(theirs) else (test, gold)
        first = min(len(ours), len(theirs))
        place, _ = max(ours, theirs, key=len)[first]
        raise InputError(
            f"{place}: sentence {first + 1} has no tree in {poor}, which ends before {rich}; "
            'write a blank line or "(())" for a sentence without a parse'
        )
    untagged = gold_tags or all(tag in ("", "X") for _, tree in theirs for tag in tree.tags)
    scores, same_words = [], []
    for (_, right), (_, tree) in zip(ours, theirs, strict=True):
        predicted = tree._replace(tags=[""] * len(tree.words)) if untagged else tree
        scores.append(score_pair(right, predicted, params))
        same_words.append(right.words == tree.words)
    places = [place for place, _ in theirs]
    if scores and all(score.status == "error" for score in scores):
        remedy = "--gold-tags" if all(same_words) else "the same sentences in the same order"
        raise InputError(
            f"{places[0]}: no sentence has the words of its gold tree: {scores[0].reason}; "
            f"use {remedy}"
        )
    return FileScores(gold, test, params, places, same_words, scores)


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
        "recall": score.recall,
        "precision": score.precision,
        "f1": score.f1,
        "crossing": score.crossing,
        "words": score.words,
        "tags": score.tags,
    }
    return values | ({"reason": score.reason} if score.reason else {})


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
