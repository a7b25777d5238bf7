"""All analyses of short sentences, one by one, to compare exact inference with."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy
import pytest

Span = tuple[int, int, str]


def analyses(n: int, labels: Sequence[str], start: int = 0) -> Iterator[tuple[Span, ...]]:
    """Every set of labelled spans of n tokens that do not overlap."""
    if start >= n:
        yield ()
        return
    yield from analyses(n, labels, start + 1)
    for end in range(start + 1, n + 1):
        for label in labels:
            for rest in analyses(n, labels, end):
                yield ((start, end, label), *rest)


def path(spans: Sequence[Span], n: int, tags: Sequence[str]) -> list[int]:
    """The numbers, in `tags`, of the tags of an analysis."""
    names = ["O"] * n
    for start, end, label in spans:
        names[start:end] = [f"I-{label}"] * (end - start)
        names[start] = f"B-{label}"
        if f"E-{label}" in tags:
            names[end - 1] = f"E-{label}" if end - start > 1 else f"S-{label}"
    return [tags.index(name) for name in names]


class Distribution(NamedTuple):
    """The analyses of a sentence and their probabilities."""

    values: list[tuple[Span, ...]]
    probabilities: numpy.ndarray

    def where(self, keep: Callable[[tuple[Span, ...]], bool]) -> "Distribution":
        """Given that something is true of the analysis."""
        kept = [i for i, spans in enumerate(self.values) if keep(spans)]
        some = self.probabilities[kept]
        return Distribution([self.values[i] for i in kept], some / some.sum())

    def of(self, span: Span) -> float:
        """P(the analysis has a span)."""
        return float(sum(p for v, p in zip(self.values, self.probabilities) if span in v))

    @property
    def best(self) -> tuple[Span, ...]:
        return self.values[int(self.probabilities.argmax())]

    @property
    def entropy(self) -> float:
        some = self.probabilities[self.probabilities > 0]
        return float(-(some * numpy.log(some)).sum())


def enumerate_all(potentials: Any, labels: Sequence[str], tags: Sequence[str]) -> Distribution:
    """The distribution of log potentials (n, K, K) over the analyses of n tokens."""
    potentials = numpy.asarray(potentials, dtype="float64")
    n = len(potentials)
    values = list(analyses(n, labels))
    scores = []
    for spans in values:
        steps = path(spans, n, tags)
        pairs = zip([0, *steps[:-1]], steps)
        scores.append(sum(potentials[t, before, tag] for t, (before, tag) in enumerate(pairs)))
    weights = numpy.exp(numpy.array(scores) - max(scores))
    return Distribution(values, weights / weights.sum())


class Enumeration:
    """The functions above, for tests, which cannot import this file."""

    analyses = staticmethod(analyses)
    path = staticmethod(path)
    all = staticmethod(enumerate_all)
    Distribution = Distribution

    @staticmethod
    def of_doc(pipe: Any, doc: Any) -> Distribution:
        """The distribution over a doc of one sentence by a component's model."""
        k = len(pipe.tags)
        (scores,) = pipe.model.predict([doc])
        scores = numpy.asarray(scores)
        if scores.shape[1] == k:
            scores = numpy.repeat(scores[:, None], k, 1)
        return enumerate_all(scores.reshape(-1, k, k), pipe.labels, pipe.tags)


@pytest.fixture(scope="session")
def enumeration() -> type[Enumeration]:
    return Enumeration


# Of the parser: bracketed trees, small models, pipelines.

BRACKETS = [
    "(S (NP (NNP Ada)) (VP (VBD met) (NP (NNP Evans)) (PP (IN in) (NP (NNP Bath)))) (. .))",
    "(S (S (VP (VBG Reading) (NP (NNS books)))) (VP (VBZ helps) (NP (NNP Ada))) (. .))",
    "(TOP (NP (DT The) (NN letter)) (. !))",
    "(FRAG (NP (NP (NN tea)) (PRN (-LRB- -LRB-) (NP (JJ green) (NN tea)) (-RRB- -RRB-))))",
    "(TOP (UH Yes))",
    "(NP (NNP Leeds))",
]


