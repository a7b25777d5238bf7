"""`crf_tagger`: part-of-speech tags by a linear-chain CRF (Wei2020 Table 3)."""

from collections.abc import Iterable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from torch import Tensor

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.chain_analyses import ChainBatch, Scored
from spacy_psa.pipeline.chain.labeler import NO_TAGS, ChainLabeler, Known, Tags
from spacy_psa.pipeline.chain.span_posteriors import Posterior
from spacy_psa.pipeline.chain.span_tags import MISSING, LegalTransitions
from spacy_psa.pipeline.chain.spans import same_tokens
from spacy_psa.pipeline.default_models import CHAIN
from spacy_psa.pipeline.evidence import NOTHING, Evidence, Node, check_consistent, overlap
from spacy_psa.pipeline.inference import infer
from spacy_psa.pipeline.settings import component_factory
from spacy_psa.pipeline.written import is_noted, note
from spacy_psa.ragged import to_device
from spacy_psa.sentences import Bounds
from spacy_psa.structs.chain import LinearChain

NOT_FIRST = -2
"""Stands for any tag but the first, -3 for any but the second, and so on."""


class TagScheme:
    """The tags of a tagger, of which every sequence is legal."""

    def __init__(self, tags: tuple[str, ...]):
        self.tags = tags
        k = len(tags)
        self._legal = LegalTransitions(*(numpy.ones(n, dtype=bool) for n in ((k, k), (k,), (k,))))

    def legal(self) -> LegalTransitions:
        """The legal transitions: all of them."""
        return self._legal


class TagPrediction(NamedTuple):
    """The tags that are predicted for a doc or a sentence."""

    tags: Tags
    """(n,) int64, the number of each token's tag."""
    probabilities: NDArray[numpy.float64] | None = None
    """(n,) float64, the probability of each tag; None if it was not asked for."""


