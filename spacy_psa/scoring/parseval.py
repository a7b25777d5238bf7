"""PARSEVAL: the brackets that predicted and gold trees share, counted as EVALB does.

A bracket is a constituent over the words that remain after punctuation and empty elements are
removed (`Params`): (start, end, label), where the label is cut at "-" and "=". A constituent
without remaining words does not count. Brackets are compared as multisets, so NP over NP counts
twice. The root (TOP, ROOT, S1 or no label) is not a constituent of a `Parsed` tree and never
counts; in EVALB it counts unless the .prm file deletes it.

Recall is the fraction of gold brackets that are matched, precision the fraction of predicted
brackets that are matched, and F1 = 2 P R / (P + R). All are computed over all sentences
together (Black et al., 1991; Collins, 1997).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from spacy_psa.corpora.tag_schemes import Span
from spacy_psa.corpora.trees import Parsed
from spacy_psa.scoring.evalb_params import COLLINS, Params

QUOTES = ("'", '"', "/")


class BracketCounts:
    """The figures that follow from counted brackets; a figure with a divisor of 0 is 0."""

    gold: Counter[str]
    test: Counter[str]
    right: Counter[str]

    @property
    def matched(self) -> int:
        """The number of brackets that the trees share."""
        return self.right.total()

    @property
    def recall(self) -> float:
        """The fraction of gold brackets that are matched."""
        return _ratio(self.matched, self.gold.total())

    @property
    def precision(self) -> float:
        """The fraction of predicted brackets that are matched."""
        return _ratio(self.matched, self.test.total())

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return _f1(self.precision, self.recall)


@dataclass(frozen=True)
class SentenceScore(BracketCounts):
    """The counts of one sentence."""

    length: int
    """The number of words of the gold sentence, with punctuation, for a cut-off."""
    status: Literal["ok", "error", "skip"] = "ok"
    """"error" if the trees differ in words, "skip" if the predicted tree has no words. Unless it is
    "ok", only `length` and `reason` count."""
    reason: str = ""
    """Why the status is "error" or "skip"."""
    gold: Counter[str] = field(default_factory=Counter)
    """The number of gold brackets of each label."""
    test: Counter[str] = field(default_factory=Counter)
    """The number of predicted brackets of each label."""
    recalled: Counter[str] = field(default_factory=Counter)
    """The number of gold brackets of each label that are matched."""
    right: Counter[str] = field(default_factory=Counter)
    """The number of predicted brackets of each label that are matched. It differs from `recalled`
    if a label is matched with another that counts as equal."""
    crossing: int = 0
    """The number of predicted brackets that cross a gold one."""
    words: int = 0
    """The number of remaining words; 0 for a predicted tree without parts of speech."""
    tags: int = 0
    """The number of these words that have the gold part of speech."""

    @property
    def exact(self) -> bool:
        """Whether the trees have the same brackets."""
        return self.gold.total() == self.test.total() == self.matched


@dataclass
class Totals(BracketCounts):
    """Sums over sentences, and the figures that EVALB prints of them, as fractions of 1.

    A figure with a divisor of 0 is 0, except that `tagging` is None for trees without parts of
    speech.
    """

    sentences: int = 0
    errors: int = 0
    skipped: int = 0
    complete: int = 0
    crossings: int = 0
    without_crossing: int = 0
    up_to_two_crossing: int = 0
    words: int = 0
    tags: int = 0
    gold: Counter[str] = field(default_factory=Counter)
    test: Counter[str] = field(default_factory=Counter)
    recalled: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)

    def add(self, score: SentenceScore) -> None:
        """Count one more sentence."""
        self.sentences += 1
        if score.status != "ok":
            self.errors += score.status == "error"
            self.skipped += score.status == "skip"
            return
        self.complete += score.exact
        self.crossings += score.crossing
        self.without_crossing += score.crossing == 0
        self.up_to_two_crossing += score.crossing <= 2
        self.words += score.words
        self.tags += score.tags
        for name in ("gold", "test", "recalled", "right"):
            getattr(self, name).update(getattr(score, name))

    @property
    def valid(self) -> int:
        """The number of sentences that count: neither errors nor skipped."""
        return self.sentences - self.errors - self.skipped

    @property
    def exact(self) -> float:
        """The fraction of sentences whose trees have the same brackets: EVALB's complete match."""
        return _ratio(self.complete, self.valid)

    @property
    def average_crossing(self) -> float:
        """The mean number of predicted brackets in a sentence that cross a gold one."""
        return _ratio(self.crossings, self.valid)

    @property
    def no_crossing(self) -> float:
        """The fraction of sentences without crossing brackets."""
        return _ratio(self.without_crossing, self.valid)

    @property
    def two_or_less_crossing(self) -> float:
        """The fraction of sentences with at most two crossing brackets."""
        return _ratio(self.up_to_two_crossing, self.valid)

    @property
    def tagging(self) -> float | None:
        """The fraction of words with the gold part of speech."""
        return self.tags / self.words if self.words else None

    def per_label(self) -> dict[str, dict[str, float]]:
        """Return `p`, `r` and `f` of each label in the gold or predicted trees, sorted by label."""
        figures = {}
        for label in sorted(self.gold.keys() | self.test.keys()):
            p = _ratio(self.right[label], self.test[label])
            r = _ratio(self.recalled[label], self.gold[label])
            figures[label] = {"p": p, "r": r, "f": _f1(p, r)}
        return figures


