"""`crf_tagger`: part-of-speech tags by a linear-chain CRF (J Table 3)."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Config, Model

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.sequence_labeler import (
    NO_TAGS,
    Allowed,
    Bounds,
    Reduction,
    SequenceLabeler,
    Tags,
    cut,
)
from spacy_psa.pipeline.chain.ner import DEFAULT_MODEL
from spacy_psa.pipeline.chain.own_predictions import is_own, set_own
from spacy_psa.pipeline.chain.span_tags import MISSING, Moves
from spacy_psa.pipeline.chain.span_labeler import same_tokens
from spacy_psa.structs.chain import LinearChain


@Language.factory(
    "crf_tagger",
    assigns=["token.tag"],
    default_config={
        "model": Config().from_str(DEFAULT_MODEL)["model"],
        "overwrite": True,
        "confidence": False,
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
    confidence: bool,
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
        confidence=confidence,
        max_grad_norm=max_grad_norm,
        reduction=reduction,
        batch_tokens=batch_tokens,
        scorer=scorer,
    )


class CRFTagger(SequenceLabeler):
    """Writes token.tag_: the most probable tags of each sentence (J Table 3).

    overwrite: false keeps the tags that stand on a doc, and the others are the best that
    agree with them. confidence: whether each token gets token._.tag_confidence, the
    probability of its tag given the doc. Other settings: see `SequenceLabeler`. `labels`
    and `tags` are the same.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        overwrite: bool,
        confidence: bool = False,
        **settings: Any,
    ):
        super().__init__(vocab, model, name, **settings)
        self.overwrite = overwrite
        self.confidence = confidence

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
        names = ["" if is_own(self.name, token) else token.tag_ for token in doc]
        if self.overwrite or not any(names):
            return [None] * len(bounds)
        allowed = numpy.ones((len(doc), len(self.tags)), dtype=bool)
        for i, name in enumerate(names):
            if name in self.tags:
                allowed[i] = False
                allowed[i, self.tags.index(name)] = True
        return [allowed[start:end] for start, end in bounds]

    def predict(self, docs: Iterable[Doc]) -> list[Any]:
        """The most probable tags of each doc, (n,) int64 arrays; with confidence each with
        the probabilities of the tags, (n,).

        Errors: InputError naming a sentence of which nothing agrees with the evidence.
        """
        if not self.confidence:
            return super().predict(docs)
        found = self.infer(list(docs), _tags_and_probabilities)
        return [
            (
                numpy.concatenate([NO_TAGS, *(tags for _, (tags, _) in parts)]),
                numpy.concatenate([numpy.zeros(0), *(values for _, (_, values) in parts)]),
            )
            for parts in found
        ]

    def named(self, tags: Tags, start: int) -> list[Any]:
        return [self.tags[tag] for tag in tags]

    def analysis(self, doc: Doc, parts: list[list[Any]]) -> list[Any]:
        return [tag for part in parts for tag in part]

    def set_annotations(self, docs: Iterable[Doc], scores: list[Any]) -> None:
        """Write the tags that `predict` gave, and with confidence their probabilities."""
        for doc, found in zip(docs, scores, strict=True):
            tags, values = found if self.confidence else (found, None)
            own = []
            for token, tag in zip(doc, tags.tolist(), strict=True):
                if self.overwrite or not token.tag or is_own(self.name, token):
                    token.tag_ = self.tags[tag]
                    own.append(token)
            if not self.overwrite:  # else nothing is evidence
                set_own(self.name, doc, own)
            if values is not None:
                for token, value in zip(doc, values.tolist(), strict=True):
                    token._.tag_confidence = value


def _tags_and_probabilities(
    chain: LinearChain,
) -> list[tuple[Tags, NDArray[numpy.float64]]]:
    """The best tags of each sentence, and P(tag | sentence) of each of them."""
    tags = chain.argmax
    values = chain.marginals.gather(2, tags[..., None])[..., 0].double().clamp(max=1)
    return list(zip(cut(tags, chain.lengths), cut(values, chain.lengths)))
