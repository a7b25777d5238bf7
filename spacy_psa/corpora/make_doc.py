"""One sentence with its layers as a `Doc`."""

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
    """A `Doc` of one sentence of n words.

    Args:
        tags: (n,) parts of speech, for `token.tag_`.
        ents: that do not overlap; None where the corpus has none marked, which
            is not the same as a sentence without any.
        spaces: (n,) whether a space follows; None where the corpus does not say.
        groups: spans that may overlap, for `doc.spans`, by name.
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
