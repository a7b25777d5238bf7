"""Spans that rules and gazetteers suggest, as soft evidence with weights that are learned.

A suggestion multiplies the probability of each analysis that has its span by exp(w):

    p(y | x) ∝ exp(φ(x, y) + Σ_j w_s(j) [y has the span of suggestion j])

So w is added to the log odds of the span, as virtual evidence does (Pearl 1988). The weight belongs
to the source s of a suggestion: its group of spans and its label. Weights are learned from
annotation that the model was not trained on, given the potentials φ of the model. They maximise the
log likelihood Σ log p(y* | x) with a Gaussian prior of variance 1 around the weight of "*" in the
setting; other weights in it do not count. Its slope is the number of right suggestions less the
expected number. It is concave if no annotation is missing, since log Z is convex.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from spacy.tokens import Doc
from spacy.training import Example
from torch import Tensor

from spacy_psa.errors import InputError, SettingError
from spacy_psa.pipeline.chain.refined_chain import with_names
from spacy_psa.pipeline.evidence import Node
from spacy_psa.pipeline.inference import checked_scores
from spacy_psa.pipeline.written import spans_in
from spacy_psa.ragged import batches_by_size
from spacy_psa.sentences import sentence_bounds
from spacy_psa.structs.chain import LinearChain

Suggested = dict[str, float | dict[str, float]]
"""For groups of spans, the weight of a suggestion, or the weights of labels."""
OTHERS = "*"
"""Stands for all labels without a weight of their own."""
MOST = 2000
"""The most sentences with suggestions that weights are learned from."""


class Source(NamedTuple):
    """The suggestions of one group and label, and their weight."""

    key: str
    label: str
    weight: float
    suggested: int
    """The number of suggestions in the sentences that the weights were learned from."""
    right: int
    """The number of these that are in the annotation."""


def check_suggested(setting: str, value: Any) -> None:
    """Raise SettingError unless a setting is None, or has weights for groups of suggested spans."""
    if value is None:
        return
    right = isinstance(value, Mapping) and all(key and isinstance(key, str) for key in value)
    for own in value.values() if right else ():
        weights = own.values() if isinstance(own, Mapping) else [own]
        right &= all(isinstance(w, (int, float)) and math.isfinite(w) for w in weights)
    if not right:
        advice = "it must have a finite number for each span group, or for labels of one"
        raise SettingError(setting, value, advice)


def weight_of(own: float | Mapping[str, float], label: str) -> float:
    """Look up the weight of a label of a group."""
    return own.get(label, own.get(OTHERS, 0.0)) if isinstance(own, Mapping) else own


def read_suggestions(doc: Doc, suggested: Suggested, labels: Collection[str]) -> dict[Node, float]:
    """Read the suggested spans on a doc with their weights; a span of two groups has the sum.

    Spans without tokens, and those whose label the component does not know, are left out.
    """
    suggestions: dict[Node, float] = {}
    for key, own in suggested.items():
        for span in dict.fromkeys((s.start, s.end, s.label_) for s in spans_in(doc, key)):
            if span[0] < span[1] and span[2] in labels:
                suggestions[span] = suggestions.get(span, 0.0) + weight_of(own, span[2])
    return {span: weight for span, weight in suggestions.items() if weight}


class _Term(NamedTuple):
    """The log partition of some sentences as a function of the weights, and its sign."""

    sign: int
    chain: LinearChain
    ends: Tensor
    """The places in the flat potentials that get a weight, (M,)."""
    numbers: Tensor
    """(M,) the number of the span that gets it."""
    counts: Tensor
    """(spans, sources) how often each source suggests each span."""

    def at(self, weights: Tensor) -> Tensor:
        potentials = self.chain.potentials
        values = (self.counts @ weights).to(potentials.device)[self.numbers]
        flat = potentials.flatten().index_add(0, self.ends, values)
        chain = LinearChain(flat.view_as(potentials), self.chain.lengths)
        return self.sign * chain.log_partition.sum()


def learn_weights(pipe: Any, examples: Sequence[Example]) -> list[Source]:
    """Learn the weights of suggestions from annotation, and set them in `suggested_spans`.

    Everything that was calibrated for the probabilities without them is removed.

    Args:
        pipe: a trained `SpanLabeler` with `suggested_spans`.
        examples: predicted docs with suggestions and all that the model reads, and references
            that the model was not trained on. After `MOST` sentences with suggestions, the others
            are left out.

    Returns:
        The sources that suggest something there. If there are none, nothing changes.
    """
    groups = pipe.suggested_spans or {}
    if not groups:
        raise InputError(f"{pipe.name}: it has no suggested_spans: name their groups first")
    sources = {
        (k, label): i for i, (k, label) in enumerate((k, x) for k in groups for x in pipe.labels)
    }
    prior = torch.tensor([weight_of(groups[key], OTHERS) for key, _ in sources]).double()
    suggested: Counter[int] = Counter()
    right: Counter[int] = Counter()
    chosen, suggestions, sentences = [], [], 0
    for example in examples:
        own = _by_sentence(example, sources)
        if any(own) and sentences < MOST:
            sentences += sum(map(bool, own))
            chosen.append(example)
            suggestions.append(own)
            for spans, gold in zip(own, _gold(pipe, example)):
                for span, of in spans.items():
                    suggested.update(of)
                    right.update(of if span in gold else ())
    terms: list[_Term] = []
    for batch in batches_by_size([len(eg.predicted) for eg in chosen], pipe.batch_tokens):
        own = [spans for i in batch for spans in suggestions[i]]
        terms += _terms(pipe, [chosen[i] for i in batch], own, len(sources))
    if not terms:
        return []
    weights = _fit(terms, prior)
    pipe.calibrated.forget()
    seen = [(key, label, i) for (key, label), i in sources.items() if suggested[i]]
    pipe.suggested_spans = {
        key: {OTHERS: weight_of(own, OTHERS)}
        | {label: weights[i] for k, label, i in seen if k == key}
        for key, own in groups.items()
    }
    return [Source(key, label, weights[i], suggested[i], right[i]) for key, label, i in seen]


def _fit(terms: Sequence[_Term], prior: Tensor) -> list[float]:
    """Find the weights of the greatest posterior probability."""
    weights = prior.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        total = 0.5 * ((weights - prior) ** 2).sum() - sum(term.at(weights) for term in terms)
        total.backward()
        return total

    optimizer.step(loss)
    return weights.tolist()


def _by_sentence(
    example: Example, sources: Mapping[tuple[str, str], int]
) -> list[dict[Node, list[int]]]:
    """Find the suggestions of each sentence that has tokens, with their sources."""
    doc = example.predicted
    bounds = [bound for bound in sentence_bounds(doc) if bound[0] < bound[1]]
    suggestions: list[dict[Node, list[int]]] = [{} for _ in bounds]
    for key in dict.fromkeys(key for key, _ in sources):
        for span in filter(len, spans_in(doc, key)):
            source = sources.get((key, span.label_))
            for (start, end), own in zip(bounds, suggestions):
                if start <= span.start and span.end <= end and source is not None:
                    node = (span.start - start, span.end - start, span.label_)
                    if source not in own.setdefault(node, []):
                        own[node].append(source)
    return suggestions


def _gold(pipe: Any, example: Example) -> list[set[Node]]:
    """Read the gold spans of each sentence that has tokens."""
    spans, _ = pipe.store.gold(pipe.name, example)
    bounds = [bound for bound in sentence_bounds(example.predicted) if bound[0] < bound[1]]
    return [
        {(s - start, e - start, label) for s, e, label in spans if start <= s and e <= end}
        for start, end in bounds
    ]


def _terms(
    pipe: Any, examples: list[Example], suggestions: list[dict[Node, list[int]]], sources: int
) -> list[_Term]:
    """Make the terms of the log likelihood of a batch, from the suggestions of its sentences."""
    arrays = [
        array for array in checked_scores(pipe, [eg.predicted for eg in examples]) if len(array)
    ]
    chain = pipe._given(arrays, []).double()
    known = chain.constrain(pipe._gold_allowed(pipe._padded_gold(examples, chain)))
    wrong = [spans for eg in examples for spans in pipe._wrong_spans(eg)]
    rows = [row for row, own in enumerate(suggestions) if own]
    terms = []
    for sign, of in ((1, known), (-1, chain)):
        spans = [[*suggestions[row], *(wrong[row] if sign > 0 else ())] for row in rows]
        refined, ends, numbers = with_names(of.select(torch.tensor(rows)), pipe.scheme, spans)
        # A wrong span comes after the suggestions of its sentence.
        own = [
            suggestions[row][span] if i < len(suggestions[row]) else None
            for row, each in zip(rows, spans)
            for i, span in enumerate(each)
        ]
        never = torch.tensor([each is None for each in own], device=ends.device)[numbers]
        flat = refined.potentials.flatten().index_fill(0, ends[never], -torch.inf)
        counts = torch.zeros(len(own), sources, dtype=torch.float64)
        for number, each in enumerate(own):
            counts[number, each or []] = 1
        terms.append(_Term(sign, refined.replaced(flat), ends[~never], numbers[~never], counts))
    return terms
