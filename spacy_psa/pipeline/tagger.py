"""`crf_tagger`: part-of-speech tags by a linear-chain CRF (J Table 3)."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Config, Model

from spacy_psa.errors import InputError
from spacy_psa.pipeline.labeler import Allowed, Bounds, Reduction, SequenceLabeler, Tags
from spacy_psa.pipeline.ner import DEFAULT_MODEL
from spacy_psa.pipeline.schemes import MISSING, Moves
from spacy_psa.pipeline.spans import same_tokens


@Language.factory(
    "crf_tagger",
    assigns=["token.tag"],
    default_config={
        "model": Config().from_str(DEFAULT_MODEL)["model"],
        "overwrite": True,
        "max_grad_norm": 5.0,
        "reduction": "mean",
        "batch_tokens": 4000,
        "scorer": {"@scorers": "spacy.tagger_scorer.v1"},
    },
    default_score_weights={"tag_acc": 1.0},
)
def make_crf_tagger(
    nlp: Language,
    name: str,
    model: Model,
    overwrite: bool,
    max_grad_norm: float,
    reduction: Reduction,
    batch_tokens: int,
    scorer: Callable | None,
) -> "CRFTagger":
    """The factory `crf_tagger`; see `CRFTagger` for its settings."""
    return CRFTagger(
        nlp.vocab,
        model,
        name,
        overwrite=overwrite,
        max_grad_norm=max_grad_norm,
        reduction=reduction,
        batch_tokens=batch_tokens,
        scorer=scorer,
    )


class CRFTagger(SequenceLabeler):
    """Writes token.tag_: the most probable tags of each sentence (J Table 3).

    overwrite: false keeps the tags that stand on a doc, and the others are the best that
    agree with them. Other settings: see `SequenceLabeler`. `labels` and `tags` are the same.
    """

    def __init__(self, vocab: Vocab, model: Model, name: str, *, overwrite: bool, **settings: Any):
        super().__init__(vocab, model, name, **settings)
        self.overwrite = overwrite

    @property
    def tags(self) -> tuple[str, ...]:
        return self.labels

    def legal(self) -> Moves:
        k = len(self.tags)
        return Moves(*(numpy.ones(shape, dtype=bool) for shape in ((k, k), (k,), (k,))))

    def find_labels(self, examples: Iterable[Example]) -> list[str]:
        return sorted({token.tag_ for eg in examples for token in eg.reference} - {""})

    def gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        if same_tokens(example):
            names = [token.tag_ for token in example.reference]
        else:
            names = example.get_aligned("TAG", as_string=True)
        known = {name: i for i, name in enumerate(self.tags)} | {"": MISSING, None: MISSING}
        unseen = set(names) - known.keys()
        if unseen:
            raise InputError(
                f"{self.name}: the training data has the tag {min(unseen)!r}, which is not among "
                "the labels: initialize with all labels"
            )
        tags = numpy.array([known[name] for name in names], dtype="int64")
        return [tags[start:end] for start, end in bounds]

    def known_tags(self, doc: Doc, bounds: Bounds) -> list[Allowed | None]:
        names = [token.tag_ for token in doc]
        if self.overwrite or not any(names):
            return [None] * len(bounds)
        allowed = numpy.ones((len(doc), len(self.tags)), dtype=bool)
        for i, name in enumerate(names):
            if name in self.tags:
                allowed[i] = False
                allowed[i, self.tags.index(name)] = True
        return [allowed[start:end] for start, end in bounds]

    def set_annotations(self, docs: Iterable[Doc], scores: list[Tags]) -> None:
        """Write the tags that `predict` gave."""
        for doc, tags in zip(docs, scores, strict=True):
            for token, tag in zip(doc, tags.tolist(), strict=True):
                if self.overwrite or not token.tag:
                    token.tag_ = self.tags[tag]
