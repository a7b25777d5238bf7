"""Annotated documents drawn as HTML: entities, nested spans and trees.

The names of labels are escaped. displaCy draws spans, and svgling draws trees.
"""

import html
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.displacy.render import EntityRenderer
    from spacy.tokens import Doc, Span

    from spacy_psa.pipeline.chain.spans import SpanLabeler
    from spacy_psa.pipeline.nested.spans import NestedSpanLabeler

PALETTE = [
    "#aec7e8", "#ffbb78", "#98df8a", "#ff9896", "#c5b0d5",
    "#e7cb94", "#f7b6d2", "#9edae5", "#dbdb8d", "#c7c7c7",
]  # fmt: skip
"""Colours of labels, in turn; they are light enough for black text."""
NO_BREAK = "\N{NO-BREAK SPACE}"


def entity_view(doc: "Doc", trees: str, nested: str) -> str:
    """Draw a document as displaCy does, as HTML: entities, nested spans, and trees of groups."""
    shown = [
        {"start": ent.start_char, "end": ent.end_char, "label": html.escape(ent.label_)}
        for ent in doc.ents
    ]
    spans = [(span, html.escape(span.label_), None) for span in spans_of(doc, nested)]
    flat = drawn_entities(doc, shown) if shown or not spans else ""
    return flat + (drawn_spans(doc, spans) if spans else "") + _drawn_trees(doc, trees)


def spans_of(doc: "Doc", key: str) -> "Iterable[Span]":
    """The spans of a group of a document, if it has it, as they are now."""
    if key not in doc.spans:
        return []
    from spacy_psa.pipeline.written import spans_now

    return spans_now(doc, key)


def _drawn_trees(doc: "Doc", key: str) -> str:
    if not doc.spans.get(key):
        return ""
    from spacy_psa.pipeline.parser.extensions import parse_trees
    from spacy_psa.pipeline.parser.tree_drawing import can_draw, draw

    if not can_draw():
        raise InputError(
            'drawing trees needs svgling: pip install "spacy-psa[trees]", or write another format'
        )
    with not_too_deep():
        return "\n".join(f"<div>{drawing.markup}</div>" for drawing in draw(parse_trees(doc, key)))


@contextmanager
def not_too_deep() -> Iterator[None]:
    """Turn a RecursionError of drawing trees into an InputError."""
    try:
        yield
    except RecursionError as error:
        raise InputError("a tree is too deep to draw; set sentence boundaries") from error


def drawn_entities(doc: "Doc", entities: list[dict[str, Any]]) -> str:
    """Draw entities that do not overlap as displaCy does, as HTML.

    `entities` are in order: dicts with start and end (in characters), label (as HTML) and
    optionally params, the parameters of displaCy's template.
    """
    return _renderer().render([{"text": doc.text, "ents": entities, **_for_displacy(doc)}])


def drawn_spans(doc: "Doc", spans: "Iterable[tuple[Span, str, str | None]]") -> str:
    """Draw spans that may overlap as displaCy does, as lines below the text, as HTML.

    Each span has its label (as HTML) and its colour; None for displaCy's.
    """
    from spacy.displacy.render import SpanRenderer

    renderer, shown = SpanRenderer(), []
    for span, text, colour in spans:
        label = text.replace(" ", NO_BREAK)
        if colour is not None:
            renderer.colors[label.upper()] = colour  # it reads colours from nowhere else
        shown.append(
            {"start_token": span.start, "end_token": span.end, "label": label}
            | {"start": span.start_char, "end": span.end_char}
        )
    tokens = [token.text for token in doc]
    return renderer.render([{"tokens": tokens, "spans": shown, **_for_displacy(doc)}])


def _for_displacy(doc: "Doc") -> dict[str, Any]:
    direction = doc.vocab.writing_system["direction"]
    return {"title": None, "settings": {"lang": doc.lang_, "direction": direction}}


@cache
def _renderer() -> "EntityRenderer":
    from spacy.displacy.render import EntityRenderer

    return EntityRenderer()


class ConfidenceView:
    """Draws the spans of a component as displaCy does, with labels such as "PER 0.97"."""

    def __init__(self, pipe: "SpanLabeler | NestedSpanLabeler") -> None:
        labels = pipe._span_labels
        self.colours = {label: PALETTE[i % len(PALETTE)] for i, label in enumerate(labels)}
        # The group of nested spans has their scores; for other spans, it is a group of its own.
        key: str | None = getattr(pipe, "spans_key", None)
        self.key = key or pipe.name
        self.overlapping = key is not None or pipe.decode == "threshold"

    def __call__(self, doc: "Doc") -> str:
        from spacy_psa.pipeline.written import spans_now

        group = spans_now(doc, self.key)
        scored = list(zip(group, group.attrs["scores"], strict=True))
        if self.overlapping:
            labelled = ((span, _label(span, score), self._colour(span)) for span, score in scored)
            return drawn_spans(doc, labelled)
        shown = [
            {
                "start": span.start_char,
                "end": span.end_char,
                "label": _label(span, score),
                "params": {"bg": self._colour(span)},
            }
            for span, score in scored
        ]
        return drawn_entities(doc, shown)

    def _colour(self, span: "Span") -> str:
        return self.colours.get(span.label_, "#ddd")  # an entity set before may have another label


def _label(span: "Span", score: float) -> str:
    return f"{html.escape(span.label_)} {score:.2f}"