class CRFTagger(ChainLabeler):
    """Predicts part-of-speech tags and writes them to `token.tag_`.

    The component `crf_tagger` predicts the most probable tags of each sentence under a linear-chain
    CRF (Wei2020 Table 3). A doc without sentence boundaries is one sentence. `labels` and `tags`
    are the same.

    With `overwrite = False`, tags that are on a doc before the component runs are evidence: the
    component keeps them and predicts the best analysis that agrees with them. It also keeps tags
    that the model does not know. Its own earlier predictions are not evidence. A span in
    `required_spans_key` or `forbidden_spans_key` has a label that is the tag of each of its tokens,
    or of none of them.

    In training, the loss marginalises over tokens without a tag. Of a token with the tag "!N", only
    analyses with the tag "N" are left out.

    With `confidence`, `token._.tag_confidence` gets the probability of the predicted tag given the
    doc.

    Scores: `tag_acc`, the share of tokens with the right tag.

    Args:
        overwrite: True to ignore and replace the tags that are on a doc; False to use them as
            evidence.
        neg_prefix: the prefix of a gold tag that a token is known not to have, as in spaCy's
            `tagger`: with "!N", training lowers the probability of "N". "" for no such tags.

    Raises:
        InputError: if a setting has a value that is not possible.

    Examples:
        >>> import spacy
        >>> from spacy.training import Example
        >>> nlp = spacy.blank("en")
        >>> tagger = nlp.add_pipe(
        ...     "crf_tagger", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> doc = nlp.make_doc("Dogs bark")
        >>> example = Example.from_dict(doc, {"tags": ["NNS", "VBP"]})
        >>> optimizer = nlp.initialize(lambda: [example])
        >>> optimizer.learn_rate = 0.03
        >>> for _ in range(6):
        ...     losses = nlp.update([example], sgd=optimizer)
        >>> [token.tag_ for token in nlp("Dogs bark")]
        ['NNS', 'VBP']
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "tagger",
        *,
        overwrite: bool = True,
        neg_prefix: str = "!",
        **settings: Any,
    ):
        super().__init__(vocab, model, name, overwrite=overwrite, **settings)
        self._neg_prefix = neg_prefix

    @cached_property
    def scheme(self) -> TagScheme:
        """The tags; every sequence of them is legal."""
        return TagScheme(self.labels)

    def _find_labels(self, examples: Iterable[Example]) -> list[str]:
        names = {token.tag_ for eg in examples for token in eg.reference} - {""}
        return sorted(name for name in names if not self._is_negative(name))

    def _is_negative(self, name: str) -> bool:
        """Whether a gold tag is one that a token is known not to have."""
        prefix = self._neg_prefix
        negative = bool(prefix) and name.startswith(prefix) and len(name) > len(prefix)
        return negative and name not in self.labels

    # Inference

    def predict(self, docs: Iterable[Doc]) -> list[TagPrediction]:
        """Predict the most probable tags of each doc; with `confidence`, also their probabilities.

        Raises:
            InputError: if no legal analysis of a sentence agrees with the evidence.
        """
        read = _tags_and_probabilities if self.confidence else _best_tags
        predictions = []
        for parts in infer(self, docs, lambda batch: read(batch.dist)):
            tags = numpy.concatenate([NO_TAGS, *(part.tags for _, part in parts)])
            values: list[Any] = [numpy.zeros(0), *(part.probabilities for _, part in parts)]
            probabilities = numpy.concatenate(values) if self.confidence else None
            predictions.append(TagPrediction(tags, probabilities))
        return predictions

    def set_annotations(self, docs: Iterable[Doc], scores: list[TagPrediction]) -> None:
        """Write the predicted tags of `predict`, and their probabilities if there are any."""
        for doc, predicted in zip(docs, scores, strict=True):
            own = [t for t in doc if self.overwrite or not t.tag or is_noted(self.name, t)]
            tags = predicted.tags.tolist()
            for token in own:
                token.tag_ = self.tags[tags[token.i]]
            if not self.overwrite:  # otherwise there is no evidence
                note(self.name, doc, own)
            if predicted.probabilities is not None:
                for token in doc:
                    token._.tag_confidence = 1.0  # of a tag that is kept
                probabilities = predicted.probabilities.tolist()
                for token in own:
                    token._.tag_confidence = probabilities[token.i]

    def prediction_sets(self, docs: Iterable[Doc]) -> list[list[list[tuple[str, float]]]]:
        """Find sets of tags that hold the true one with the probability of `coverage`.

        In a new document, the set of a token that is drawn at random has the true tag with at least
        the promised probability, if the document is like those that `calibrate --coverage` had.

        Args:
            docs: the docs. They stay as they are; the evidence on them counts.

        Returns:
            For each token of each doc, the tags with their probabilities, best first. The most
            probable tag is always there.

        Raises:
            InputError: if the component has no coverage.
        """
        least = self.calibrated.least
        return [
            [self._tags_above(row, least) for row in analyses.marginals.tolist()]
            for analyses in self.analyses(docs)
        ]

    def _tags_above(self, probabilities: list[float], least: float) -> list[tuple[str, float]]:
        """List the best tag, and the others with at least a probability, best first."""
        best, *rest = sorted(zip(self.tags, probabilities), key=lambda tag: -tag[1])
        return [best, *(tag for tag in rest if tag[1] >= least)]

    def _named(self, tags: list[int], start: int) -> list[Any]:
        return [self.tags[tag] for tag in tags]

    def _joined(self, doc: Doc, parts: list[list[Any]]) -> list[Any]:
        return [tag for part in parts for tag in part]

    def _posteriors(self, chain: LinearChain) -> list[Posterior]:
        def posterior(row: int, start: int, end: int, label: str) -> float:
            tag = self.tags.index(label)
            if end - start == 1:
                return float(chain.marginals[row, start, tag])
            own = chain.select(torch.tensor([row]))
            allowed = torch.ones(1, int(own.lengths[0]), self._outputs, dtype=torch.bool)
            allowed[0, start:end] = torch.arange(self._outputs) == tag
            return float((own.constrain(allowed).log_partition - own.log_partition).exp())

        return [partial(posterior, row) for row in range(len(chain.lengths))]

    def _above(self, batch: ChainBatch, row: int, least: float) -> list[Scored]:
        return [
            (i, i + 1, tag, probability)
            for i, probabilities in enumerate(batch.marginals[row].tolist())
            for tag, probability in self._tags_above(probabilities, least)
        ]

    # Evidence

    @property
    def _token_labels(self) -> tuple[str, ...]:
        return self.labels

    def _on_doc(self, doc: Doc, bounds: Bounds) -> Evidence:
        if self.overwrite or not doc.has_annotation("TAG"):
            return NOTHING
        held = {t.i: t.tag_ for t in doc if t.tag_ in self.labels and not is_noted(self.name, t)}
        return Evidence([], [], {i: {tag} for i, tag in held.items()})

    def _check_evidence(self, doc: Doc, evidence: Evidence, bounds: Bounds, remedy: str) -> None:
        check_consistent(self.name, doc, evidence, [], _differ, remedy)

    def _translated(self, doc: Doc, evidence: Evidence, bounds: Bounds) -> list[Known]:
        if evidence.is_empty:
            return [Known()] * len(bounds)
        tags = numpy.array(self.tags)
        allowed = numpy.ones((len(doc), len(tags)), dtype=bool)
        for start, end, tag in evidence.required:
            allowed[start:end] &= (tags == tag) | (not tag)
        for start, end, tag in evidence.forbidden:
            allowed[start:end] &= (tags != tag) & bool(tag)
        for i, may in evidence.allowed.items():
            allowed[i] &= [tag in may for tag in self.tags]
        for i in numpy.flatnonzero(~allowed.any(1)).tolist():
            raise InputError(
                f"{self.name}: no tag is left for token {i} {doc[i].text!r}: "
                "allow more tags, or forbid fewer"
            )
        parts = [allowed[start:end] for start, end in bounds]
        return [Known(None if part.all() else part) for part in parts]

    # Training

    def _gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        if same_tokens(example):
            names = [token.tag_ for token in example.reference]
        else:
            names = example.get_aligned("TAG", as_string=True)
        known = {name: i for i, name in enumerate(self.tags)} | {"": MISSING, None: MISSING}
        known |= {
            self._neg_prefix + name: NOT_FIRST - i
            for i, name in enumerate(self.tags)
            if self._is_negative(self._neg_prefix + name)
        }
        unseen = set(names) - known.keys()
        if unseen:
            raise InputError(
                f"{self.name}: the training data has the tag {min(unseen)!r}, which is not among "
                "the labels: initialize with all labels"
            )
        tags = numpy.array([known[name] for name in names], dtype="int64")
        return [tags[start:end] for start, end in bounds]

    def _gold_allowed(self, gold: Tensor) -> Tensor:
        excluded = torch.nn.functional.one_hot((NOT_FIRST - gold).clamp(min=0), self._outputs)
        without = (gold <= NOT_FIRST)[..., None] & ~excluded.bool()
        return torch.where((gold <= NOT_FIRST)[..., None], without, super()._gold_allowed(gold))


def _differ(first: Node, second: Node) -> str | None:
    """Return "overlap" if two spans overlap and have different tags."""
    return overlap(first, second) if first[2] != second[2] else None


def _best_tags(chain: LinearChain) -> list[TagPrediction]:
    return [TagPrediction(tags.cpu().numpy()) for tags in chain.argmax]


def _tags_and_probabilities(chain: LinearChain) -> list[TagPrediction]:
    predictions = []
    for tags, rows in zip(chain.argmax, chain.marginals, strict=True):
        values = rows[: len(tags)].gather(1, to_device(tags[:, None], rows.device))[:, 0]
        probabilities = values.double().clamp(max=1).cpu().numpy()
        predictions.append(TagPrediction(tags.cpu().numpy(), probabilities))
    return predictions


make_crf_tagger = component_factory(
    "crf_tagger",
    CRFTagger,
    model=CHAIN,
    scorer="spacy.tagger_scorer.v1",
    assigns=["token.tag"],
    score_weights={"tag_acc": 1.0},
)
