"""Rehearsal: learning something new without forgetting what an earlier model said."""

from typing import Any

import torch
from spacy.training import Example
from thinc.api import Model, set_dropout_rate, torch2xp, xp2torch
from thinc.types import Floats2d

from spacy_psa.architectures.sentencewise import listeners
from spacy_psa.errors import InputError
from spacy_psa.structs.cross_entropy import cross_entropy


class Rehearsing:
    """Gives a chain component `rehearse`, which `nlp.rehearse` calls.

    `nlp.resume_training` keeps a copy of the model. `rehearse` lets the model stay close to what
    the copy says of texts without annotation: its loss is the cross entropy of the two
    distributions.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> ner = nlp.add_pipe(
        ...     "crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> _ = ner.add_label("PER")
        >>> optimizer = nlp.initialize()
        >>> optimizer = nlp.resume_training()
        >>> doc = nlp.make_doc("Ada met Bob")
        >>> nlp.rehearse([Example(doc, doc.copy())], sgd=optimizer)["crf_ner"] > 0
        True
    """

    model: Model
    _rehearsal_model: Model | None = None

    def rehearse(
        self,
        examples: list[Example],
        *,
        drop: float = 0.0,
        sgd: Any = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn to say of some docs what the model said when the training was resumed.

        Args:
            examples: the docs; their annotation is not used.
            drop: dropout rate of spaCy's own layers.
            sgd: the optimizer; None to add up gradients and keep the weights as they are.
            losses: the losses so far, by component.

        Returns:
            The losses. Nothing is learned before `nlp.resume_training`.

        Raises:
            InputError: if the model listens to another component, which does not take part.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)  # type: ignore[attr-defined]
        docs = [example.predicted for example in examples if len(example.predicted)]
        if self._rehearsal_model is None or not docs:
            return losses
        if listeners(self.model):
            raise InputError(
                f"{self.name}: it listens to another component, which "  # type: ignore[attr-defined]
                "nlp.rehearse does not run: give it an encoder of its own with "
                "nlp.replace_listeners, then call nlp.resume_training again"
            )
        set_dropout_rate(self.model, drop)
        asked = self._rehearsal_model.predict(docs)
        scores, backprop = self.model.begin_update(docs)
        loss, gradients = self._rehearsal_loss(asked, scores)
        backprop(gradients)
        losses[self.name] += loss  # type: ignore[attr-defined]
        if sgd not in (None, False):
            self.finish_update(sgd)  # type: ignore[attr-defined]
        return losses

    def _rehearsal_loss(
        self, asked: list[Floats2d], scores: list[Floats2d]
    ) -> tuple[float, list[Floats2d]]:
        xp = self.model.ops.xp
        sizes = [len(array) for array in scores]
        lengths = torch.tensor([size for size in sizes if size])
        teacher, student = (xp2torch(xp.concatenate(arrays)).clone() for arrays in (asked, scores))
        chains = [
            self.scored_chain(flat, lengths)  # type: ignore[attr-defined]
            for flat in (teacher, student.requires_grad_())
        ]
        loss = cross_entropy(*chains).mean()
        loss.backward()
        assert student.grad is not None
        ends = torch.tensor(sizes).cumsum(0)[:-1].tolist()
        return float(loss.detach()), xp.split(torch2xp(student.grad), ends)
