"""`crf_tagger`: part-of-speech tags by a linear-chain CRF (Wei2020 Table 3)."""

from collections.abc import Callable, Iterable
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
from spacy_psa.pipeline.asked_spans import Asked, checked_span
from spacy_psa.pipeline.chain.chain_predictor import Allowed, Tags
from spacy_psa.pipeline.chain.default_model import DEFAULT_MODEL
from spacy_psa.pipeline.chain.doc_analyses import Decoding
from spacy_psa.pipeline.chain.doc_spans import same_tokens
from spacy_psa.pipeline.chain.evidence import Known, Labels, read_labels
from spacy_psa.pipeline.chain.own_predictions import is_own, set_own
from spacy_psa.pipeline.chain.sequence_labeler import NO_TAGS, Reduction, SequenceLabeler
from spacy_psa.pipeline.chain.span_tags import MISSING, LegalTransitions
from spacy_psa.pipeline.factory import component_factory
from spacy_psa.sentences import Bounds
from spacy_psa.structs.chain import LinearChain

NOT_FIRST = -2
"""Stands for any tag but the first, -3 for any but the second, and so on."""


class TagPrediction(NamedTuple):
    """The tags that are predicted for a doc or a sentence.

    Examples:
        >>> TagPrediction(numpy.array([1, 0])).probabilities is None
        True
    """

    tags: Tags
    """(n,) int64, the number of each token's tag."""
    probabilities: NDArray[numpy.float64] | None = None
    """(n,) float64, the probability of each tag; None if it was not asked for."""


