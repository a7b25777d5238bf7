"""Rules in a pipeline: spaCy's patterns as suggestions for a component, with learned weights."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spacy.errors import MatchPatternError
from spacy.language import Language
from spacy.matcher import Matcher
from spacy.pipeline import SpanRuler
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_psa.corpora.atomic import atomic_folder, check_free
from spacy_psa.corpora.json_records import read_records
from spacy_psa.errors import InputError
from spacy_psa.loading import find_pipe, load_pipeline
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.pipeline.chain.suggestions import Source, learn_weights
from spacy_psa.pipeline.upstream import with_upstream
from spacy_psa.scoring.result import read_examples

WEIGHT = 2.0
"""The weight of a suggestion before it is learned: its span is 7 times as probable."""


class Ruled(NamedTuple):
    """A pipeline with rules."""

    sources: list[Source]
    """The weights that were learned; empty without development data."""
    before: float
    """The F1 on the development data without any rules; 0 without development data."""
    after: float
    """The same with all rules of the pipeline."""
    warnings: list[str]


def read_patterns(path: Path, vocab: Vocab) -> list[dict[str, Any]]:
    """Read patterns, as spaCy's `EntityRuler` saves them: JSON lines.

    A line has a `label`, and as `pattern` a phrase or a list of tokens of spaCy's `Matcher`.
    """
    matcher, patterns = Matcher(vocab, validate=True), []
    for place, record in read_records(path, Counter()):
        label, pattern = (
            record.get(k) if isinstance(record, dict) else None for k in ("label", "pattern")
        )
        fault = ""
        if not isinstance(label, str) or not label or not pattern:
            fault = "it needs a label and a pattern"
        elif not isinstance(record.get("id", ""), str):
            fault = "its id is not a string"
        elif not isinstance(pattern, str):
            try:
                matcher.add("pattern", [pattern])
            except (MatchPatternError, ValueError, TypeError) as error:
                fault = " ".join(str(error).split())
        if fault:
            raise InputError(
                f"{place}: is not a pattern ({fault}); use lines such as "
                '{"label": "LOC", "pattern": "Rome"}'
            )
        patterns.append(record)
    if not patterns:
        raise InputError(f"{path}: has no patterns")
    return patterns


def add_rules(nlp: Language, name: str, paths: Iterable[Path], weight: float = WEIGHT) -> list[str]:
    """Let a component of a pipeline use the patterns of files as suggestions.

    Each file becomes a `span_ruler` before the component, whose name and span group are the name of
    the file. If the pipeline has it already, its patterns are replaced, and its weights stay.

    Args:
        name: the component, a `SpanLabeler`.
        weight: the number that is added to the log odds of a match, until weights are learned.

    Returns:
        Warnings of labels that the component does not know, whose patterns suggest nothing.
    """
    pipe: Any = nlp.get_pipe(name)
    warnings, files = [], dict[str, Path]()
    for path in paths:
        patterns = read_patterns(path, nlp.vocab)
        key = re.sub(r"\W", "_", path.stem)
        if key in files:
            raise InputError(f"{path}: {files[key]} has the name {key!r} already: rename the file")
        files[key] = path
        if key in nlp.component_names:
            if not isinstance(nlp.get_pipe(key), SpanRuler):
                raise InputError(f"{path}: the pipeline has a component {key!r}: rename the file")
            nlp.remove_pipe(key)
        # spaCy annotates the phrases with all components before, though only tokens are compared.
        phrases = all(isinstance(pattern["pattern"], str) for pattern in patterns)
        place: dict[str, Any] = {"first": True} if phrases else {"before": name}
        ruler: Any = nlp.add_pipe("span_ruler", key, config={"spans_key": key}, **place)
        ruler.add_patterns(patterns)
        pipe.suggested_spans = {key: weight, **(pipe.suggested_spans or {})}
        if unknown := sorted(set(ruler.labels) - set(pipe.labels)):
            warnings.append(
                f"{path}: {name} does not know {', '.join(unknown)}, so their patterns suggest "
                f"nothing; its labels are {', '.join(pipe.labels)}"
            )
    return warnings


def learn_rules(nlp: Language, name: str, examples: Sequence[Example]) -> list[Source]:
    """Learn the weights of the suggestions of a component; see `learn_weights`.

    Args:
        examples: gold docs that were not trained on; the components before annotate copies.
    """
    return learn_weights(nlp.get_pipe(name), with_upstream(nlp, name, examples))


def with_rules(
    model: str,
    paths: Sequence[Path],
    output: Path,
    dev: Path | None = None,
    pipe: str | None = None,
    weight: float = WEIGHT,
    gpu_id: int = -1,
) -> Ruled:
    """Add rules to a trained pipeline, learn their weights, and write the new pipeline.

    Args:
        output: the folder to write, new or empty.
        dev: gold documents to learn weights from; None keeps `weight`.
        pipe: the component; None if there is only one.
        weight: the number that is added to the log odds of a match; the mean of the prior.
    """
    check_free(output)
    nlp = load_pipeline(model, gpu_id)
    component = find_pipe(nlp, pipe, SpanLabeler, "crf_ner or crf_chunker")
    warnings = add_rules(nlp, component.name, paths, weight)
    sources, before, after = [], 0.0, 0.0
    if dev is not None:
        examples = read_examples(nlp, dev)
        sources = learn_rules(nlp, component.name, examples)
        if not sources:
            raise InputError(f"{dev}: no pattern with a label of {component.name} matches there")
        after = _f1(nlp, component, examples)
        rules, component.suggested_spans = component.suggested_spans, None
        before = _f1(nlp, component, examples)
        component.suggested_spans = rules
    with atomic_folder(output) as folder:
        nlp.to_disk(folder)
    return Ruled(sources, before, after, warnings)


def _f1(nlp: Language, component: Any, examples: Sequence[Example]) -> float:
    docs = nlp.pipe(example.predicted.copy() for example in examples)
    predicted = [Example(doc, eg.reference) for doc, eg in zip(docs, examples, strict=True)]
    key = component.store.spans_key
    return component.score(predicted).get(f"spans_{key}_f" if key else "ents_f") or 0.0
