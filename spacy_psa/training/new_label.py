"""A new label for a trained component, whose earlier predictions keep the others."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed, registry
from torch import Tensor

from spacy_psa.architectures.more_labels import copy_tag_0
from spacy_psa.architectures.sentencewise import listeners
from spacy_psa.corpora.atomic import atomic_folder, check_free
from spacy_psa.corpora.own_corpus import read_own_file
from spacy_psa.corpora.unlabelled import read_with_unlabelled
from spacy_psa.errors import InputError
from spacy_psa.loading import find_pipe, load_pipeline
from spacy_psa.pipeline.chain.labeler import POTENTIALS
from spacy_psa.pipeline.chain.span_tags import MISSING
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.pipeline.distillation import Teacher, taught
from spacy_psa.pipeline.rehearsal import learn
from spacy_psa.pipeline.upstream import with_upstream
from spacy_psa.sentences import unannotated
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.cross_entropy import coarse_cross_entropy

EXAMPLE_WORDS, TEXT_WORDS = 250, 500
"""The words of the examples and of the other texts in a batch."""
PASSES, LEAST = 10, 900
"""The passes over the examples, and the least number of updates."""
RATES = 5000
"""The first learning rates of a schedule, of which the highest is used."""
CACHE_GB = 1.0
COMPARED = 1000
"""The texts on which both models are compared."""


class Learned(NamedTuple):
    """A training, and the predictions on at most 1,000 of its texts."""

    updates: int
    examples: int
    """The sentences of the examples."""
    texts: int
    """The other texts."""
    before: int
    """The spans that the old model predicts."""
    kept: int
    """Those of them that the new model also predicts."""
    new: int
    """The spans with the new label that it predicts."""
    warnings: list[str]


def teach_label(
    model: str,
    label: str,
    examples: Path,
    output: Path,
    texts: Path | None = None,
    pipe: str | None = None,
    updates: int = 0,
    seed: int = 0,
    gpu_id: int = -1,
) -> Learned:
    """Teach a new label to the component of a pipeline, and write the new pipeline.

    The loss is that of `learn_labels`. Each update has a batch of the examples and one of the
    texts. The optimizer is that of the pipeline's config; its learning rate falls from the highest
    of the first 5,000 of its schedule to 0. All other components stay as they are. Temperature and
    coverage are removed.

    Args:
        examples: a file in a format of `init corpus`, in which the new label is annotated.
        texts: text without annotation, a .txt or .spacy file; None for only the examples.
        pipe: the name of the component; None if there is only one.
        updates: the number of updates; 0 for ten passes over the examples, and at least 900.
    """
    check_free(output)
    old, nlp = (load_pipeline(model, gpu_id) for _ in range(2))
    student: Any = find_pipe(nlp, pipe, SpanLabeler, "crf_ner or crf_chunker")
    name = student.name
    if label in student.labels:
        raise InputError(
            f"--label {label}: {name} of {model} has it already: choose another name, or use "
            "`spacy-psa train` to learn more of it"
        )
    if listeners(student.model):
        raise InputError(
            f"{model}: {name} listens to another component, which must stay as it is: use "
            "nlp.replace_listeners for an encoder of its own, and save the pipeline"
        )
    known, warnings = _read_examples(student, label, examples, nlp)
    others = [] if texts is None else list(read_with_unlabelled(lambda _: (), texts)(nlp))
    known, others = (with_upstream(nlp, name, part) for part in (known, others))
    compared = [eg.predicted for eg in (others or known)[:COMPARED]]
    before = _predicted(student, compared)
    fix_random_seed(seed)
    first = len(student.tags)
    student.add_label(label)
    copy_tag_0(student.model, first)
    student.temperature = 1.0
    student.calibrated.forget()
    count = updates or count_updates(known)
    _learn(nlp, student, Teacher(old, name, CACHE_GB), known, others, count, Random(seed))
    nlp.meta["performance"] = {}
    with atomic_folder(output) as folder:
        nlp.to_disk(folder)
    after = _predicted(student, compared)
    new = sum(span[-1] == label for span in after)
    return Learned(count, len(known), len(others), len(before), len(before & after), new, warnings)


def _read_examples(
    pipe: Any, label: str, path: Path, nlp: Language
) -> tuple[list[Example], list[str]]:
    docs, warnings = read_own_file(path, nlp)
    docs = [doc for doc in docs if len(doc)]
    key = pipe.store.spans_key
    if key:  # marks of JSON lines are entities; those of a span group are never missing
        whole = [doc for doc in docs if key in doc.spans or all(token.ent_iob for token in doc)]
        if len(whole) < len(docs):
            lost = len(docs) - len(whole)
            warnings = [*warnings, f"{lost} text(s) are not completely annotated: left out"]
        docs = whole
        for doc in docs:
            doc.spans.setdefault(key, list(doc.ents))
    labels = {span.label_ for doc in docs for span in pipe.store.reference(pipe.name, doc) or ()}
    unknown = sorted(labels - {label, *pipe.labels})
    if label not in labels:
        has = f"only {', '.join(sorted(labels))}" if labels else "no annotation"
        left_out = f" ({'; '.join(warnings[:3])})" if warnings else ""
        raise InputError(
            f"{path}: no span has the label {label!r}, there is {has}{left_out}; add examples"
        )
    if unknown:
        raise InputError(
            f"{path}: has the label {unknown[0]!r}, which is neither {label!r} nor among "
            f"{', '.join(pipe.labels)}: leave it out, and teach one label after the other"
        )
    return [Example(unannotated(doc, document=True), doc) for doc in docs], warnings


def _learn(
    nlp: Language,
    pipe: Any,
    teacher: Teacher,
    known: list[Example],
    others: list[Example],
    updates: int,
    random: Random,
) -> None:
    optimizer, rate = peak_rate(nlp)
    drop = nlp.config.interpolate()["training"]["dropout"]
    most = POTENTIALS // (3 * len(pipe.tags) ** 2)  # with very many tags, batches are smaller
    streams = (
        stream(known, min(EXAMPLE_WORDS, most), random),
        stream(others, min(TEXT_WORDS, 2 * most), random),
    )
    for step in range(updates):
        optimizer.learn_rate = rate * (1 - step / updates)
        batch = [example for examples in streams for example in next(examples, ())]
        learn_labels(pipe, teacher, batch, drop)
        pipe.finish_update(optimizer)


def learn_labels(pipe: Any, teacher: Teacher, examples: Sequence[Example], drop: float) -> float:
    """Learn labels that the teacher does not know, and repeat the teacher for the others.

    Let A be the analyses of a sentence that agree with its annotation, and π(y') the analysis y'
    without the spans of new labels. The loss is the mean over sentences of

        -Σ_y p(y | y in π(A)) log Σ_{y' in A with π(y') = y} q(y'),

    where p is the teacher's distribution and q that of `pipe`; see `coarse_cross_entropy`. So the
    old labels keep their probabilities, and a new label only wins probability from O. Where the
    annotation has a new label, only the teacher's analyses with O at its tokens count.

    Only the new labels need to be annotated. Spans with old labels count as well. An annotated
    token outside of all spans has no new label, but may have an old one. A token without annotation
    may have any. The gradients are added to those of the model.

    Args:
        pipe: a `SpanLabeler`, whose first tags are those of the teacher.
        teacher: the component before the labels were added.
        examples: docs with their references.

    Returns:
        The loss, in nats a sentence.
    """
    docs = [example.predicted for example in examples]
    old = len(teacher.pipe.tags)

    def losses(chain: LinearChain) -> Tensor:
        gold = pipe._padded_gold(examples, chain)
        outside = gold == 0
        allowed = pipe._gold_allowed(gold.masked_fill(outside, MISSING))
        allowed[..., old:] &= ~outside[..., None]
        before = allowed[..., :old].clone()
        before[..., 0] |= allowed[..., old:].any(-1)
        repeated = taught(teacher, docs).constrain(before)
        return coarse_cross_entropy(repeated, chain, chain.constrain(allowed))

    return learn(pipe, docs, drop, losses)


def count_updates(examples: list[Example]) -> int:
    """Count the updates that examples are taught with."""
    return max(LEAST, PASSES * len(list(batches(examples, EXAMPLE_WORDS))))


def peak_rate(nlp: Language) -> tuple[Any, float]:
    """Make the optimizer of a pipeline's config, and find the highest of its first rates."""
    settings = nlp.config.interpolate()["training"]["optimizer"]
    optimizer = registry.resolve({"optimizer": settings})["optimizer"]
    rate = 0.0
    for _ in range(RATES):
        rate = max(rate, optimizer.learn_rate)
        optimizer.step_schedules()
    optimizer.averages = None
    return optimizer, rate


def stream(examples: list[Example], words: int, random: Random) -> Iterator[list[Example]]:
    """Yield batches without end, in a new order in each pass."""
    while examples:
        yield from batches(random.sample(examples, len(examples)), words)


def batches(examples: Iterable[Example], words: int) -> Iterator[list[Example]]:
    """Yield batches of at least some number of words."""
    batch: list[Example] = []
    for example in examples:
        batch.append(example)
        if sum(len(eg.predicted) for eg in batch) >= words:
            yield batch
            batch = []
    if batch:
        yield batch


def _predicted(pipe: Any, docs: list[Doc]) -> set[tuple[Any, ...]]:
    """Predict the spans of docs, each with the number of its doc."""
    return {(i, *span) for i, each in enumerate(pipe.predict(docs)) for span in each.spans}