def make_model(encoder: str = "BiLSTM", **tok2vec: Any) -> dict[str, Any]:
    """The config of a small chart model; `tok2vec` overrides its embed block."""
    encoders = {
        "BiLSTM": {"hidden": 16, "input_dropout": 0.0, "output_dropout": 0.0},
        "FactoredTransformer": {
            "width": 32,
            "heads": 2,
            "head_width": 16,
            "layers": 1,
            "feedforward": 32,
            "max_length": 40,
            "boundaries": True,
            "attention_dropout": 0.0,
            "relu_dropout": 0.0,
            "residual_dropout": 0.0,
        },
    }
    embed = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 16, "rows": 100}
    return {
        "@architectures": "spacy-psa.ChartParser.v1",
        "hidden": 32,
        "tok2vec": {
            "@architectures": "spacy.Tok2Vec.v2",
            "embed": embed,
            "encode": {"@architectures": f"spacy-psa.{encoder}.v1", **encoders[encoder]},
            **tok2vec,
        },
    }


class Grove:
    """Helpers for tests, which cannot import this file."""

    brackets: ClassVar = BRACKETS
    make_model = staticmethod(make_model)

    @staticmethod
    def make_nlp(model: dict[str, Any] | None = None, **settings: Any) -> Any:
        import spacy

        nlp = spacy.blank("en")
        config = {"model": model or make_model(), **settings}
        nlp.add_pipe("constituency_parser", name="parser", config=config)
        return nlp

    @staticmethod
    def doc(vocab: Any, *brackets: str, key: str = "constituents") -> Any:
        """One Doc of the trees' sentences, with boundaries where there are several."""
        from spacy.tokens import Doc, Span

        from spacy_psa.corpora.trees import parse_tree

        words, tags, starts, spans = [], [], [], []
        for text in brackets:
            parsed = parse_tree(text)
            first = len(words)
            spans += [(first + s, first + e, label) for s, e, label in parsed.constituents]
            starts += [i == 0 for i in range(len(parsed.words))]
            words, tags = words + parsed.words, tags + parsed.tags
        doc = Doc(vocab, words=words, tags=tags, sent_starts=starts)
        doc.spans[key] = [Span(doc, *span) for span in spans]
        return doc

    @classmethod
    def examples(cls, nlp: Any, brackets: list[str] = BRACKETS) -> list[Any]:
        from spacy.tokens import Doc
        from spacy.training import Example

        references = [cls.doc(nlp.vocab, text) for text in brackets]
        return [Example(Doc(nlp.vocab, words=[t.text for t in r]), r) for r in references]

    @classmethod
    def train(cls, nlp: Any, steps: int = 0, rate: float = 0.02, examples: Any = None) -> list:
        """Initialize and train with one seed; the loss of each step."""
        from spacy.util import fix_random_seed
        from thinc.api import Adam

        fix_random_seed(0)
        examples = examples or cls.examples(nlp)
        optimizer = nlp.initialize(lambda: examples, sgd=Adam(rate))
        return [sum(nlp.update(examples, sgd=optimizer).values()) for _ in range(steps)]

    @classmethod
    def random_nlp(cls, model: dict[str, Any] | None = None, **settings: Any) -> Any:
        """A pipeline with random weights that are large, so that no two trees score alike."""
        import torch

        nlp = cls.make_nlp(model, **settings)
        cls.train(nlp)
        generator = torch.Generator().manual_seed(1)
        for node in nlp.get_pipe("parser").model.walk():
            for shim in node.shims:
                for parameter in shim.module.parameters():
                    parameter.data.normal_(generator=generator)
        return nlp

    @staticmethod
    def constituents(doc: Any) -> list[tuple[int, int, str]]:
        return [(c.start, c.end, c.label_) for c in doc.spans["constituents"]]


@pytest.fixture(scope="session")
def grove() -> type[Grove]:
    return Grove


@pytest.fixture(scope="session")
def parser_bytes() -> bytes:
    """A pipeline that knows the trees of `grove.brackets`, serialised."""
    nlp = Grove.make_nlp(loss="log_likelihood", confidence=True)
    Grove.train(nlp, 60)
    return nlp.to_bytes()


@pytest.fixture
def parsing(parser_bytes: bytes) -> Any:
    """A pipeline that knows the trees of `grove.brackets`, the test's own."""
    return Grove.make_nlp(loss="log_likelihood", confidence=True).from_bytes(parser_bytes)
