"""Examples of an update, copied and read before it, perhaps in another thread."""

from collections.abc import Collection, Sequence
from typing import Any

from spacy.language import Language
from spacy.training import Example

from spacy_psa.architectures.distinct_words import distinct_words
from spacy_psa.sentences import DocsInSentences


class Prepared(list[Example]):
    """Copies of examples, as `nlp.update` makes them, with what its components read of them.

    Nothing is drawn at random, and no weights are read. So it may be made while the update before
    is computed.

    Args:
        nlp: the pipeline. No component may annotate docs in the update.
        examples: the examples; they stay as they are.
        exclude: the names of the components that do not learn.

    Raises:
        InputError: if a component cannot learn from the annotation; see `get_loss`.

    Attributes:
        originals: the examples.
        docs: the predicted docs of the copies, with their sentences.
    """

    def __init__(self, nlp: Language, examples: Sequence[Example], exclude: Collection[str] = ()):
        super().__init__(Example(eg.predicted.copy(), eg.reference) for eg in examples)
        self.originals = list(examples)
        self.docs = DocsInSentences(eg.predicted for eg in self)
        if any(map(len, self.docs)):
            distinct_words(self.docs.sentences)  # which are remembered
        self.gold: dict[str, Any] = {
            name: pipe._read_gold(self)
            for name, pipe in nlp.pipeline
            if name not in exclude and hasattr(pipe, "_read_gold")
        }

    def update(self, nlp: Language, drop: float, losses: dict[str, float], exclude: Any) -> None:
        """Add up gradients as `nlp.update` does, which would copy and read the examples again."""
        for name, pipe in nlp.pipeline:
            if name not in exclude and hasattr(pipe, "update"):
                pipe.update(self, sgd=None, losses=losses, drop=drop)
