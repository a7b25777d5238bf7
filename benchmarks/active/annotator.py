"""A simulated annotator who knows the true entities and answers questions."""

from collections.abc import Iterable

import numpy
from spacy.tokens import Doc

from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.sentences import unannotated


class Annotator:
    """Answers questions about a pool of sentences, and counts the answers.

    A decision is one answer: an entity with its bounds and label, one token outside of entities, or
    "there is nothing else in this sentence". `gold` has each sentence as a doc with its entities.

    Examples:
        >>> import spacy
        >>> from spacy.tokens import Span
        >>> doc = Doc(spacy.blank("en").vocab, words=["Ada", "Lovelace", "left"])
        >>> doc.ents = [Span(doc, 0, 2, "PER")]
        >>> annotator = Annotator([doc])
        >>> annotator.ask(0, 1)
        (0, 2, 'PER')
        >>> annotator.decisions, annotator.docs()[0][2].ent_iob_
        (1, '')
        >>> annotator.annotate(0)
        >>> annotator.decisions, annotator.docs()[0][2].ent_iob_
        (2, 'O')
    """

    def __init__(self, gold: list[Doc]):
        self.gold = gold
        self.decisions = 0
        self._decided: dict[int, numpy.ndarray] = {}

    @property
    def seen(self) -> set[int]:
        """The sentences with at least one question."""
        return set(self._decided)

    @property
    def tokens_seen(self) -> int:
        """The tokens of these sentences, all of which were read."""
        return sum(len(self.gold[i]) for i in self._decided)

    @property
    def tokens_decided(self) -> int:
        """The tokens with a known tag."""
        return sum(int(decided.sum()) for decided in self._decided.values())

    def annotate(self, i: int) -> None:
        """Annotate a sentence in full: one decision for each entity, and one for the rest."""
        decided = self._of(i)
        new = [ent for ent in self.gold[i].ents if not decided[ent.start]]
        self.decisions += len(new) + (not decided.all())
        decided[:] = True

    def ask(self, i: int, token: int) -> tuple[int, int, str]:
        """Ask for the entity over a token: start, end, label, or the token with the label ""."""
        decided = self._of(i)
        entity = next((e for e in self.gold[i].ents if e.start <= token < e.end), None)
        start, end, label = (
            (entity.start, entity.end, entity.label_) if entity else (token, token + 1, "")
        )
        self.decisions += not decided[token]
        decided[start:end] = True
        return start, end, label

    def docs(self) -> list[Doc]:
        """Copies of the sentences seen, with the known annotation; the rest is missing."""
        copies = []
        for i, decided in sorted(self._decided.items()):
            doc = self.gold[i].copy()
            known = [ent for ent in doc.ents if decided[ent.start]]
            inside = {t for ent in known for t in range(ent.start, ent.end)}
            outside = [doc[t : t + 1] for t in numpy.flatnonzero(decided) if int(t) not in inside]
            doc.set_ents(known, outside=outside, default="missing")
            copies.append(doc)
        return copies

    def _of(self, i: int) -> numpy.ndarray:
        return self._decided.setdefault(i, numpy.zeros(len(self.gold[i]), dtype=bool))


def ask_unsure(annotator: Annotator, i: int, pipe: ChainLabeler, sure: float) -> None:
    """Ask about the tokens of a sentence that the model is unsure of, the most unsure first.

    Each answer is evidence for the rest of sentence `i`. It does not ask for a token whose best tag
    has at least the probability `sure`.
    """
    doc = unannotated(annotator.gold[i], pipe.vocab, sentences=False)
    (analyses,) = pipe.analyses([doc])
    asked = numpy.zeros(len(doc), dtype=bool)
    while True:
        best = analyses.marginals.max(axis=1)
        best[asked] = 1
        token = int(best.argmin())
        if best[token] >= sure:
            # Ask at least once, so that the sentence counts as seen.
            if not asked.any():
                annotator.ask(i, token)
            return
        start, end, label = annotator.ask(i, token)
        asked[start:end] = True
        known = {"require": [(start, end, label)]} if label else {"allow": {token: "O"}}
        analyses = analyses.given(**known)


def doubts(docs: Iterable[Doc], pipe: ChainLabeler) -> list[float]:
    """The entropy over the analyses of each sentence, in nats per token."""
    words = [unannotated(doc, pipe.vocab, sentences=False) for doc in docs]
    return [each.entropy / len(each.doc) for each in pipe.analyses(words)]
