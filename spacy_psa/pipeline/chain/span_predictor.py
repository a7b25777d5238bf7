"""Evidence on the spans of a doc, and questions to the distribution over them."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, Span

from spacy_psa.errors import InputError
from spacy_psa.pipeline.asked_spans import Asked
from spacy_psa.pipeline.chain.chain_predictor import Allowed, ChainPredictor, Tags
from spacy_psa.pipeline.chain.decoders import Decode, make_decoder
from spacy_psa.pipeline.chain.doc_analyses import Decoding
from spacy_psa.pipeline.chain.doc_spans import conflict
from spacy_psa.pipeline.chain.evidence import Known, Labels
from spacy_psa.pipeline.chain.own_predictions import is_own
from spacy_psa.pipeline.chain.queries import exact
from spacy_psa.pipeline.chain.refined_chain import without_spans
from spacy_psa.pipeline.chain.span_evidence import SpanEvidence, allowed_by
from spacy_psa.pipeline.chain.span_posteriors import posteriors_of, sentence_posteriors
from spacy_psa.pipeline.chain.span_tags import Spans, SpanScheme
from spacy_psa.sentences import Bounds, sentence_bounds
from spacy_psa.structs.chain import LinearChain


class SpanPredictor(ChainPredictor):
    """Reads evidence about spans, and answers questions about them; see `SpanLabeler`.

    A subclass reads the spans on a doc (`evidence`) and has a `scheme`.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> ner = nlp.add_pipe(
        ...     "crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> ner.add_label("PER")
        1
        >>> optimizer = nlp.initialize()
        >>> ner.decode(nlp.make_doc("Ada met Bob"), require=[(0, 1, "PER")]).best[0]
        Ada
    """

    overwrite: bool
    decoding: Decode

    @property
    @abstractmethod
    def scheme(self) -> SpanScheme:
        """The translation between spans and tags."""

    @abstractmethod
    def evidence(self, doc: Doc) -> tuple[list[Span], Allowed]:
        """Read the spans on a doc, with what this component itself has predicted.

        Returns:
            The spans, and a bool array (n,) that is true for tokens that are known to be in no
            span.
        """

    def held(self, doc: Doc) -> tuple[list[Span], Allowed]:
        """Read the evidence on a doc.

        Returns:
            The spans on the doc that this component has not predicted itself, in order, and a bool
            array (n,) that is true for tokens that are known to be in no span. With
            `overwrite = True` there is no evidence.
        """
        if self.overwrite:
            return [], numpy.zeros(len(doc), dtype=bool)
        spans, outside = self.evidence(doc)
        return [span for span in spans if not is_own(self.name, span)] if spans else [], outside

    def known_tags(self, doc: Doc, bounds: Bounds) -> list[Allowed | None]:
        held, known = self.held(doc)
        if not held and not numpy.count_nonzero(known):
            return self._without_space([None] * len(bounds), doc, bounds)
        fault = conflict(held)
        if fault is not None:
            sentence = _sentence(doc, bounds, fault.span)
            raise InputError(
                f"{self.name}: {fault.text} in the sentence {sentence!r}, "
                "so no analysis has all spans on the doc: remove one, or set overwrite = true"
            )
        spans = [(span.start, span.end, span.label_) for span in held]
        return self._without_space(allowed_by(spans, known, bounds, self.scheme), doc, bounds)

    def _without_space(
        self, known: list[Allowed | None], doc: Doc, bounds: Bounds
    ) -> list[Allowed | None]:
        """Leave out spans that begin or end with white space, unless they are on the doc.

        In BIO, whose tags do not tell the end, a span may still end so.
        """
        space = doc.to_array("IS_SPACE").astype(bool)
        if not space.any():
            return known
        inside = numpy.array([tag[0] in "OI" for tag in self.tags])
        found = []
        for (start, end), allowed in zip(bounds, known):
            own = space[start:end]
            if own.any():
                if allowed is None:
                    allowed = numpy.ones((end - start, len(self.tags)), dtype=bool)
                left = allowed[own] & inside
                allowed[own] = numpy.where(left.any(1, keepdims=True), left, allowed[own])
            found.append(allowed)
        return found

    def known_of(  # type: ignore[override]
        self,
        doc: Doc,
        bounds: Bounds,
        *,
        require: Iterable[Asked] = (),
        forbid: Iterable[Asked] = (),
        allow: Labels | None = None,
    ) -> list[Known]:
        evidence = SpanEvidence.read(
            self.name, doc, self.labels, require=require, forbid=forbid, allow=allow
        )
        spans, outside = self.held(doc)
        held = [(span.start, span.end, span.label_) for span in spans]
        evidence.check(self.name, doc, bounds, held, outside)
        return evidence.known(bounds, self.scheme)

    def of_spans(
        self, doc: Doc, require: Iterable[Asked] = (), forbid: Iterable[Asked] = ()
    ) -> dict[str, Any]:
        return {"require": require, "forbid": forbid}

    def excluded(self, chain: LinearChain, wrong: list[Spans]) -> LinearChain:
        return without_spans(chain, self.scheme, wrong) if any(wrong) else chain

    @property
    def decode(self) -> Callable[..., Decoding]:
        """`decode(doc, *, require=(), forbid=(), allow=None, k=1)`: the best analyses, exactly.

        This finds the best analyses of a doc that agree with evidence. A span is a `Span` of the
        doc or (start, end, label) over its tokens. The evidence on the doc counts, too. `analyses`
        takes one piece of evidence after the other and scores the doc only once.

        The setting `decode` of the component is its attribute `decoding`. As in version 0.1, a name
        that is assigned to `decode` sets it.

        Args:
            doc: the doc; it stays as it is.
            require: spans that the analysis must have. A span without label may have any.
            forbid: spans that it must not have; other spans over the same tokens are possible. A
                span without label is forbidden with all labels.
            allow: for a token, the label or the labels of the span that it may be in; "O" is for
                no span.
            k: how many analyses to find, at least 1.

        Returns:
            The best analyses with their log probabilities among those that agree, and the log
            probability of the evidence.

        Raises:
            InputError: if the evidence contradicts itself or the annotation on the doc, if no legal
                analysis agrees with it, and for a label that the component does not know.
        """
        return self._decode

    @decode.setter
    def decode(self, value: Decode) -> None:
        self.decoding = value

    def _decode(
        self,
        doc: Doc,
        *,
        require: Iterable[Asked] = (),
        forbid: Iterable[Asked] = (),
        allow: Labels | None = None,
        k: int = 1,
    ) -> Decoding:
        return self._decoded(doc, k, require=require, forbid=forbid, allow=allow)

    def posterior(self, spans: Iterable[Span]) -> NDArray[numpy.float64]:
        """Compute P(the span with its label is in the analysis | doc), exactly, given the evidence.

        Args:
            spans: any spans of one doc, predicted or not.

        Returns:
            (spans,) float64. The probability is 0 for a span that crosses the bounds of a sentence
            or has no token.

        Raises:
            InputError: if they are no spans, if they are of different docs, or if the model does
                not know a label.
        """
        spans = list(spans)
        if not spans:
            return numpy.zeros(0)
        if not all(isinstance(span, Span) for span in spans):
            raise InputError(
                f"{self.name}: posterior takes spans of a doc: for (start, end, label), take "
                "analyses(doc).posterior"
            )
        doc = spans[0].doc
        for span in spans:
            if span.doc is not doc:
                raise InputError(
                    f"{self.name}: {span.text!r} and {spans[0].text!r} are spans of different "
                    "docs: give the spans of one doc"
                )
            if span.label_ not in self.labels:
                raise InputError(
                    f"{self.name}: {span.text!r} has the label {span.label_!r}, which is not "
                    f"among the labels {', '.join(self.labels)}"
                )
        asked = [(span.start, span.end, span.label_) for span in spans]
        return numpy.array(self.posterior_batch([doc], [asked])[0])

    def posterior_batch(
        self, docs: Iterable[Doc], spans: Iterable[Sequence[tuple[int, int, str]]]
    ) -> list[list[float]]:
        """Compute the probabilities of spans of several docs, which share batches of the model.

        Args:
            docs: the docs; the evidence on them counts.
            spans: for each doc, any spans: start, end and label, over its tokens.

        Returns:
            For each doc, the probability of each span. It is 0 for a span that crosses the bounds
            of a sentence, or has a label that the component does not know.
        """
        docs = list(docs)
        inferred = self.infer(docs, lambda chain: sentence_posteriors(exact(chain), self.scheme))
        found = []
        for doc, parts, asked in zip(docs, inferred, spans, strict=True):
            ends = dict(sentence_bounds(doc))
            sentences = [(start, ends[start], posterior) for start, posterior in parts]
            found.append(posteriors_of(sentences, asked, self.labels))
        return found

    def prediction_sets(self, docs: Iterable[Doc]) -> list[list[tuple[Span, float]]]:
        """Give the spans of which the true ones are with the probability of `coverage`.

        In a new document, a true span that is drawn at random is among them with at least the
        promised probability, if the document is like those that `calibrate --coverage` had. The
        docs stay as they are. The evidence on them counts.

        Args:
            docs: the docs.

        Returns:
            For each doc, the spans with their probabilities, in order. They may overlap.

        Raises:
            InputError: if the component has no coverage.
        """
        docs = list(docs)
        decoder = make_decoder("threshold", self._promised().least, scores=True, entropy=False)
        return [
            [(Span(doc, *span), p) for span, p in zip(found.spans, found.scores or [])]
            for doc, found in zip(docs, decoder.predict(docs, self.infer, self.scheme))
        ]

    def named(self, tags: Tags, start: int) -> list[Any]:
        return [(start + s, start + e, label) for s, e, label in self.scheme.decode(tags.tolist())]

    def analysis(self, doc: Doc, parts: list[list[Any]]) -> list[Any]:
        return [Span(doc, *span) for part in parts for span in part]


def _sentence(doc: Doc, bounds: Bounds, span: Span) -> str:
    start, end = next(((s, e) for s, e in bounds if s <= span.start < e), bounds[-1])
    return cast(str, doc[start:end].text)
