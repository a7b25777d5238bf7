"""PARSEVAL of docs and files: the scorer `spacy-psa.parseval_scorer.v1`, and trees to score."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_psa.corpora.bracketing import is_comment, read_trees
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.corpora.lines import read_lines
from spacy_psa.corpora.tag_schemes import Span
from spacy_psa.corpora.trees import Parsed
from spacy_psa.errors import InputError
from spacy_psa.scoring.evalb_params import COLLINS, SPMRL, Params
from spacy_psa.scoring.parseval import SentenceScore, brackets, compare, total
from spacy_psa.sentences import sentence_bounds

SCORES = ("p", "r", "f", "exact", "no_crossing", "tag_acc", "per_type")
IN_LOGS = ("p", "r", "f", "exact")
"""Scores with short names, since logs cut long ones off."""
PRINTED = ("p", "r", "f", "per_type")
"""Scores that `spacy evaluate --spans-key` prints."""
KEY = "constituents"
USUAL_KEY = "sc"
"""The --spans-key of `spacy evaluate` where none is given."""


def parseval_scorer(
    spans_key: str | None = None, keep_punctuation: bool = False
) -> Callable[..., dict[str, Any]]:
    """The scorer `spacy-psa.parseval_scorer.v1`; see `score_constituents`.

    Args:
        spans_key: the span group with the constituents; None for that of the component.
        keep_punctuation: whether to use the rules of the SPMRL shared tasks instead of COLLINS.prm.
    """
    params = SPMRL if keep_punctuation else COLLINS
    return partial(score_constituents, spans_key=spans_key, params=params)


def score_constituents(
    examples: Iterable[Example],
    *,
    spans_key: str | None = None,
    component_key: str = KEY,
    params: Params = COLLINS,
    **_: Any,
) -> dict[str, Any]:
    """Score the constituents of docs by PARSEVAL.

    Only docs whose reference has `doc.spans[spans_key]` count. If a predicted doc has no such
    group, it has no brackets.

    The sentences are those of the reference; a reference without sentences is one sentence. The
    parts of speech of the reference decide which words are deleted, so no sentence is an error. A
    predicted constituent counts in the sentence where it begins, even if it ends in another one.
    The tokens of the two docs may differ: offsets are compared in characters without white space.

    Args:
        spans_key: the span group with the constituents; None for `component_key`.
        component_key: the span group of the component that predicted.

    Returns:
        `tree_p`, `tree_r` and `tree_f` of labelled brackets, for the columns of a log, and the same
        as `<key>_p`, `<key>_r` and `<key>_f`, and as `spans_<key>_p` and so on, which `spacy
        evaluate --spans-key <key>` prints; where no predicted doc has another span group, also as
        `spans_sc_p` and so on, which `spacy evaluate` prints without this option; `tree_exact` and
        `<key>_exact`, the fraction of sentences with all brackets right; `<key>_no_crossing`, the
        fraction of sentences without a bracket that crosses a gold one; `<key>_tag_acc`, the
        fraction of words with the gold `token.tag_`, or None if the docs have no predicted tags;
        and `<key>_per_type`, {label: {p, r, f}}. All are None if no reference has the group.
    """
    key = component_key if spans_key is None else spans_key
    examples = list(examples)
    scores = sentence_scores(examples, spans_key=key, params=params)
    if not scores:
        return _named([key], [None] * len(SCORES))
    totals = total(scores)
    figures = (
        totals.precision,
        totals.recall,
        totals.f1,
        totals.exact,
        totals.no_crossing,
        totals.tagging,
        totals.per_label(),
    )
    free = not any(_has_other_spans(example, key) for example in examples)
    return _named([key, USUAL_KEY] if free else [key], figures)


def _has_other_spans(example: Example, key: str) -> bool:
    """Whether another component may have scores of spans under the usual key."""
    return USUAL_KEY in example.reference.spans or not example.predicted.spans.keys() <= {key}


def _named(keys: Sequence[str], figures: Sequence[Any]) -> dict[str, Any]:
    named = dict(zip(SCORES, figures, strict=True))
    short = {f"tree_{name}": named[name] for name in IN_LOGS}
    printed = {f"spans_{key}_{name}": named[name] for key in keys for name in PRINTED}
    return short | {f"{keys[0]}_{name}": figure for name, figure in named.items()} | printed


def sentence_scores(
    examples: Iterable[Example], *, spans_key: str, params: Params = COLLINS
) -> list[SentenceScore]:
    """Score each sentence; the arguments are those of `score_constituents`."""
    scores: list[SentenceScore] = []
    for example in examples:
        if spans_key in example.reference.spans:
            scores += _score_example(example, spans_key, params)
    return scores


def _score_example(example: Example, key: str, params: Params) -> Iterator[SentenceScore]:
    reference, predicted = example.reference, example.predicted
    letters, other_letters = _letters(reference), _letters(predicted)
    # One entry for each character, so that offsets of the tokens of both docs can be looked up.
    kept = [
        not (token.is_space or params.deletes_word(token.tag_))
        for token in reference
        for _ in range(letters[token.i], letters[token.i + 1])
    ]
    # The texts are equal except for white space. If they are not, the rest is kept.
    kept += [True] * (other_letters[-1] - len(kept))
    gold = _by_sentence(reference, _spans(reference, key, letters), letters)
    test = _by_sentence(reference, _spans(predicted, key, other_letters), letters)
    tags = _tags(predicted, other_letters, params) if predicted.has_annotation("TAG") else None
    bounds = sentence_bounds(reference)
    for (start, end), ours, theirs in zip(bounds, gold, test, strict=True):
        words = {
            (letters[i], letters[i + 1]): params.tag(reference[i].tag_)
            for i in range(start, end)
            if letters[i] < letters[i + 1] and kept[letters[i]]
        }
        if not words:
            yield SentenceScore(end - start, "skip", "no words are left")
            continue
        score = compare(brackets(ours, kept, params), brackets(theirs, kept, params), params)
        if tags is not None:
            right = sum(tags.get(place) == tag for place, tag in words.items())
            score = replace(score, words=len(words), tags=right)
        yield replace(score, length=end - start)


def _letters(doc: Doc) -> list[int]:
    """(n + 1,) the number of characters, without white space, before each token and the end."""
    counts = (len("".join(token.text.split())) for token in doc)
    return [0, *accumulate(counts)]


def _spans(doc: Doc, key: str, letters: list[int]) -> list[Span]:
    group = doc.spans.get(key, ())
    return [(letters[span.start], letters[span.end], span.label_) for span in group]


def _tags(doc: Doc, letters: list[int], params: Params) -> dict[tuple[int, int], str]:
    return {(letters[t.i], letters[t.i + 1]): params.tag(t.tag_) for t in doc}


def _by_sentence(doc: Doc, spans: list[Span], letters: list[int]) -> list[list[Span]]:
    """Group spans by the sentence of `doc` in which they begin."""
    starts = [letters[start] for start, _ in sentence_bounds(doc)]
    grouped: list[list[Span]] = [[] for _ in starts]
    for span in spans:
        grouped[bisect_right(starts, span[0]) - 1].append(span)
    return grouped


Placed = tuple[str, Parsed]
"""The place of a sentence, for messages, and its tree."""


class ScoredFile(NamedTuple):
    """The sentences of a file, by trees and as EVALB has them, by lines."""

    trees: list[Placed]
    """Each tree."""
    lines: list[Placed]
    """Each line that is not a comment: a blank one is a sentence without a parse, and several trees
    on a line are one sentence. If a tree has several lines, or in a `.spacy` file, these are the
    `trees`."""


def read_scored_trees(path: Path) -> ScoredFile:
    """Read the trees of a file.

    A `.spacy` file has its trees in `doc.spans["constituents"]`; white space inside a word is _, as
    in brackets. Other files, plain or .gz, have bracketed trees, each on one line or several. Empty
    elements count as words here, and a sentence without a parse is a tree without words, "(())".
    """
    if path.suffix == ".spacy":
        docs = list(_read_docs(path))
        return ScoredFile(docs, docs)
    repairs: Counter[str] = Counter()
    last = 0
    comments = set()

    def numbered() -> Iterator[tuple[int, str]]:
        nonlocal last
        for line in read_lines(path, repairs):
            last, text = line
            if is_comment(text):
                comments.add(last)
            yield line

    trees: list[Placed] = []
    by_line: dict[int, Parsed] = {}
    whole = True
    for number, tree in read_trees(str(path), numbered(), repairs, keep_empty=True):
        trees.append((f"{path}:{number}", tree))
        whole = whole and number == last
        by_line[number] = _join(by_line[number], tree) if number in by_line else tree
    if not whole:
        return ScoredFile(trees, trees)
    blank = Parsed([], [], [])
    numbers = (i for i in range(1, last + 1) if i not in comments)
    lines = [(f"{path}:{i}", by_line.get(i, blank)) for i in numbers]
    return ScoredFile(trees, lines)


def pair_sentences(gold: ScoredFile, test: ScoredFile) -> tuple[list[Placed], list[Placed]]:
    """Choose the sentences of two files to compare: lines if there are as many, otherwise trees.

    Blank lines at the end of one file, beyond the end of the other, do not count. The lists
    differ in length if the files have neither as many lines nor as many trees.
    """
    ours, theirs = list(gold.lines), list(test.lines)
    for longer, other in ((ours, theirs), (theirs, ours)):
        while len(longer) > len(other) and not longer[-1][1].words:
            longer.pop()
    if len(ours) != len(theirs) and len(gold.trees) == len(test.trees):
        return gold.trees, test.trees
    return ours, theirs


def _join(tree: Parsed, other: Parsed) -> Parsed:
    """Join the trees of one line."""
    shift = len(tree.words)
    spans = [(start + shift, end + shift, label) for start, end, label in other.constituents]
    return Parsed(tree.words + other.words, tree.tags + other.tags, tree.constituents + spans)


def doc_trees(doc: Doc, key: str = KEY) -> Iterator[Parsed]:
    """Yield the tree of each sentence of a doc, without white space tokens.

    A doc without sentence boundaries is one sentence.

    Raises:
        ValueError: if the doc has no such span group, or a constituent crosses sentences.
    """
    if key not in doc.spans:
        raise ValueError(f"no constituents in doc.spans[{key!r}]")
    spans = list(doc.spans[key])
    count = 0
    for start, end in sentence_bounds(doc) if len(doc) else ():
        tokens = [token for token in doc[start:end] if token.text.strip()]
        inside = [span for span in spans if start <= span.start and span.end <= end]
        count += len(inside)
        before = [0, *accumulate(bool(token.text.strip()) for token in doc[start:end])]
        constituents = [
            (before[span.start - start], before[span.end - start], span.label_) for span in inside
        ]
        words = ["_".join(token.text.split()) for token in tokens]  # as brackets have them
        yield Parsed(words, [token.tag_ for token in tokens], constituents)
    if count != len(spans):
        raise ValueError("a constituent crosses the end of its sentence")


def _read_docs(path: Path) -> Iterator[Placed]:
    for number, doc in enumerate(read_docbin(path, Vocab()), 1):
        try:
            for place, tree in enumerate(doc_trees(doc), 1):
                yield f"{path}, document {number}, sentence {place}", tree
        except ValueError as error:
            raise InputError(
                f"{path}, document {number}: {error}; parse the document or correct it"
            ) from error
