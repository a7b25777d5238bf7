"""The tokens and sentences of a text that people annotate."""

from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.sentences import sentence_starts

STARTS = "token.is_sent_start"


class Tokens(NamedTuple):
    """The tokens of a text. Decisions count them; they do not change with the model."""

    words: tuple[str, ...]
    spaces: tuple[bool, ...]
    """Whether a space follows each word."""
    starts: tuple[bool, ...]
    """Whether a sentence begins with each word."""

    @classmethod
    def of(cls, doc: Doc) -> "Tokens":
        """Read the tokens of a doc."""
        return cls(
            tuple(token.text for token in doc),
            tuple(bool(token.whitespace_) for token in doc),
            tuple(sentence_starts(doc)),
        )

    @property
    def text(self) -> str:
        """The text."""
        return "".join(word + " " * space for word, space in zip(self.words, self.spaces))

    def doc(self, vocab: Vocab) -> Doc:
        """Make a doc with these tokens and sentences."""
        return Doc(
            vocab,
            words=list(self.words),
            spaces=list(self.spaces),
            sent_starts=list[bool | int | None](self.starts),
        )


def split_into_sentences(nlp: Language, before: str, doc: Doc) -> Doc:
    """Set the sentences that the component named `before` sees, unless the doc has some."""
    earlier = nlp.pipeline[: nlp.pipe_names.index(before)]
    splits = any(STARTS in nlp.get_pipe_meta(name).assigns for name, _ in earlier)
    if splits and not doc.has_annotation("SENT_START"):
        for _, pipe in earlier:
            doc = pipe(doc)
    return doc
