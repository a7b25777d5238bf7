"""The span groups in which the components of a pipeline write trees and chunks."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from spacy.language import Language


class SpanKeys(NamedTuple):
    """The span groups of trees and chunks.

    Examples:
        >>> SpanKeys()
        SpanKeys(trees='constituents', chunks='chunks')
    """

    trees: str = "constituents"
    chunks: str = "chunks"

    @classmethod
    def of(cls, nlp: "Language") -> "SpanKeys":
        """Read them from the first `constituency_parser` and the first `crf_chunker`.

        Examples:
            >>> import spacy
            >>> nlp = spacy.blank("en")
            >>> chunker = nlp.add_pipe("crf_chunker", config={"spans_key": "phrases"})
            >>> SpanKeys.of(nlp)
            SpanKeys(trees='constituents', chunks='phrases')
        """
        from spacy_psa.pipeline.chain.chunker import CRFChunker
        from spacy_psa.pipeline.parser.parser import ConstituencyParser

        found: dict[str, str] = {}
        for _, pipe in nlp.pipeline:
            if isinstance(pipe, ConstituencyParser):
                found.setdefault("trees", pipe.spans_key)
            elif isinstance(pipe, CRFChunker):
                found.setdefault("chunks", pipe.spans_key)
        return cls(**found)


USUAL = SpanKeys()
