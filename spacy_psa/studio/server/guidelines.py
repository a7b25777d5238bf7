"""The guidelines of annotators: a file of Markdown or of plain text, as HTML for the page."""

from html import escape
from pathlib import Path

from spacy_psa.errors import InputError

MARKDOWN = (".md", ".markdown")
DEEPER = 2
"""Levels by which headings sink, since they are below those of the page."""


def guidelines_html(path: Path) -> str:
    """Read a file and write it as HTML, without any HTML or pictures of its own."""
    from markdown_it import MarkdownIt

    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"--guidelines {path}: cannot be read ({error}); use a text or Markdown file in UTF-8"
        ) from error
    if path.suffix.lower() not in MARKDOWN:
        return f"<pre>{escape(text)}</pre>"
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = reader.parse(text)
    for token in tokens:
        if token.type.startswith("heading"):
            token.tag = f"h{min(int(token.tag[1]) + DEEPER, 6)}"
    return str(reader.renderer.render(tokens, reader.options, {}))
