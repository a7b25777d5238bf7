"""The formats of exports; the command reads them, so that its `--help` loads no spaCy."""

from enum import Enum


class ExportFormat(str, Enum):
    """The format of an export; `auto` follows from the file name."""

    auto = "auto"
    docbin = "docbin"
    jsonl = "jsonl"
    label_studio = "label-studio"
    doccano = "doccano"


SUFFIXES = {
    ".spacy": ExportFormat.docbin,
    ".jsonl": ExportFormat.jsonl,
    ".json": ExportFormat.label_studio,
}
ENDINGS = {**{form: suffix for suffix, form in SUFFIXES.items()}, ExportFormat.doccano: ".jsonl"}
"""How the name of a file of each format ends."""
