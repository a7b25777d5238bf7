"""One sentence with its annotation layers as a `Doc`."""

from collections.abc import Sequence

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_psa.corpora import tag_schemes as schemes


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
        vocab: the vocabulary of the doc.
        words: (n,) the words.
        tags: (n,) parts of speech, for `token.tag_`; None for none.
        ents: entities that do not overlap. None means that the corpus does not mark entities; an
            empty list means that the sentence has none.
        spaces: (n,) whether a space follows each word; None if the corpus does not tell.
        groups: spans that may overlap, for `doc.spans`; the keyword is the name of the group.

    Examples:
        >>> doc = make_doc(Vocab(), ["Ada", "left"], ["NNP", "VBD"], [(0, 1, "PER")])
        >>> [(ent.text, ent.label_) for ent in doc.ents]
        [('Ada', 'PER')]
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