def total(scores: Iterable[SentenceScore], max_length: int | None = None) -> Totals:
    """Sum up the sentences of at most `max_length` words, or all sentences if it is None."""
    totals = Totals()
    for score in scores:
        if max_length is None or score.length <= max_length:
            totals.add(score)
    return totals


def score_pair(gold: Parsed, test: Parsed, params: Params = COLLINS) -> SentenceScore:
    """Compare a predicted tree with the gold tree, each without the words that it deletes.

    If a predicted tree has no parts of speech ("" for all words) and as many words as the gold
    tree, it deletes the same words.
    """
    length = sum(tag not in params.delete_for_length for tag in gold.tags)
    tagged = any(test.tags)
    kept = _kept(gold, params)
    kept_test = kept if not tagged and len(test.words) == len(kept) else _kept(test, params)
    if not any(kept_test):
        return SentenceScore(length, "skip", "the predicted tree has no words")
    if sum(kept) != sum(kept_test):
        kept, kept_test = _put_quotes_back(gold, test, kept, kept_test, params)
    left, left_test = _left(gold, kept, params), _left(test, kept_test, params)
    if len(left) != len(left_test):
        reason = f"{len(left)} words against {len(left_test)} after deletion"
        return SentenceScore(length, "error", reason)
    for (word, _), (other, _) in zip(left, left_test, strict=True):
        if word != other:
            return SentenceScore(length, "error", f"the words {word!r} and {other!r} differ")
    score = compare(
        brackets(gold.constituents, kept, params),
        brackets(test.constituents, kept_test, params),
        params,
    )
    if not tagged:
        return replace(score, length=length)
    right = sum(tag == other for (_, tag), (_, other) in zip(left, left_test, strict=True))
    return replace(score, length=length, words=len(left), tags=right)


def brackets(spans: Iterable[Span], kept: Sequence[bool], params: Params) -> list[Span]:
    """Return the brackets over the words that are `kept`, with cut labels, without deleted ones."""
    place = [0, *accumulate(kept)]
    remaining = []
    for start, end, label in spans:
        start, end, label = place[start], place[end], params.cut(label)
        if start < end and label not in params.deleted:
            remaining.append((start, end, label))
    return remaining


def compare(gold: list[Span], test: list[Span], params: Params) -> SentenceScore:
    """Match the brackets of a sentence; `length`, `words` and `tags` of the result are 0."""
    pairs = list(_matches(gold, test, params))
    # A bracket over the words of a gold bracket crosses no gold ones, because they form a tree.
    spans = {(start, end) for start, end, _ in gold}
    crossing = sum(
        any(s < start < e < end or start < s < end < e for s, e in spans)
        for start, end, _ in test
        if (start, end) not in spans
    )
    return SentenceScore(
        0,
        gold=Counter(label for _, _, label in gold),
        test=Counter(label for _, _, label in test),
        recalled=Counter(label for label, _ in pairs),
        right=Counter(label for _, label in pairs),
        crossing=crossing,
    )


def _matches(gold: list[Span], test: list[Span], params: Params) -> Iterable[tuple[str, str]]:
    """Yield the gold and the predicted label of each match; equal labels are matched first."""
    ours, theirs = Counter(gold), Counter(test)
    for _, _, label in (ours & theirs).elements():
        yield label, label
    rest: dict[Span, list[str]] = {}
    for start, end, label in (theirs - ours).elements():
        rest.setdefault((start, end, _kind(label, params)), []).append(label)
    for start, end, label in (ours - theirs).elements():
        if equals := rest.get((start, end, _kind(label, params))):
            yield label, equals.pop()


def _kind(label: str, params: Params) -> str:
    return params.label_class.get(label, label) if params.labelled else ""


def _kept(tree: Parsed, params: Params) -> list[bool]:
    return [not params.deletes_word(tag) for tag in tree.tags]


def _left(tree: Parsed, kept: list[bool], params: Params) -> list[tuple[str, str]]:
    """Return the word and the part of speech of each kept word, in the form that is compared."""
    rows = zip(tree.words, tree.tags, kept, strict=True)
    return [(params.word_class.get(w, w), params.tag(t)) for w, t, keep in rows if keep]


def _put_quotes_back(
    gold: Parsed, test: Parsed, kept: list[bool], kept_test: list[bool], params: Params
) -> tuple[list[bool], list[bool]]:
    """Keep both of two quotation marks with as many kept words before them, if one is kept."""
    kept, kept_test = list(kept), list(kept_test)
    places, places_test = _quotes(gold, params), _quotes(test, params)
    for j in places_test:
        for i in places:
            if kept[i] != kept_test[j] and sum(kept[:i]) == sum(kept_test[:j]):
                kept[i] = kept_test[j] = True
    return kept, kept_test


def _quotes(tree: Parsed, params: Params) -> list[int]:
    pairs = enumerate(zip(tree.words, tree.tags, strict=True))
    return [i for i, (word, tag) in pairs if word in QUOTES and tag in params.quote_labels]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _f1(precision: float, recall: float) -> float:
    return _ratio(2 * precision * recall, precision + recall)
