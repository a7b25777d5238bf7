"""Annotates batches of records: their contents in, rows to write out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from spacy_psa.annotation.input import MakeDoc
from spacy_psa.annotation.records import MalformedLine
from spacy_psa.annotation.writer import Encode
from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc


@dataclass(frozen=True)
class Annotated:
    """A document is annotated."""

    row: Any
    """What the encoder gave for it."""
    words: int


@dataclass(frozen=True)
class Failed:
    """A document could not be tokenized, annotated or encoded."""

    reason: str


@dataclass(frozen=True)
class Malformed:
    """A record is not in the format of the input."""

    reason: str


Outcome = Annotated | Failed | Malformed


class Annotator:
    """Annotates batches, and gives rows that need neither the pipeline nor its vocabulary.

    It opens the pipeline when it gets the first batch. Before that it can be pickled, so that each
    process opens its own pipeline.

    Args:
        open_pipeline: gives the pipeline.
        make_doc: makes a document of the content of a record.
        encode: gives the row of an annotated document.

    Examples:
        >>> import spacy
        >>> from spacy_psa.annotation.input import text_doc
        >>> annotator = Annotator(lambda: spacy.blank("en"), text_doc, lambda doc: doc[0].text)
        >>> annotator([b"Ada left"])
        [Annotated(row='Ada', words=2)]
    """

    def __init__(
        self, open_pipeline: "Callable[[], Language]", make_doc: MakeDoc, encode: Encode
    ) -> None:
        self.open_pipeline = open_pipeline
        self.make_doc = make_doc
        self.encode = encode

    @cached_property
    def nlp(self) -> "Language":
        """The pipeline."""
        return self.open_pipeline()

    def __call__(self, contents: Sequence[Any]) -> list[Outcome]:
        """Annotate a batch.

        If the pipeline fails on the batch, its documents are annotated again one by one.
        (`nlp.set_error_handler` would lose the whole batch, and raises an error for spaCy's own
        `ner` and `parser`.)

        Args:
            contents: the contents of the records, as `make_doc` takes them.

        Returns:
            The outcome for each record.
        """
        from spacy_psa.corpora.docbin import codecs_known
        from spacy_psa.memory import memory_zone

        # spaCy keeps every word that it meets. A memory zone frees the words of its documents,
        # so that memory does not grow with the input.
        with memory_zone(self.nlp), codecs_known():
            return list(self._outcomes(contents))

    def _outcomes(self, contents: Sequence[Any]) -> Iterator[Outcome]:
        made = [self._made(content) for content in contents]
        docs = [doc for doc in made if not isinstance(doc, Failed | Malformed)]
        try:
            done = list(self.nlp.pipe(docs, batch_size=len(docs))) if docs else []
        except Exception:  # a component may raise any error; the document is found below
            done = []
        stream = iter(done)
        for content, doc in zip(contents, made, strict=True):
            if isinstance(doc, Failed | Malformed):
                yield doc
            elif len(done) == len(docs):
                yield self._encoded(next(stream))
            else:
                yield self._alone(content)

    def _made(self, content: Any) -> "Doc | Failed | Malformed":
        try:
            return self.make_doc(self.nlp, content)
        except MalformedLine as error:
            return Malformed(str(error))
        except Exception as error:  # a tokenizer may raise any error
            return Failed(_reason(error))

    def _alone(self, content: Any) -> Outcome:
        # A new doc, because the components before the one that failed have changed the first.
        doc = self._made(content)
        if isinstance(doc, Failed | Malformed):
            return doc
        try:
            return self._encoded(self.nlp(doc))
        except Exception as error:
            return Failed(_reason(error))

    def _encoded(self, doc: "Doc") -> Outcome:
        try:
            return Annotated(self.encode(doc), len(doc))
        except Exception as error:  # what users or components put on the doc may not be writable
            return Failed(_reason(error))


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"
