"""Docs of any text and with any annotation, as hypothesis strategies."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import strategies as st
from spacy.tokens import Doc, Span

MARKS = (
    "\0\u200b\u200d\u200e\u200f\u202e\u2066\ufeff\ufffd\u0301\u00a0\u2028\x85\U000e0001\U0001f642"
)
WORDS = [" ", "\n", "\t\n", "Ada", "met", "Evans", "in", "Bath", ".", "(", "-LRB-", *MARKS]
TAGS = ["", "NN", "VB", "ODD"]
LABELS = ["PER", "LOC", "NP", "ODD"]
LONGEST = 100_000  # characters

short = st.one_of(
    st.sampled_from(WORDS),
    st.text(min_size=1, max_size=8),
    st.text(st.sampled_from(MARKS), min_size=1, max_size=4),
)
characters = st.characters(exclude_categories=["Cs"])  # spaCy takes no surrogates
words = short | st.builds(str.__mul__, characters, st.sampled_from([60, LONGEST]))
# spaCy's tokenizer takes hours for so many characters that are no letters.
texts = st.one_of(
    st.text(max_size=40),
    st.lists(short, max_size=8).map("".join),
    st.lists(short | st.just("x" * LONGEST), max_size=8).map(" ".join),
)
Region = tuple[int, int, str]


@st.composite
def regions(draw: Any, n: int, overlapping: bool = False) -> list[Region]:
    """Labelled spans of n tokens, in order."""
    if not n:
        return []
    found: list[Region] = []
    for _ in range(draw(st.integers(0, 3))):
        first = 0 if overlapping or not found else found[-1][1]
        if first >= n:
            break
        start = draw(st.integers(first, n - 1))
        found.append((start, draw(st.integers(start + 1, n)), draw(st.sampled_from(LABELS))))
    return found


@dataclass
class Spec:
    """What a doc is to hold; None for no such annotation."""

    words: list[str]
    spaces: list[bool]
    starts: list[bool | None] | None = None
    tags: list[str] | None = None
    ents: list[Region] = field(default_factory=list)
    default: str = "missing"
    blocked: list[int] = field(default_factory=list)
    chunks: list[Region] | None = None
    constituents: list[Region] | None = None

    def doc(self, nlp: Any) -> Doc:
        """A doc of its own."""
        doc = Doc(
            nlp.vocab, words=self.words, spaces=self.spaces, sent_starts=self.starts, tags=self.tags
        )
        if self.ents or self.blocked or self.default != "missing":
            blocked = [doc[i : i + 1] for i in self.blocked]
            doc.set_ents(
                [Span(doc, *ent) for ent in self.ents], blocked=blocked, default=self.default
            )
        for key in ("chunks", "constituents"):
            if getattr(self, key) is not None:
                doc.spans[key] = [Span(doc, *region) for region in getattr(self, key)]
        return doc


@st.composite
def annotated(draw: Any) -> Callable[[Any], Doc]:
    """Given words, with or without annotation of every kind."""
    found = draw(st.lists(words, max_size=10))
    n = len(found)
    each = partial(st.lists, min_size=n, max_size=n)
    ents = draw(regions(n))
    free = [i for i in range(n) if not any(start <= i < end for start, end, _ in ents)]
    spec = Spec(
        found,
        draw(each(st.booleans())),
        draw(st.none() | each(st.sampled_from([True, False, None]))),
        draw(st.none() | each(st.sampled_from(TAGS))),
        ents,
        draw(st.sampled_from(["missing", "outside"])),
        draw(st.lists(st.sampled_from(free), max_size=2, unique=True)) if free else [],
        draw(st.none() | regions(n)),
        draw(st.none() | regions(n, overlapping=True)),
    )
    return spec.doc


def tokenized(text: str) -> Callable[[Any], Doc]:
    """The doc of a text."""
    return lambda nlp: nlp.make_doc(text)


@st.composite
def joined(draw: Any) -> Callable[[Any], Doc]:
    """Several docs as one."""
    makers = draw(st.lists(annotated(), min_size=1, max_size=3))
    return lambda nlp: Doc.from_docs([make(nlp) for make in makers])


docs = st.one_of(annotated(), texts.map(tokenized), joined())
batches = st.one_of(
    st.lists(docs, max_size=5), st.lists(st.just(tokenized("")), min_size=1, max_size=3)
)
