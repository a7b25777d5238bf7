"""Trees to be scored: in brackets, or in docs."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.bracketing import read_trees
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.corpora.lines import read_lines
from spacy_psa.corpora.trees import Parsed
from spacy_psa.errors import InputError

KEY = "constituents"


def read_scored_trees(path: Path) -> Iterator[tuple[str, Parsed]]:
    """Yield the place, for messages, and the tree of each sentence in a file.

    A `.spacy` file has its trees in `doc.spans["constituents"]`; white space inside a word is _, as
    in brackets. Other files, plain or .gz, have
    bracketed trees, each on one line or several. Empty elements count as words here, and a sentence
    without a parse is a tree without words, "(())".

    Raises:
        InputError: if the file cannot be read or holds something else; the message names the line
            or document.
    """
    if path.suffix == ".spacy":
        yield from _read_docs(path)
        return
    repairs: Counter[str] = Counter()
    for number, tree in read_trees(str(path), read_lines(path, repairs), repairs, keep_empty=True):
        yield f"{path}:{number}", tree


def doc_trees(doc: Doc, key: str = KEY) -> Iterator[Parsed]:
    """Yield the tree of each sentence of a doc, without white space tokens.

    A doc without sentence boundaries is one sentence.

    Raises:
        ValueError: if the doc has no such span group, or a constituent crosses sentences.

    Examples:
        >>> from spacy.tokens import Span
        >>> doc = Doc(Vocab(), words=["I", "came"], tags=["PRP", "VBD"])
        >>> doc.spans["constituents"] = [Span(doc, 0, 2, "S")]
        >>> list(doc_trees(doc))
        [Parsed(words=['I', 'came'], tags=['PRP', 'VBD'], constituents=[(0, 2, 'S')])]
    """
    if key not in doc.spans:
        raise ValueError(f"no constituents in doc.spans[{key!r}]")
    spans = list(doc.spans[key])
    whole = not doc.has_annotation("SENT_START")
    taken = 0
    for sentence in [doc[:]] if whole else doc.sents:
        tokens = [token for token in sentence if token.text.strip()]
        inside = [s for s in spans if sentence.start <= s.start and s.end <= sentence.end]
        taken += len(inside)
        before = [0]
        for token in sentence:
            before.append(before[-1] + bool(token.text.strip()))
        found = [
            (before[s.start - sentence.start], before[s.end - sentence.start], s.label_)
            for s in inside
        ]
        words = ["_".join(token.text.split()) for token in tokens]  # as brackets have them
        yield Parsed(words, [token.tag_ for token in tokens], found)
    if taken != len(spans):
        raise ValueError("a constituent crosses the end of its sentence")


def _read_docs(path: Path) -> Iterator[tuple[str, Parsed]]:
    for number, doc in enumerate(read_docbin(path, Vocab()), 1):
        try:
            for place, tree in enumerate(doc_trees(doc), 1):
                yield f"{path}, document {number}, sentence {place}", tree
        except ValueError as error:
            raise InputError(
                f"{path}, document {number}: {error}; parse the document or correct it"
            ) from error
