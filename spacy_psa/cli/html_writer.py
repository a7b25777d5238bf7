"""Annotated documents as a page of HTML."""

import html
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO

from spacy_psa.annotation.writer import Encode
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.displacy.render import EntityRenderer
    from spacy.tokens import Doc


class HtmlWriter:
    """Writes one page with a view of each document.

    Args:
        stream: the bytes are written to it.
        title: the title of the page.
        encode: gives the view of a document; the entities, if it is not given.

    Examples:
        >>> import io, spacy
        >>> nlp = spacy.blank("en")
        >>> doc = nlp("Ada left")
        >>> doc.set_ents([doc.char_span(0, 3, "PER")])
        >>> page = HtmlWriter(io.BytesIO())
        >>> page.write(page.encode(doc))
        >>> b"<mark" in page.stream.getvalue()
        True
    """

    def __init__(
        self, stream: BinaryIO, title: str = "Entities", encode: Encode | None = None
    ) -> None:
        self.stream = stream
        self.encode: Encode = encode or entity_view
        self._put(
            '<!DOCTYPE html>\n<html>\n<head><meta charset="utf-8">'
            f"<title>{html.escape(title)}</title></head>\n"
            '<body style="font-family: sans-serif; margin: 3em auto; max-width: 60em">\n'
        )

    def write(self, row: str) -> None:
        self._put(f"<figure>\n{row.strip()}\n</figure>\n")

    def finish(self) -> None:
        self._put("</body>\n</html>\n")

    def _put(self, markup: str) -> None:
        self.stream.write(markup.encode("utf8", "xmlcharrefreplace"))


def entity_view(doc: "Doc", key: str = "constituents") -> str:
    """Give displaCy's view of a document's entities, as HTML, and drawings of its trees.

    Args:
        doc: the document.
        key: the span group of the trees.

    Raises:
        InputError: if it has trees and svgling is not installed, or if a tree is too deep to draw.
    """
    shown = [
        {"start": ent.start_char, "end": ent.end_char, "label": html.escape(ent.label_)}
        for ent in doc.ents
    ]
    return drawn_entities(doc, shown) + _drawn_trees(doc, key)


def _drawn_trees(doc: "Doc", key: str) -> str:
    if not doc.spans.get(key):
        return ""
    from spacy_psa.pipeline.parser.extensions import parse_trees
    from spacy_psa.pipeline.parser.tree_drawing import can_draw, draw

    if not can_draw():
        raise InputError(
            'drawing trees needs svgling: pip install "spacy-psa[trees]", or write another format'
        )
    try:
        return "\n".join(f"<div>{drawing.markup}</div>" for drawing in draw(parse_trees(doc, key)))
    except RecursionError as error:
        raise InputError("a tree is too deep to draw; set sentence boundaries") from error


def drawn_entities(doc: "Doc", entities: list[dict[str, Any]]) -> str:
    """Give displaCy's view of entities that do not overlap.

    Args:
        doc: the document.
        entities: in order, dicts with start and end (in characters), label (as HTML) and
            optionally params, the parameters of displaCy's template.
    """
    settings = {"lang": doc.lang_, "direction": doc.vocab.writing_system["direction"]}
    parsed = {"text": doc.text, "ents": entities, "title": None, "settings": settings}
    return _renderer().render([parsed])


@cache
def _renderer() -> "EntityRenderer":
    from spacy.displacy.render import EntityRenderer

    return EntityRenderer()
