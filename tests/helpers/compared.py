"""Gold annotation and pipelines of rules whose errors can be counted by hand."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_psa.studio.comparison.comparison import Comparison
from tests.helpers.pipelines import read_marked

GOLD = [
    "[Ada Lovelace|PER] met [Bob|PER] in [Acme Town|LOC] .",
    "[Leeds|LOC] won .",
    "Nobody came .",
]
FIRST = {"Ada Lovelace": "PER", "Bob": "LOC", "Town": "LOC", "Leeds": "LOC", "Nobody": "PER"}
SECOND = {"Ada": "ORG", "Bob": "PER", "Acme Town": "LOC"}


def marked_docs(marked: Iterable[str], vocab: Any) -> list[Doc]:
    """Docs of marked lines."""
    docs = []
    for line in marked:
        words, entities = read_marked(line)
        doc = Doc(vocab, words=words)
        doc.set_ents([Span(doc, *entity) for entity in entities])
        docs.append(doc)
    return docs


def write_gold(path: Path, marked: Iterable[str] = GOLD) -> Path:
    """A `.spacy` file of marked lines."""
    DocBin(docs=marked_docs(marked, spacy.blank("en").vocab)).to_disk(path)
    return path


def rules(entities: dict[str, str]) -> Any:
    """A pipeline that finds these texts and no others."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler", name="rules")
    ruler.add_patterns([{"label": label, "pattern": text} for text, label in entities.items()])
    return nlp


def compared(models: dict[str, Any], gold: Path, **settings: Any) -> dict[str, Any]:
    """The report of a comparison."""
    comparison = Comparison(models, gold, **settings)
    for _, step in comparison.steps():
        step()
    return comparison.report()
