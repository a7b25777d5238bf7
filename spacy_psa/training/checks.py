"""Checks after initialization and before the first update."""

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from spacy.language import Language
from spacy.training import Example
from spacy.util import dot_to_object, registry

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.sequence_labeler import SequenceLabeler
from spacy_psa.training.evaluations import warn_of_no_evaluation


def check_dev_labels() -> Callable[[Language], None]:
    """Build the callback `check_dev_labels.v1`, which checks the labels of the development data.

    It is for [initialize.after_init]. No training starts if the corpus that `training.dev_corpus`
    names has a label that a `crf_*` component lacks, since the component could never predict it.
    Nothing is checked if the path of the corpus is null, as when a pipeline is initialized from
    Python, nor, with a warning, if there is no such file, as when a trained pipeline is initialized
    again on another machine. Test data is never read.

    A training that would end before its first evaluation after step 0 gives a warning.

    `--initialize.after_init null` turns the check off on the command line.

    Returns:
        A function of the pipeline. It raises InputError with the labels and the component.

    Examples:
        >>> import spacy
        >>> check = check_dev_labels()
        >>> check(spacy.blank("en"))  # no component to check
    """
    return _check


def _check(nlp: Language) -> None:
    warn_of_no_evaluation(nlp)
    labelers = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, SequenceLabeler)]
    config = nlp.config.interpolate()
    name = config["training"]["dev_corpus"]
    section = dot_to_object(config, name)
    path = section.get("path", "")
    if not labelers or path is None:
        return
    if isinstance(path, str) and not Path(path).exists():
        warnings.warn(
            f"{path}: there is no such file, so the labels of the development data are not checked",
            stacklevel=2,
        )
        return
    resolved = registry.resolve({"corpus": section})
    examples: Iterable[Example] = list(resolved["corpus"](nlp))
    for pipe in labelers:
        unseen = sorted(set(pipe.find_labels(examples)) - set(pipe.labels))
        if unseen:
            raise InputError(
                f"{path or name}: the training data lacks {len(unseen)} label(s) that "
                f"{pipe.name!r} finds here, {', '.join(unseen)}: correct [paths.train] or "
                f"[paths.dev], or name all labels in [initialize.components.{pipe.name}.labels], "
                "or train without these labels by --initialize.after_init null"
            )
