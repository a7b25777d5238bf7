"""Distillation: learning from the distributions of another component (Hinton et al. 2015)."""

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.types import Floats2d
from torch import Tensor

from spacy_psa.architectures.documents import sees_documents
from spacy_psa.errors import InputError, check_amounts, check_rates, naming
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.structs.cross_entropy import cross_entropy

Potentials = list[Floats2d]
"""An array for each sentence of a doc."""
ATTRIBUTES: list[int | str] = ["ORTH", "NORM", "SPACY", "SENT_START", "TAG", "POS", "MORPH"]
ATTRIBUTES += ["LEMMA", "DEP", "HEAD", "ENT_IOB", "ENT_TYPE", "ENT_KB_ID"]
"""Everything that a model may read of a token. Docs that agree in it have the same potentials."""


class Teacher:
    """The distributions of a trained component for docs of another pipeline.

    Args:
        nlp: the pipeline of the component. The components before it annotate the docs first, so a
            teacher may listen to a shared tok2vec or transformer.
        cache_gb: the gigabytes of potentials that are kept on the model's device, so that a doc
            which comes again is not scored again. Sentences that name their document are not kept
            if the teacher sees whole documents.
    """

    def __init__(self, nlp: Language, name: str, cache_gb: float = 0.0):
        pipes = dict(nlp.pipeline)
        pipe: Any = pipes.get(name)
        if not isinstance(pipe, StructuredPipe):
            raise InputError(
                f"the teacher has no component {name!r} of spacy-psa; choose one that it has"
            )
        if getattr(pipe, "ranks_only", False):
            raise InputError(
                f"the teacher's {name!r} is trained with loss = 'max_margin', so its scores have "
                "no probabilities: use a parser that is trained with loss = 'log_likelihood'"
            )
        self.pipe = pipe
        self.vocab = nlp.vocab
        self.before: list[Any] = [
            pipes[other] for other in nlp.pipe_names[: nlp.pipe_names.index(name)]
        ]
        models = [each.model for each in (*self.before, pipe) if getattr(each, "model", None)]
        self.sees_documents = any(map(sees_documents, models))
        self.cache = PotentialsCache(cache_gb)

    def potentials(self, docs: Iterable[Doc]) -> list[Potentials]:
        """Score the sentences of each doc.

        Args:
            docs: docs of any vocabulary; they stay as they are.
        """
        return self.cache.potentials(list(docs), self._compute, self._depends_on_itself)

    def _compute(self, docs: list[Doc]) -> list[Potentials]:
        own = [self._copied(doc) for doc in docs]
        for pipe in self.before:
            whole = hasattr(pipe, "pipe")  # a function has none
            own = list(pipe.pipe(own, batch_size=len(own))) if whole else [*map(pipe, own)]
        return self.pipe._potentials(own)

    def _copied(self, doc: Doc) -> Doc:
        """Copy a doc into the vocabulary of the teacher, whose word vectors its model reads."""
        copy = Doc(self.vocab).from_bytes(doc.to_bytes(exclude=["user_data"]))
        for key in ("document", "part"):  # the document that the doc belongs to
            if key in doc.user_data:
                copy.user_data[key] = doc.user_data[key]
        return copy

    def _depends_on_itself(self, doc: Doc) -> bool:
        """Whether the potentials of a doc do not depend on the docs around it."""
        return not self.sees_documents or "document" not in doc.user_data


def learn_from(student: Any, teacher: Teacher | None, weight: float = 0.5) -> None:
    """Let a component learn from a teacher in its updates, in addition to the annotation.

    The loss of a sentence is then (1 - weight) times the negative log likelihood of its annotation,
    plus weight times the cross entropy of the two components' distributions over analyses, which is
    exact; see `spacy_psa.structs.cross_entropy`. A sentence without annotation has only the second
    part.

    Args:
        teacher: the teacher, which is not saved with the component; None for no teacher.
        weight: the weight of the teacher, from 0 to 1.

    Raises:
        InputError: if the weight is not from 0 to 1, if the teacher is another kind of component or
            has other labels or tags, or if the student is a parser that is trained with a margin.

    Examples:
        >>> import spacy
        >>> from spacy.training import Example
        >>> def make(hidden):
        ...     nlp = spacy.blank("en")
        ...     ner = nlp.add_pipe(
        ...         "crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": hidden}}}}
        ...     )
        ...     _ = ner.add_label("PER")
        ...     return nlp, ner, nlp.initialize()
        >>> teacher, _, _ = make(hidden=40)
        >>> nlp, ner, optimizer = make(hidden=20)
        >>> learn_from(ner, Teacher(teacher, "crf_ner"), weight=1.0)
        >>> doc = nlp.make_doc("Ada met Bob")  # without annotation
        >>> nlp.update([Example(doc, doc.copy())], sgd=optimizer)["crf_ner"] > 0
        True
    """
    with naming(student.name):
        check_rates(weight=weight)
    if getattr(student, "ranks_only", False):
        raise InputError(
            f"{student.name}: a parser with loss = 'max_margin' cannot learn from probabilities: "
            "set loss = 'log_likelihood'"
        )
    if teacher is not None and not student._same_outputs(teacher.pipe):
        raise InputError(f"{student.name}: {_difference(student, teacher.pipe)}")
    student._teacher, student._teacher_weight = teacher, weight


