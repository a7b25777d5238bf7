"""Distillation: learning what another, trained component says (Hinton et al. 2015)."""

from collections.abc import Sequence
from typing import Any

import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import torch2xp, xp2torch
from thinc.types import Floats2d

from spacy_psa.architectures.documentwise import sees_documents
from spacy_psa.errors import InputError, check_rates, naming
from spacy_psa.pipeline.chain.chain_predictor import ChainPredictor
from spacy_psa.pipeline.chain.evidence import Known
from spacy_psa.pipeline.chain.potentials_cache import Potentials, PotentialsCache
from spacy_psa.sentences import sentence_bounds
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.cross_entropy import cross_entropy


class Teacher:
    """Gives the distributions of a trained component for docs of another pipeline.

    Args:
        nlp: the pipeline of the component. The components before it annotate the docs first, so a
            teacher may listen to a shared tok2vec or transformer.
        name: the name of the component.
        cache_gb: the gigabytes of potentials that are kept on the model's device, so that a doc
            which comes again is not scored again. Sentences that name their document are not kept
            if the teacher sees whole documents.

    Raises:
        InputError: if the pipeline has no such component of a chain, or `cache_gb` is below 0.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> ner = nlp.add_pipe(
        ...     "crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> _ = ner.add_label("PER")
        >>> optimizer = nlp.initialize()
        >>> chain = Teacher(nlp, "crf_ner").distribution([spacy.blank("en")("Ada met Bob")])
        >>> chain.marginals.shape  # sentences, tokens, tags
        torch.Size([1, 3, 5])
    """

    def __init__(self, nlp: Language, name: str, cache_gb: float = 0.0):
        pipes = dict(nlp.pipeline)
        pipe = pipes.get(name)
        if not isinstance(pipe, ChainPredictor):
            raise InputError(f"the teacher has no component {name!r} of a chain; take a crf_* one")
        self.pipe = pipe
        self.vocab = nlp.vocab
        self.before: list[Any] = [
            pipes[other] for other in nlp.pipe_names[: nlp.pipe_names.index(name)]
        ]
        models = [each.model for each in (*self.before, pipe) if getattr(each, "model", None)]
        self.sees_documents = any(map(sees_documents, models))
        self.cache = PotentialsCache(cache_gb)

    def distribution(self, docs: Sequence[Doc]) -> LinearChain:
        """Give the distribution over the legal tag sequences, at the teacher's temperature.

        Args:
            docs: docs with tokens, of any vocabulary; they stay as they are.

        Returns:
            A chain with one row for each sentence of the docs.
        """
        told = self.cache.potentials(docs, self._potentials, self._stands_alone)
        scores = [array for arrays in told for array in arrays if len(array)]
        return self.pipe._given(scores, [Known()] * len(scores))

    def _potentials(self, docs: list[Doc]) -> list[Potentials]:
        own = [_copied(doc, self) for doc in docs]
        for pipe in self.before:
            whole = hasattr(pipe, "pipe")  # a function has none
            own = list(pipe.pipe(own, batch_size=len(own))) if whole else [*map(pipe, own)]
        scores = iter(self.pipe._potentials(own))
        return [[next(scores) for _ in sentence_bounds(doc)] for doc in own]

    def _stands_alone(self, doc: Doc) -> bool:
        """Whether what the teacher says of a doc does not depend on the docs around it."""
        return not self.sees_documents or "document" not in doc.user_data


class Distilling(ChainPredictor):
    """Lets a chain component learn from a teacher beside the annotation.

    The loss of a sentence is (1 - weight) times the negative log likelihood of its annotation, plus
    weight times the cross entropy of the two components' distributions over analyses, which is
    exact; see `spacy_psa.structs.cross_entropy`. A sentence without annotation has the second part
    alone.

    Examples:
        >>> import spacy
        >>> def make(hidden):
        ...     nlp = spacy.blank("en")
        ...     ner = nlp.add_pipe(
        ...         "crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": hidden}}}}
        ...     )
        ...     _ = ner.add_label("PER")
        ...     return nlp, ner, nlp.initialize()
        >>> teacher, _, _ = make(hidden=40)
        >>> nlp, ner, optimizer = make(hidden=20)
        >>> ner.learn_from(Teacher(teacher, "crf_ner"), weight=1.0)
        >>> doc = nlp.make_doc("Ada met Bob")  # without annotation
        >>> nlp.update([Example(doc, doc.copy())], sgd=optimizer)["crf_ner"] > 0
        True
    """

    _teacher: Teacher | None = None
    _weight: float = 0.0

    def learn_from(self, teacher: Teacher | None, weight: float = 0.5) -> None:
        """Learn from a teacher in the updates from now on.

        Args:
            teacher: the teacher, which is not saved with the component; None for none.
            weight: how much it counts beside the annotation, from 0 to 1.

        Raises:
            InputError: if the weight is not from 0 to 1, or the teacher has other tags.
        """
        with naming(self.name):
            check_rates(weight=weight)
        if teacher is not None and teacher.pipe.tags != self.tags:
            raise InputError(f"{self.name}: {self._difference(teacher.pipe)}")
        self._teacher, self._weight = teacher, weight

    def _difference(self, teacher: Any) -> str:
        if teacher.labels == self.labels:
            return (
                f"the teacher has the tags {', '.join(teacher.tags)}, the student "
                f"{', '.join(self.tags)}: set the scheme of the teacher"
            )
        return (
            f"the teacher has the labels {', '.join(teacher.labels)}, the student "
            f"{', '.join(self.labels)}: give [initialize.components.{self.name}.labels] the "
            "teacher's, in its order"
        )

    def accumulate(self, examples: list[Example]) -> float:
        if self._teacher is None:
            return super().accumulate(examples)
        docs = [example.predicted for example in examples]
        scores, backprop = self.model.begin_update(docs)
        loss, gradients = self.get_loss(examples, scores)
        told = self._teacher.distribution([doc for doc in docs if len(doc)])
        distance, others = self._distance(told, scores)
        share = self._weight
        backprop([(1 - share) * own + share * other for own, other in zip(gradients, others)])
        return (1 - share) * loss + share * distance

    def _distance(self, told: LinearChain, scores: list[Floats2d]) -> tuple[float, list[Floats2d]]:
        """Compute the cross entropy with the teacher, and its gradient by each array of scores."""
        xp = self.model.ops.xp
        sizes = [len(array) for array in scores]
        lengths = torch.tensor([size for size in sizes if size])
        if not torch.equal(told.lengths, lengths):
            raise InputError(
                f"{self.name}: the teacher splits a text into other sentences than the student: "
                "leave the component that sets them out of the teacher's pipeline"
            )
        flat = xp2torch(xp.concatenate(scores)).clone().requires_grad_()
        losses = cross_entropy(told, self.scored_chain(flat, lengths))
        loss = losses.mean() if self.reduction == "mean" else losses.sum()
        loss.backward()
        assert flat.grad is not None
        ends = torch.tensor(sizes).cumsum(0)[:-1].tolist()
        return float(loss.detach()), xp.split(torch2xp(flat.grad), ends)


def _copied(doc: Doc, teacher: Teacher) -> Doc:
    """Copy a doc into the vocabulary of the teacher, whose word vectors its model reads."""
    copy = Doc(teacher.vocab).from_bytes(doc.to_bytes(exclude=["user_data"]))
    for key in ("document", "part"):  # the document that the doc belongs to
        if key in doc.user_data:
            copy.user_data[key] = doc.user_data[key]
    return copy
