"""Annotated documents as a `.spacy` file."""

from typing import BinaryIO

from spacy_psa.annotation.rows import docbin_bytes
from spacy_psa.annotation.writer import Encode


class DocBinWriter:
    """Writes spaCy's binary format; it holds all documents in memory until the end.

    Args:
        stream: the bytes are written to it.

    Examples:
        >>> import io
        >>> from spacy.tokens import Doc, DocBin
        >>> from spacy.vocab import Vocab
        >>> writer = DocBinWriter(io.BytesIO())
        >>> writer.write(writer.encode(Doc(Vocab(), words=["Ada", "left"])))
        >>> writer.finish()
        >>> [doc.text for doc in DocBin().from_bytes(writer.stream.getvalue()).get_docs(Vocab())]
        ['Ada left ']
    """

    def __init__(self, stream: BinaryIO) -> None:
        from spacy.tokens import DocBin

        self.stream = stream
        self.encode: Encode = docbin_bytes
        self.docbin = DocBin(store_user_data=True)

    def write(self, row: bytes) -> None:
        from spacy.tokens import DocBin

        self.docbin.merge(DocBin(store_user_data=True).from_bytes(row))

    def finish(self) -> None:
        self.stream.write(self.docbin.to_bytes())