class CRFTagger(SequenceLabeler):
    """Predicts part-of-speech tags and writes them to `token.tag_`.

    The component `crf_tagger` predicts the most probable tags of each sentence under a linear-chain
    CRF (Wei2020 Table 3). A doc without sentence boundaries is one sentence. `labels` and `tags`
    are the same.

    With `overwrite = False`, tags that are on a doc before the component runs are evidence: the
    component keeps them and predicts the best analysis that agrees with them. It also keeps tags
    that the model does not know. Its own earlier predictions are not evidence.

    In training, the loss marginalises over tokens without a tag. Of a token with the tag "!N", only
    analyses that give it "N" are left out.

    Scores: `tag_acc`, the share of tokens with the right tag.

    Args:
        vocab: the vocabulary of the pipeline.
        model: Model[List[Doc], List[Floats2d]] that gives one array of potentials for each
            sentence, as `spacy-psa.CRF.v1` and `spacy-psa.Softmax.v1` do. The default is
            PSA-BiLSTM-CRF.
        name: the name of the component in the pipeline.
        overwrite: True to ignore and replace the tags that are on a doc; False to take them as
            evidence.
        confidence: whether `token._.tag_confidence` gets the probability of the predicted tag
            given the doc.
        max_grad_norm: largest joint L2 norm of the gradients of this component in an update
            (Wei2020 section 5.2: 5.0); 0 for no limit. Gradients of a shared tok2vec or transformer
            before it are not counted.
        reduction: whether an update follows the "mean" or the "sum" of its sentences' negative
            log likelihoods (Wei2020 Eq. 3 has the sum).
        label_smoothing: the share of the loss that is the cross entropy with the uniform
            distribution over the legal analyses, from 0 to 1 (Szegedy et al. 2016 section 7, for
            analyses in the place of classes); 0 for none.
        batch_tokens: number of tokens, padding included, that go through the model together in
            prediction.
        neg_prefix: what stands before a gold tag that a token is known not to have, as in spaCy's
            `tagger`: with "!N", training lowers the probability of "N". "" for no such tags.
        required_spans_key: the key of `doc.spans` with spans whose label is the tag of each of
            their tokens; None for no such spans.
        forbidden_spans_key: the key of `doc.spans` with spans whose label is the tag of none of
            their tokens; None for no such spans.
        scorer: called with the examples in `score`; None for no scores.

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

    kept = ("confidence", "overwrite")

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "tagger",
        *,
        overwrite: bool = True,
        confidence: bool = False,
        max_grad_norm: float = 5.0,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
        batch_tokens: int = 4000,
        neg_prefix: str = "!",
        required_spans_key: str | None = None,
        forbidden_spans_key: str | None = None,
        scorer: Callable | None = None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            scorer=scorer,
            max_grad_norm=max_grad_norm,
            reduction=reduction,
            label_smoothing=label_smoothing,
            batch_tokens=batch_tokens,
            confidence=confidence,
            required_spans_key=required_spans_key,
            forbidden_spans_key=forbidden_spans_key,
        )
        self.overwrite = overwrite
        self.neg_prefix = neg_prefix
        self.remember()

    @property
    def tags(self) -> tuple[str, ...]:
        return self.labels

    def legal(self) -> LegalTransitions:
        k = len(self.tags)
        return LegalTransitions(*(numpy.ones(shape, dtype=bool) for shape in ((k, k), (k,), (k,))))

    def find_labels(self, examples: Iterable[Example]) -> list[str]:
        found = {token.tag_ for eg in examples for token in eg.reference} - {""}
        return sorted(name for name in found if not self._is_negative(name))

    def _is_negative(self, name: str) -> bool:
        """Whether a gold tag says what a token is not; a tag of the component says what it is."""
        prefix = self.neg_prefix
        negative = bool(prefix) and name.startswith(prefix) and len(name) > len(prefix)
        return negative and name not in self.labels

    def gold_tags(self, example: Example, bounds: Bounds) -> list[Tags]:
        if same_tokens(example):
            names = [token.tag_ for token in example.reference]
        else:
            names = example.get_aligned("TAG", as_string=True)
        known = {name: i for i, name in enumerate(self.tags)} | {"": MISSING, None: MISSING}
        known |= {
            self.neg_prefix + name: NOT_FIRST - i
            for i, name in enumerate(self.tags)
            if self._is_negative(self.neg_prefix + name)
        }
        unseen = set(names) - known.keys()
        if unseen:
            raise InputError(
                f"{self.name}: the training data has the tag {min(unseen)!r}, which is not among "
                "the labels: initialize with all labels"
            )
        tags = numpy.array([known[name] for name in names], dtype="int64")
        return [tags[start:end] for start, end in bounds]

    def gold_allowed(self, gold: Tensor) -> Tensor:
        excluded = torch.nn.functional.one_hot((NOT_FIRST - gold).clamp(min=0), len(self.tags))
        without = (gold <= NOT_FIRST)[..., None] & ~excluded.bool()
        return torch.where((gold <= NOT_FIRST)[..., None], without, super().gold_allowed(gold))

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

    def known_of(  # type: ignore[override]
        self,
        doc: Doc,
        bounds: Bounds,
        *,
        allow: Labels | None = None,
        forbid: Labels | None = None,
    ) -> list[Known]:
        may = read_labels(self.name, doc, allow or {}, self.tags)
        must_not = read_labels(self.name, doc, forbid or {}, self.tags)
        allowed = numpy.ones((len(doc), len(self.tags)), dtype=bool)
        for i in sorted({*may, *must_not}):
            left = may.get(i, set(self.tags)) - must_not.get(i, set())
            if not left:
                raise InputError(
                    f"{self.name}: no tag is left for token {i} {doc[i].text!r}: "
                    "allow more tags, or forbid fewer"
                )
            allowed[i] = [tag in left for tag in self.tags]
        parts = [allowed[start:end] for start, end in bounds]
        return [Known(None if part.all() else part) for part in parts]

    def of_spans(
        self, doc: Doc, require: Iterable[Asked] = (), forbid: Iterable[Asked] = ()
    ) -> dict[str, Any]:
        allowed: dict[int, str] = {}
        for asked in require:
            start, end, tag = checked_span(self.name, doc, asked)
            for i in range(start, end) if tag else ():
                other = allowed.setdefault(i, tag)
                if other != tag:
                    raise InputError(
                        f"{self.name}: token {i} {doc[i].text!r} is required to have the tags "
                        f"{other!r} and {tag!r}, so no analysis agrees: leave one out"
                    )
        unwanted: dict[int, list[str]] = {}
        for asked in forbid:
            start, end, tag = checked_span(self.name, doc, asked)
            for i in range(start, end):
                unwanted.setdefault(i, []).append(tag)
        return {"allow": allowed, "forbid": unwanted}

    def decode(
        self, doc: Doc, *, allow: Labels | None = None, forbid: Labels | None = None, k: int = 1
    ) -> Decoding:
        """Find the best tags of a doc that agree with evidence, exactly.

        The evidence on the doc counts, too. `analyses` takes one piece of evidence after the other
        and scores the doc only once.

        Args:
            doc: the doc; it stays as it is.
            allow: for a token, the tag or the tags that it may have.
            forbid: for a token, the tag or the tags that it does not have.
            k: how many analyses to find, at least 1.

        Returns:
            The best analyses with their log probabilities among those that agree, and the log
            probability of the evidence.

        Raises:
            InputError: if no tag is left for a token, if no analysis agrees with the tags on the
                doc, and for a tag that the component does not know.
        """
        return self._decoded(doc, k, allow=allow, forbid=forbid)

    def predict(self, docs: Iterable[Doc]) -> list[TagPrediction]:
        """Predict the most probable tags of each doc; with `confidence`, their probabilities too.

        Raises:
            InputError: if no legal analysis of a sentence agrees with the evidence.
        """
        read = _tags_and_probabilities if self.confidence else _best_tags
        return [
            TagPrediction(
                numpy.concatenate([NO_TAGS, *(part.tags for _, part in parts)]),
                numpy.concatenate([numpy.zeros(0), *(part.probabilities for _, part in parts)])
                if self.confidence
                else None,
            )
            for parts in self.infer(list(docs), read)
        ]

    def prediction_sets(self, docs: Iterable[Doc]) -> list[list[list[tuple[str, float]]]]:
        """Give the tags of which the true one is with the probability of `coverage`.

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
        least = self._promised().least
        return [
            [self.tags_above(row, least) for row in marginals.tolist()]
            for marginals in self.marginals_batch(docs)
        ]

    def tags_above(self, probabilities: list[float], least: float) -> list[tuple[str, float]]:
        """Give the best tag, and the others with at least a probability, best first.

        Args:
            probabilities: (K,) of the tags of a token.
            least: the least probability.
        """
        best, *rest = sorted(zip(self.tags, probabilities), key=lambda tag: -tag[1])
        return [best, *(tag for tag in rest if tag[1] >= least)]

    def named(self, tags: Tags, start: int) -> list[Any]:
        return [self.tags[tag] for tag in tags]

    def analysis(self, doc: Doc, parts: list[list[Any]]) -> list[Any]:
        return [tag for part in parts for tag in part]

    def set_annotations(self, docs: Iterable[Doc], scores: list[TagPrediction]) -> None:
        """Write the predicted tags of `predict`, and their probabilities if there are any."""
        for doc, predicted in zip(docs, scores, strict=True):
            own = [t for t in doc if self.overwrite or not t.tag or is_own(self.name, t)]
            tags = predicted.tags.tolist()
            for token in own:
                token.tag_ = self.tags[tags[token.i]]
            if not self.overwrite:  # otherwise there is no evidence
                set_own(self.name, doc, own)
            if predicted.probabilities is not None:
                for token in doc:
                    token._.tag_confidence = 1.0  # of a tag that is kept
                probabilities = predicted.probabilities.tolist()
                for token in own:
                    token._.tag_confidence = probabilities[token.i]


def _best_tags(chain: LinearChain) -> list[TagPrediction]:
    return [TagPrediction(tags.cpu().numpy()) for tags in chain.argmax]


def _tags_and_probabilities(chain: LinearChain) -> list[TagPrediction]:
    found = []
    for tags, rows in zip(chain.argmax, chain.marginals, strict=True):
        values = rows[: len(tags)].gather(1, tags[:, None].to(rows.device))[:, 0]
        found.append(TagPrediction(tags.cpu().numpy(), values.double().clamp(max=1).cpu().numpy()))
    return found


make_crf_tagger = component_factory(
    "crf_tagger",
    CRFTagger,
    model=DEFAULT_MODEL,
    scorer="spacy.tagger_scorer.v1",
    assigns=["token.tag"],
    score_weights={"tag_acc": 1.0},
)
