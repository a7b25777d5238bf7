"""The callback that makes a trained component the teacher of one in training."""

from collections.abc import Callable
from typing import Any

import spacy
from spacy.language import Language

from spacy_psa.errors import InputError, check_amounts, check_rates, naming
from spacy_psa.pipeline.chain.distillation import Teacher, learn_from
from spacy_psa.pipeline.chain.labeler import ChainLabeler


def distill(
    teacher: str,
    weight: float = 0.5,
    pipe: str | None = None,
    also: Callable[[Language], None] | None = None,
    cache_gb: float = 0.0,
) -> Callable[[Language], None]:
    """Build the callback `distill.v1`, with which a component learns from a trained one.

    It is for [initialize.after_init]; `spacy-psa distill` writes it there. The loss of a sentence
    is (1 - weight) times the negative log likelihood of its annotation, plus weight times the cross
    entropy of the teacher's and the student's distributions over analyses (Hinton et al. 2015).
    Text without annotation only has the second part; see `WithUnlabelled.v1`.

    The teacher is only needed in training: the trained pipeline does not hold it.

    Args:
        teacher: the folder of a trained pipeline, such as `spacy-psa ensemble` writes, or the name
            of a package. Its component must have the labels and the scheme of the student.
        weight: share of the teacher in the loss, from 0 to 1; the rest is that of the annotation.
        pipe: the name of the component in both pipelines; None if each has one `crf_*` component.
        also: a further callback, called before; such as `check_dev_labels.v1`.
        cache_gb: the gigabytes of the teacher's potentials that are kept on its device, so that it
            only scores a text in the first pass. A training that is killed and resumed
            computes them again, in other batches. Rounding then differs, and so may the weights
            at the end.

    Returns:
        A function of the pipeline. It raises InputError if the teacher cannot teach the student.

    Raises:
        InputError: if the weight is not from 0 to 1, or `cache_gb` is below 0.
    """
    with naming("distill.v1"):
        check_rates(weight=weight)
        check_amounts(cache_gb=cache_gb)

    def attach(nlp: Language) -> None:
        if also is not None:
            also(nlp)
        try:
            teaching = spacy.load(teacher)
        except Exception as error:  # each kind of file has its own errors
            raise InputError(
                f"{teacher}: the teacher cannot be opened ({str(error).partition('. ')[0]}); name "
                "the folder of a trained pipeline"
            ) from error
        loaded = Teacher(teaching, labeler_name(teaching, pipe, teacher), cache_gb)
        student: Any = nlp.get_pipe(labeler_name(nlp, pipe, "the config"))
        learn_from(student, loaded, weight)

    return attach


def labeler_name(nlp: Language, name: str | None, where: str) -> str:
    """Find the name of a pipeline's component of a chain, among the active ones if there are any.

    Args:
        nlp: the pipeline.
        name: its name; None for the only one.
        where: where the pipeline is from, for errors.

    Raises:
        InputError: if there is no such component, or if there are several and `name` is None.
    """
    active = [own for own, pipe in nlp.pipeline if isinstance(pipe, ChainLabeler)]
    # `source` disables a component while a pipeline is initialized.
    names = active or [own for own, pipe in nlp.components if isinstance(pipe, ChainLabeler)]
    shown = ", ".join(names) or "(none)"
    if name is not None and name not in names:
        raise InputError(f"{where}: has no crf_* component {name!r}; it has {shown}")
    if not names:
        raise InputError(
            f"{where}: has no crf_ner, crf_chunker or crf_tagger; this works for no others"
        )
    if name is None and len(names) > 1:
        raise InputError(f"{where}: has several crf_* components, {shown}: choose with --pipe")
    return name or names[0]
