"""The callback that makes a trained component the teacher of one in training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from thinc.api import Config

from spacy_psa.errors import InputError, check_amounts, check_rates, naming
from spacy_psa.loading import load_pipeline
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.pipeline.distillation import Teacher, learn_from
from spacy_psa.pipeline.nested.spans import NestedSpanLabeler


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
        pipe: the name of the component in both pipelines; None if each has one `crf_*` component,
            or no such component and one parser.
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
    """Find the name of a pipeline's component, among the active ones if there are any.

    Without a name, it is the only `crf_*` component or, without any, the only parser. The
    InputError if there is none, or if there are several, begins with `where` the pipeline is from.
    """
    # `source` disables a component while a pipeline is initialized.
    pipes = [nlp.pipeline, nlp.components]
    known = [own for own, pipe in nlp.components if isinstance(pipe, StructuredPipe)]
    if name is not None and name not in known:
        shown = ", ".join(known) or "(none)"
        raise InputError(f"{where}: has no component {name!r} of spacy-psa; it has {shown}")
    choices = (
        [own for own, pipe in each if isinstance(pipe, kind)]
        for kind in (ChainLabeler | NestedSpanLabeler, StructuredPipe)
        for each in pipes
    )
    names = next(filter(None, choices), [])
    if not names:
        raise InputError(
            f"{where}: has no crf_ner, crf_chunker, crf_tagger, crf_spans or constituency_parser; "
            "this works for no others"
        )
    if name is None and len(names) > 1:
        raise InputError(f"{where}: has several components, {', '.join(known)}: choose with --pipe")
    return name or names[0]


def add_teacher(
    settings: Config,
    teacher: str,
    output: Path,
    weight: float,
    unlabelled: Path | None = None,
    pipe: str | None = None,
    cache_gb: float = 0.0,
) -> None:
    """Write a teacher and its labels into the config of a student; see `distill`.

    Args:
        teacher, weight, pipe, cache_gb: as in `distill`.
        output: the folder of the training, which must not be that of the teacher.
        unlabelled: text without annotation to learn from, a .txt or .spacy file or a folder.

    Raises:
        InputError: if the config and the teacher do not fit, or there is no such text.
    """
    folder = Path(teacher).resolve()
    if folder.exists() and output.resolve() in (folder, folder.parent):
        raise InputError(
            f"--output {output}: the teacher {teacher} is there; choose another folder"
        )
    if not 0 <= weight <= 1:
        raise InputError(f"--weight {weight:g}: choose a number from 0 to 1")
    nlp = load_pipeline(teacher)
    name = labeler_name(nlp, pipe, teacher)
    factory = nlp.get_pipe_meta(name).factory
    students = [
        key
        for key, component in settings["components"].items()
        if pipe in (None, key) and _factory(key, component) == factory
    ]
    if len(students) != 1:
        raise InputError(
            f"the config has {len(students)} components {factory!r}, which the teacher's {name!r} "
            "is: use a config that has one, or choose with --pipe"
        )
    own: Any = nlp.get_pipe(name)
    start = settings.setdefault("initialize", {})
    start.setdefault("components", {}).setdefault(students[0], {}).setdefault(
        "labels", list(own.labels)
    )
    start["after_init"] = {
        "@callbacks": "spacy-psa.distill.v1",
        "teacher": teacher,
        "weight": weight,
        "pipe": pipe,
        "also": start.get("after_init"),
        "cache_gb": cache_gb,
    }
    if unlabelled is not None:
        _add_unlabelled(settings, unlabelled)


def _factory(name: str, component: dict[str, Any]) -> str | None:
    """Return the factory of a component of a config, also of one that has a `source`."""
    if "source" not in component:
        return component.get("factory")
    nlp, sourced = load_pipeline(component["source"]), component.get("component", name)
    return nlp.get_pipe_meta(sourced).factory if sourced in nlp.component_names else None


def _add_unlabelled(settings: Config, path: Path) -> None:
    """Put text without annotation behind the training corpus of a config."""
    if not path.exists():
        raise InputError(f"--unlabelled {path}: there is no such file or folder; check the path")
    block, _, name = settings["training"]["train_corpus"].rpartition(".")
    if block != "corpora" or name not in settings["corpora"]:
        raise InputError(
            f"train_corpus of [training] is {settings['training']['train_corpus']!r}: --unlabelled "
            "needs a section of [corpora]"
        )
    settings["corpora"][name] = {
        "@readers": "spacy-psa.WithUnlabelled.v1",
        "path": str(path),
        "labelled": settings["corpora"][name],
    }
