"""Training of a component from decisions, from the weights that it has."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed, minibatch, registry
from thinc.api import Model

from spacy_psa.architectures.sentencewise import listeners, upstream_name
from spacy_psa.corpora.marked_text import INCORRECT
from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.ner import EntityStore
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.pipeline.upstream import with_upstream
from spacy_psa.sentences import document_batches, unannotated

EPOCHS = 10
PATIENCE = 3
BATCH = 8
STEPS = 16
"""The least number of batches between two looks at the score; few texts are used several times."""
REPLAYED = 4
"""Documents of other training data in an epoch for each one that was decided."""


class Taught(NamedTuple):
    """The scores of a training."""

    before: float
    """The score on development data before it."""
    score: float
    """The best score of an epoch."""

    @property
    def taken(self) -> bool:
        """Whether the new weights stay: their score is not worse."""
        return self.score >= self.before


def teach(
    nlp: Language,
    name: str,
    decided: Sequence[Doc],
    dev: Sequence[Doc],
    *,
    replayed: Sequence[Doc] = (),
    first: bool = False,
    seed: int = 0,
    epochs: int = EPOCHS,
    patience: int = PATIENCE,
    on_epoch: Callable[[int, float, float], None] = lambda epoch, score, before: None,
) -> Taught:
    """Train a component of a pipeline on docs that may be annotated in part.

    The optimizer is that of the pipeline's config. The weights of the best epoch stay if they are
    not worse on the development data than those before; else nothing changes.

    Args:
        name: the component, a `crf_ner`, `crf_chunker` or `crf_tagger`. A tok2vec or transformer
            that it listens to learns with it.
        decided: docs with missing and wrong spans or tags, as `reference_doc` makes them.
        dev: gold docs to measure by. Predictions over missing tokens do not count.
        replayed: other gold docs, of which each epoch uses some, against forgetting.
        first: whether the component has never been trained. Its score before the training then
            counts as 0, as no one would keep such a model.
        seed: of the order of the docs.
        epochs: the most epochs.
        patience: epochs without a better score after which training ends.
        on_epoch: called after each epoch with its number, its score, and the score before all.
    """
    if not decided:
        raise InputError("Teach has no decided text to learn from: decide about some first")
    if not dev:
        raise InputError("Teach has no development data to measure by: use --dev")
    trained = _trained(nlp, name)
    measured, examples, others = (
        with_upstream(nlp, name, map(unannotated_example, docs), without=trained)
        for docs in (dev, decided, replayed)
    )
    fix_random_seed(seed)
    random = Random(seed)
    settings = nlp.config.interpolate()["training"]
    optimizer = registry.resolve({"optimizer": settings["optimizer"]})["optimizer"]
    before = _score(nlp, name, trained, measured)  # also checks that a score is possible
    if first:
        before = 0.0
    best = before
    old = weights = _weights(nlp, trained)
    since, taken, reached = 0, False, 0.0
    with _with_wrong_spans(nlp.get_pipe(name)), nlp.select_pipes(enable=trained):
        for epoch in range(1, epochs + 1):
            for part in _batches(examples, others, random):
                losses = nlp.update(
                    [_fresh(example) for example in part], sgd=optimizer, drop=settings["dropout"]
                )
                if not math.isfinite(sum(losses.values())):
                    raise InputError(
                        "the loss of Teach is not a finite number: lower the learn_rate in the "
                        "model's config"
                    )
                optimizer.step_schedules()
            score = _score(nlp, name, trained, measured)
            on_epoch(epoch, score, before)
            reached = max(reached, score)
            since = 0 if score > best else since + 1
            if score >= best:
                best, weights, taken = score, _weights(nlp, trained), True
            if since == patience:
                break
    for each, content in (weights if taken else old).items():
        nlp.get_pipe(each).model.from_bytes(content)  # type: ignore[attr-defined]
    return Taught(before, reached)


def _batches(
    examples: list[Example], others: list[Example], random: Random
) -> Iterator[list[Example]]:
    """Yield the batches of an epoch, in which each decided text is as often as another."""
    chosen: list[Example] = []
    while len(chosen) < BATCH * STEPS:
        again = [*examples, *random.sample(others, min(len(others), REPLAYED * len(examples)))]
        random.shuffle(again)
        chosen += again
    yield from minibatch(chosen, BATCH)


def _trained(nlp: Language, name: str) -> list[str]:
    """Find the components that learn: the named one, and those that it listens to."""
    heard = {
        other: {upstream_name(node) for node in listeners(model)}
        for other, pipe in nlp.pipeline
        if isinstance(model := getattr(pipe, "model", None), Model)
    }
    earlier = nlp.pipe_names[: nlp.pipe_names.index(name)]
    upstream = [
        other
        for other in earlier
        if heard[name] & {other, "*"} and getattr(nlp.get_pipe(other), "listeners", None)
    ]
    sharing = [
        other for other, names in heard.items() if other != name and names & {*upstream, "*"}
    ]
    if upstream and sharing:
        raise InputError(
            f"{name} shares {', '.join(upstream)} with {', '.join(sharing)}, which Teach would "
            f"change: copy it into {name} (nlp.replace_listeners) and save the pipeline"
        )
    return [*upstream, name]


def unannotated_example(doc: Doc) -> Example:
    """Make an example of a gold doc, whose predicted doc has only its tokens and sentences."""
    return Example(unannotated(doc, document=True), doc)


def _fresh(example: Example) -> Example:
    return Example(example.predicted.copy(), example.reference)


def _score(nlp: Language, name: str, trained: list[str], examples: list[Example]) -> float:
    """Compute the score by which spaCy chooses a model, for one component."""
    fresh = [_fresh(example) for example in examples]
    docs: Iterable[Doc] = (example.predicted for example in fresh)
    for each in trained:
        docs = _annotated(nlp.get_pipe(each), docs)
    for example, doc in zip(fresh, docs, strict=True):
        example.predicted = doc
    default = nlp.get_pipe_meta(name).default_score_weights or {}
    weights = {key: weight for key, weight in default.items() if weight}
    scores = nlp.get_pipe(name).score(fresh)  # type: ignore[attr-defined]
    if all(scores.get(key) is None for key in weights):
        raise InputError(
            f"the development data has no annotation that {name} predicts, so Teach cannot measure "
            "by it: use a file with some for --dev, and the scorer of the component"
        )
    return sum(float(scores.get(key) or 0) * weight for key, weight in weights.items())


def _annotated(pipe: Any, docs: Iterable[Doc]) -> Iterator[Doc]:
    """Let a component annotate docs, those of a document together."""
    for batch in document_batches(docs, 64):
        yield from pipe.pipe(batch, batch_size=len(batch))


def _weights(nlp: Language, names: list[str]) -> dict[str, bytes]:
    return {name: nlp.get_pipe(name).model.to_bytes() for name in names}  # type: ignore[attr-defined]


@contextmanager
def _with_wrong_spans(pipe: Any) -> Iterator[None]:
    """Let a component read wrong spans or tags while this block runs."""
    owner: Any
    if isinstance(pipe, CRFTagger):
        owner, key, value = pipe, "_neg_prefix", "!"
    elif isinstance(pipe.store, EntityStore):
        owner, key, value = pipe.store, "incorrect_spans_key", INCORRECT
    else:
        yield
        return
    before = getattr(owner, key)
    setattr(owner, key, value)
    try:
        yield
    finally:
        setattr(owner, key, before)