def taught(teacher: Teacher, docs: Iterable[Doc]) -> Any:
    """Return the distributions of a teacher over the sentences of docs that have tokens."""
    arrays = [array for own in teacher.potentials(docs) for array in own if len(array)]
    return teacher.pipe._given(arrays, [])


def with_teacher(pipe: Any, losses: Tensor, dist: Any, examples: Iterable[Example]) -> Tensor:
    """Mix the losses of sentences with the cross entropy with the distributions of the teacher.

    Args:
        losses: (B,) its losses.
        dist: its distributions.

    Raises:
        InputError: if the teacher splits a text into other sentences.
    """
    before = taught(pipe._teacher, [eg.predicted for eg in examples if len(eg.predicted)])
    if not torch.equal(before.lengths, dist.lengths):
        raise InputError(
            f"{pipe.name}: the teacher splits a text into other sentences than the student: "
            "leave the component that sets them out of the teacher's pipeline"
        )
    share = pipe._teacher_weight
    return (1 - share) * losses + share * cross_entropy(before, dist)


def _difference(student: Any, teacher: Any) -> str:
    tagged = hasattr(student, "tags") and hasattr(teacher, "tags")
    if not tagged and type(teacher) is not type(student):
        return "the teacher is another kind of component: use one of the student's factory"
    if teacher.labels == student.labels:
        return (
            f"the teacher has the tags {', '.join(teacher.tags)}, the student "
            f"{', '.join(student.tags)}: set the scheme of the teacher"
        )
    return (
        f"the teacher has the labels {', '.join(teacher.labels)}, the student "
        f"{', '.join(student.labels)}: set [initialize.components.{student.name}.labels] to "
        "the teacher's, in its order"
    )


class PotentialsCache:
    """Keeps the potentials of docs, for a teacher that sees the same docs in each pass.

    Docs that no longer fit into the `gigabytes` are computed each time, and so are docs that may
    not be kept. InputError if the size is below 0.
    """

    def __init__(self, gigabytes: float):
        check_amounts(cache_gb=gigabytes)
        self._left = gigabytes * 1e9
        self._kept: dict[bytes, Potentials] = {}

    def potentials(
        self,
        docs: Sequence[Doc],
        compute: Callable[[list[Doc]], list[Potentials]],
        may_keep: Callable[[Doc], bool] = lambda doc: True,
    ) -> list[Potentials]:
        """Return the potentials of docs, and compute only those that are not kept.

        They are kept on their device, if those of the doc depend only on this doc (`may_keep`).
        """
        keys = [_key(doc) if self._left and may_keep(doc) else None for doc in docs]
        known = [None if key is None else self._kept.get(key) for key in keys]
        new = [i for i, potentials in enumerate(known) if potentials is None]
        if new:
            for i, potentials in zip(new, compute([docs[i] for i in new]), strict=True):
                known[i] = potentials
                self._keep(keys[i], potentials)
        return [potentials for potentials in known if potentials is not None]

    def _keep(self, key: bytes | None, potentials: Potentials) -> None:
        size = sum(array.nbytes for array in potentials)
        if key is not None and key not in self._kept and size <= self._left:
            # Copies: an array may be a part of a larger one, which would stay in memory.
            self._kept[key] = [array.copy() for array in potentials]
            self._left -= size


def _key(doc: Doc) -> bytes:
    return blake2b(doc.to_array(ATTRIBUTES).tobytes(), digest_size=16).digest()
