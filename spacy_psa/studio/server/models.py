"""The pipelines of a server: rows of annotation, and the analyses that a page shows."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from spacy_psa.annotation.rows import annotation
from spacy_psa.errors import InputError
from spacy_psa.memory import memory_zone
from spacy_psa.pipeline.analyses import DocAnalyses
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.pipeline.nested.spans import NestedSpanLabeler
from spacy_psa.pipeline.parser.parser import ConstituencyParser
from spacy_psa.sentences import Bounds, sentence_bounds, sentence_starts
from spacy_psa.studio.active_learning.tokens import Tokens
from spacy_psa.studio.server.analysis import Evidence, answer, attention_rows

KEPT = 32  # texts whose scores are kept: those that annotators have open, and the next ones
REMEMBERED = 500_000
"""Characters of texts whose words are kept: a frequent word is looked up once for all of them."""
LABELERS = ChainLabeler, NestedSpanLabeler
Row = dict[str, Any]


class _Scored(NamedTuple):
    """A text that all but parsers have scored, without a doc: docs end with their zone."""

    tokens: Tokens
    analyses: dict[str, DocAnalyses]


class ServedModel:
    """A pipeline of a server and its name on the page. All methods are for one thread."""

    def __init__(self, name: str, nlp: Language, confidence: bool = True):
        self.name = name
        self._confidence = confidence
        self._zone = ExitStack()
        self._chars = 0  # annotated in the zone
        self.replace(nlp)

    def replace(self, nlp: Language) -> None:
        """Serve this pipeline; its components of this package write confidences, if asked to."""
        self.forget_words()
        for _, pipe in nlp.pipeline:
            if isinstance(pipe, StructuredPipe):
                register()
                pipe.confidence = self._confidence
        self.nlp = nlp
        self._pipes = list(nlp.pipeline)  # also those that a comparison disables meanwhile
        self._scored: OrderedDict[str | Tokens, _Scored] = OrderedDict()

    @property
    def components(self) -> list[Row]:
        """The components that the page can show, with their labels."""
        rows = []
        for name, pipe in self._pipes:
            kind = _kind(pipe)
            if kind:
                labels = list(pipe._span_labels)  # type: ignore[attr-defined]
                rows.append({"name": name, "kind": kind, "labels": labels})
        return rows

    @property
    def example(self) -> str:
        """An example sentence in the language of the pipeline; empty if spaCy has none."""
        try:
            examples = import_module(f"spacy.lang.{self.nlp.lang}.examples")
        except ModuleNotFoundError:
            return ""
        return str(examples.sentences[0])

    def annotate(self, texts: Sequence[str]) -> list[Row]:
        """Annotate texts; memory does not grow with the number of calls.

        Their words stay for the next calls. Before any other use of the pipeline, call
        `forget_words`.
        """
        if not self._chars:
            self._zone.enter_context(memory_zone(self.nlp))
        self._chars += sum(map(len, texts)) + 1
        rows = [{"text": doc.text, **annotation(doc)} for doc in self.nlp.pipe(texts)]
        if self._chars > REMEMBERED:
            self.forget_words()
        return rows

    def forget_words(self) -> None:
        """End the memory zone of the texts that were annotated, if it is open."""
        self._zone.close()
        self._chars = 0

    def analyse(
        self,
        text: str,
        evidence: list[Evidence],
        sentences: Iterable[int] | None,
        k: int,
        limit: int | None = None,
    ) -> Row:
        """Analyse a text under evidence.

        A sentence of the answer ends where one ends for all components that the page shows: where
        a component before the sentencizer gets the text as a whole, the text is one sentence.

        Args:
            text: the text.
            evidence: everything that is known.
            sentences: the numbers of the sentences to answer for; None for all.
            k: the number of analyses of each.
            limit: how many of the sentences to answer for; None for all.

        Raises:
            InputError: if the evidence contradicts itself, or names what is not there.
        """
        with self.scored(text) as (doc, scores):
            bounds = sentence_bounds(doc)
            names = {component["name"] for component in self.components}
            asked: defaultdict[str, list[Evidence]] = defaultdict(list)
            for each in evidence:
                if each.component not in names:
                    raise InputError(
                        f"the model {self.name} has no component {each.component!r} for "
                        f"evidence: choose one of {', '.join(sorted(names)) or '(none)'}"
                    )
                asked[each.component].append(each)
            chosen = range(len(bounds)) if sentences is None else sorted(set(sentences))
            chosen = list(chosen)[:limit]
            self._check_sentences(chosen, bounds)
            answers = {}
            for name, analyses in scores.items():
                answers[name] = answer(analyses, bounds, asked[name], chosen, k)
            for name, parser, seen in self._before_parsers(text):
                (trees,) = parser.analyses([seen])
                answers[name] = answer(trees, bounds, asked[name], chosen, k)
            order = [name for name in self.nlp.pipe_names if name in answers]
            return {
                "sentences": [
                    {
                        **shown_tokens(doc, i, bounds[i]),
                        "components": {name: answers[name][i] for name in order},
                    }
                    for i in chosen
                ],
                "count": len(bounds),
            }

    def attention(self, text: str, sentence: int) -> Row:
        """Read the attention over a sentence, from the components that have some."""
        from spacy_psa.analysis.attention import inspect

        with memory_zone(self.nlp):
            shown = self._scored_text(text, keep=True).tokens.doc(self.nlp.vocab)
            bounds = sentence_bounds(shown)
            self._check_sentences([sentence], bounds)
            components = {}
            doc = self.nlp.make_doc(text)
            for name, pipe in self.nlp.pipeline:
                if hasattr(pipe, "model"):
                    with suppress(InputError, ValueError):
                        components[name] = attention_rows(inspect(pipe, [doc]), *bounds[sentence])
                doc = pipe(doc)
            if not components:
                raise InputError(
                    f"no component of the model {self.name} has a layer with attention: "
                    "open one with PSABiLSTM.v1, SelfAttentiveBiLSTM.v1 or a transformer"
                )
            return {"components": components}

    @contextmanager
    def scored(
        self, text: str | Tokens, *, keep: bool = True
    ) -> Iterator[tuple[Doc, dict[str, DocAnalyses]]]:
        """Open a text with the analyses of all components but parsers; they end with the block.

        `keep` keeps the scores for the next question.
        """
        with memory_zone(self.nlp):
            scored = self._scored_text(text, keep)
            doc = scored.tokens.doc(self.nlp.vocab)
            yield doc, {name: analyses.on(doc) for name, analyses in scored.analyses.items()}

    def _scored_text(self, text: str | Tokens, keep: bool) -> _Scored:
        if text in self._scored:
            self._scored.move_to_end(text)
            return self._scored[text]
        doc = self.nlp.make_doc(text) if isinstance(text, str) else text.doc(self.nlp.vocab)
        analyses, starts = {}, []
        shown = [name for name, pipe in self.nlp.pipeline if _kind(pipe)]
        labelers = [name for name, pipe in self.nlp.pipeline if isinstance(pipe, LABELERS)]
        for name, pipe in self.nlp.pipeline:
            if name in shown:
                starts.append(sentence_starts(doc))
            if isinstance(pipe, LABELERS):
                (analyses[name],) = pipe.analyses([doc])
                labelers.remove(name)
            if name in shown[-1:]:  # The components after the last of them change nothing there.
                break
            if labelers or not isinstance(pipe, ConstituencyParser):
                doc = pipe(doc)
        tokens = Tokens.of(doc)
        if starts:
            tokens = tokens._replace(starts=self._shared(starts, tokens))
        without_doc = {name: own.on(None) for name, own in analyses.items()}
        scored = _Scored(tokens, without_doc)
        if keep:
            self._scored[text] = scored
        while len(self._scored) > KEPT:
            self._scored.popitem(last=False)
        return scored

    def _shared(self, starts: list[list[bool]], tokens: Tokens) -> tuple[bool, ...]:
        """Find where a sentence begins for each component that the page shows."""
        if any(len(own) != len(tokens.words) for own in starts):
            raise InputError(
                f"the model {self.name} changes the tokens between the components that the page "
                "shows: put what does so before all of them"
            )
        return tuple(all(own) for own in zip(*starts, strict=True))

    def _before_parsers(self, text: str) -> Iterator[tuple[str, ConstituencyParser, Doc]]:
        """Yield each parser with the doc that it sees in the pipeline."""
        left = sum(isinstance(pipe, ConstituencyParser) for _, pipe in self.nlp.pipeline)
        doc = self.nlp.make_doc(text)
        for name, pipe in self.nlp.pipeline:
            if isinstance(pipe, ConstituencyParser):
                yield name, pipe, doc
                left -= 1
            if not left:  # The components after the last of them change nothing.
                return
            doc = pipe(doc)

    @staticmethod
    def _check_sentences(numbers: Iterable[int], bounds: Bounds) -> None:
        if any(not 0 <= i < len(bounds) for i in numbers):
            raise InputError(f"the text has {len(bounds)} sentences, from 0: ask for these")


def shown_tokens(doc: Doc, number: int, bounds: tuple[int, int]) -> Row:
    """Describe a sentence for the page: its number, first token, and tokens with their spaces."""
    tokens = [[token.text, token.whitespace_] for token in doc[slice(*bounds)]]
    return {"number": number, "start": bounds[0], "tokens": tokens}


def _kind(pipe: Any) -> str:
    """Find the form in which the page shows a component; empty if it does not."""
    if isinstance(pipe, NestedSpanLabeler):
        return "layers" if pipe.layers == "label" else "nested"
    for kind, of in (("spans", SpanLabeler), ("tags", CRFTagger), ("trees", ConstituencyParser)):
        if isinstance(pipe, of):
            return kind
    return ""
