"""Shared by all readers: the `Doc` of a sentence, and training directly from a corpus file."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_psa.corpora import tag_schemes as schemes
from spacy_psa.corpora.lines import describe_repairs
from spacy_psa.entry_points import only_factories
from spacy_psa.errors import InputError
from spacy_psa.sentences import unannotated

Reader = Callable[[Language], Iterable[Example]]
Augmenter = Callable[[Language, Example], Iterable[Example]]
"""Makes the examples of an example, as in `spacy.Corpus.v1`."""


def blank(lang: str, *components: str) -> Language:
    """Make an empty pipeline of a language; an InputError if spaCy cannot make it.

    Of the components of packages, only those named here can be added to it.
    """
    try:
        with only_factories(components):
            return spacy.blank(lang)
    except ImportError as error:
        raise InputError(f"--lang {lang}: spaCy cannot make such a pipeline ({error})") from error


def make_doc(
    vocab: Vocab,
    words: Sequence[str],
    tags: Sequence[str] | None = None,
    ents: Sequence[schemes.Span] | None = None,
    spaces: Sequence[bool] | None = None,
    **groups: Sequence[schemes.Span],
) -> Doc:
    """Make a `Doc` of one sentence of n words.

    Args:
        tags: (n,) parts of speech, for `token.tag_`.
        ents: entities that do not overlap. None means that the corpus does not mark entities, an
            empty list that the sentence has none.
        groups: spans that may overlap, for `doc.spans`; the keyword is the name of the group.
    """
    doc = Doc(
        vocab,
        words=list(words),
        spaces=None if spaces is None else list(spaces),
        tags=None if tags is None else list(tags),
        ents=None if ents is None else schemes.spans_to_tags(ents, len(words), "iob2"),
        sent_starts=[i == 0 for i in range(len(words))],
    )
    for name, spans in groups.items():
        doc.spans[name] = [Span(doc, *span) for span in spans]
    return doc


def make_reader(
    path: Path,
    docs: Callable[[Vocab, Counter[str]], Iterator[Doc]],
    limit: int,
    augmenter: Augmenter | None = None,
) -> Reader:
    """Make a reader; each of its examples is one sentence, predicted from the gold words.

    `docs` yields the sentences and counts the repairs, which one warning reports with the `path`.
    `limit` is the number of sentences to read; 0 means all.
    """

    def make(doc: Doc) -> Example:
        return Example(unannotated(doc, sentences=False), doc)

    def read(nlp: Language) -> Iterator[Example]:
        repairs: Counter[str] = Counter()
        for doc in islice(docs(nlp.vocab, repairs), limit or None):
            yield from augmented(nlp, make(doc), augmenter, make)
        if repairs:
            warnings.warn(describe_repairs(path, repairs), stacklevel=2)

    return read


def augmented(
    nlp: Language, example: Example, augmenter: Augmenter | None, make: Callable[[Doc], Example]
) -> Iterator[Example]:
    """Yield the examples that an augmenter makes of one; `make` makes one from a new reference."""
    for made in augmenter(nlp, example) if augmenter else [example]:
        yield made if made is example else make(made.reference)
