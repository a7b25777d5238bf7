"""The units that are compared: the entities, spans of a group or tags of docs and components."""

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.docbin import read_docbins
from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.pipeline.nested.spans import NestedSpanLabeler
from spacy_psa.pipeline.parser.parser import ConstituencyParser
from spacy_psa.sentences import sentence_bounds

Unit = tuple[int, int, str]
"""Start, end and label, over the tokens of a doc, of a sentence or of a corpus."""
ASSIGNED = {"doc.ents": "entities", "token.tag": "tags"}


class Units(NamedTuple):
    """A kind of units ("entities", "chunks", "spans" or "tags") and where a doc has them."""

    kind: str
    key: str = ""
    """The key of `doc.spans`, for chunks and spans, which may overlap."""

    def of(self, doc: Doc) -> list[Unit]:
        """List the units of a doc, in order."""
        if self.kind == "tags":
            return [(t.i, t.i + 1, t.tag_) for t in doc if t.tag_ and not t.is_space]
        spans = doc.ents if self.kind == "entities" else doc.spans.get(self.key, ())
        return sorted({(span.start, span.end, span.label_) for span in spans})

    def known(self, doc: Doc) -> NDArray[numpy.bool_]:
        """Check for each token of a gold doc whether it has such annotation, (n,)."""
        if self.kind == "tags":
            return numpy.array([bool(t.tag_) and not t.is_space for t in doc], dtype=bool)
        if self.kind == "entities":
            return numpy.array([t.ent_iob != 0 for t in doc], dtype=bool)
        return numpy.full(len(doc), self.key in doc.spans)


class Gold(NamedTuple):
    """A gold corpus. Units and sentences count the tokens of the whole corpus."""

    words: list[str]
    spaces: list[str]
    """The space, or nothing, after each word."""
    sentences: list[tuple[int, int]]
    """The first token of each sentence, and the token after its last."""
    units: list[list[Unit]]
    """The gold units of each sentence, in which they begin."""
    known: NDArray[numpy.bool_]
    """(tokens,) whether the token is annotated."""
    documents: int

    def by_sentence(self, units: Iterable[Unit]) -> list[list[Unit]]:
        """Assign units to the sentences in which they begin, without those on unknown tokens."""
        starts = [start for start, _ in self.sentences]
        own: list[list[Unit]] = [[] for _ in starts]
        for unit in units:
            if self.known[unit[0] : unit[1]].all():
                own[bisect_right(starts, unit[0]) - 1].append(unit)
        return own


def read_gold(path: Path, units: Units) -> Gold:
    """Read a corpus, a `.spacy` file or a folder of them."""
    words: list[str] = []
    spaces: list[str] = []
    sentences: list[tuple[int, int]] = []
    annotated: list[Unit] = []
    known = [numpy.zeros(0, dtype=bool)]
    documents = 0
    for doc in read_docbins(path, Vocab()):
        at, documents = len(words), documents + 1
        words += [token.text for token in doc]
        spaces += [token.whitespace_ for token in doc]
        sentences += [(at + start, at + end) for start, end in sentence_bounds(doc) if end > start]
        annotated += [(at + start, at + end, label) for start, end, label in units.of(doc)]
        known.append(units.known(doc))
    if not annotated:
        raise InputError(f"{path}: no gold {units.kind} in it; use a file with annotated documents")
    gold = Gold(words, spaces, sentences, [], numpy.concatenate(known), documents)
    return gold._replace(units=gold.by_sentence(annotated))


class Component(NamedTuple):
    """A component of a pipeline and the units that it writes."""

    name: str
    pipe: Any
    units: Units


def find_component(
    model: str, nlp: Language, name: str | None, kind: str | None = None
) -> Component:
    """Find the component of a pipeline that is compared.

    By default, this is the first of this package, or else the first of spaCy's. If the `kind` of
    its units is given, the component of this name need not be there. `model` is for errors.
    """
    every = [Component(key, pipe, u) for key, pipe in nlp.pipeline if (u := _units(nlp, key, pipe))]
    fitting = [each for each in every if kind in (None, each.units.kind)]
    fitting.sort(key=lambda each: not isinstance(each.pipe, ChainLabeler | NestedSpanLabeler))
    named = [each for each in fitting if each.name == name]
    if not (named or fitting) or (name is not None and not named and kind is None):
        wanted = kind or "entities, chunks, spans, tags"
        if name and kind is None:
            wanted = f"--component {name}"
        names = ", ".join(each.name for each in every) or "(none)"
        raise InputError(
            f"{model}: no component for {wanted}; the components that can be compared are {names}"
        )
    chosen = (named or fitting)[0]
    if isinstance(chosen.pipe, SpanLabeler) and chosen.pipe.decode == "threshold":
        raise InputError(
            f'{model}: {chosen.name} has decode = "threshold", whose spans overlap; set decode = '
            '"viterbi"'
        )
    return chosen


def _units(nlp: Language, name: str, pipe: Any) -> Units | None:
    if isinstance(pipe, SpanLabeler):
        key = pipe.store.spans_key
        return Units("chunks", key) if key else Units("entities")
    if isinstance(pipe, CRFTagger):
        return Units("tags")
    if isinstance(pipe, ConstituencyParser):  # it assigns tags only if it has a tag head
        return Units("tags") if pipe.tags else None
    if isinstance(pipe, NestedSpanLabeler):
        return Units("spans", pipe.spans_key)
    assigned = nlp.get_pipe_meta(name).assigns
    if "doc.spans" in assigned and hasattr(pipe, "key"):  # spaCy's spancat and span_ruler
        return Units("spans", pipe.key)
    return next((Units(kind) for key, kind in ASSIGNED.items() if key in assigned), None)
