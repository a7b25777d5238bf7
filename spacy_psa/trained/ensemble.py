"""Several trained pipelines in one, by the mean of their log potentials."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from spacy.language import Language
from spacy.util import load_model_from_config
from spacy.vectors import Vectors
from thinc.api import Model

from spacy_psa.architectures.crf import apart
from spacy_psa.architectures.sentencewise import listeners
from spacy_psa.corpora.atomic import atomic_folder, check_free
from spacy_psa.errors import InputError
from spacy_psa.loading import find_pipe, load_pipeline
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.pipeline.parser.parser import ConstituencyParser
from spacy_psa.pipeline.upstream import annotation_read

OF_MODEL = ("components", "disabled", "labels", "performance", "pipeline", "vectors")
"""The meta data that only describe one model."""
MEANING = ("labels", "tags", "layers")
"""The attributes of a component that tell what its scores are for."""

EMBEDDERS = ("word_embed", "bigram_embed")
"""The layers that read word vectors, and do without if there are none."""


def ensemble(models: Sequence[str], output: Path, pipe: str | None = None) -> None:
    """Join pipelines that have the same component, and write the joined one."""
    check_free(output)
    if len(models) < 2:
        raise InputError("an ensemble needs at least two models")
    places = Counter(Path(model).resolve() for model in models)
    for place, count in places.items():
        if count > 1:
            raise InputError(f"{place}: is named {count} times: name each model once")
    pipelines = {model: load_pipeline(model) for model in models}
    first = next(iter(pipelines.values()))
    kinds = "crf_ner, crf_spans, crf_chunker, crf_tagger or constituency_parser"
    joined = _join(pipelines, find_pipe(first, pipe, StructuredPipe, kinds).name)
    with atomic_folder(output) as folder:
        joined.to_disk(folder)


def _join(pipelines: dict[str, Language], name: str) -> Language:
    first = next(iter(pipelines.values()))
    for model, nlp in pipelines.items():
        _check_same(model, nlp, first, name)
    vectors = _vectors(pipelines)
    config = first.config.copy()
    # The variables of a member have other values in the config of the first, or none.
    members = {
        f"m{i}": nlp.config.interpolate()["components"][name]["model"]
        for i, nlp in enumerate(pipelines.values(), 1)
    }
    config["components"][name]["model"] = {"@architectures": "spacy-psa.Ensemble.v1", "*": members}
    joined = load_model_from_config(config)
    joined.vocab.from_bytes(first.vocab.to_bytes())
    tokenizer: Any = joined.tokenizer
    if hasattr(first.tokenizer, "to_bytes"):
        tokenizer.from_bytes(first.tokenizer.to_bytes())
    joined.meta.update({key: value for key, value in first.meta.items() if key not in OF_MODEL})
    for own in first.component_names:  # also the disabled ones
        source: Any = first.get_pipe(own)
        target: Any = joined.get_pipe(own)
        if own != name:
            if hasattr(source, "to_bytes"):
                target.from_bytes(source.to_bytes())
            continue
        target.from_bytes(source.to_bytes(exclude=["model"]), exclude=["model"])
        if not isinstance(target, ConstituencyParser):
            # These were found for the probabilities of the first model.
            target.temperature = 1.0
            target.calibrated.forget()
        for part, nlp in zip(target.model.layers, pipelines.values()):
            member: Any = nlp.get_pipe(name)
            part.from_bytes(member.model.to_bytes())
        target.model.set_dim("nO", target.model.layers[0].get_dim("nO"))
    if vectors is not None:  # and not before, since the bytes of components have a vocab
        joined.vocab.vectors = vectors
    return joined


def _check_same(model: str, nlp: Language, first: Language, name: str) -> None:
    """Check that a pipeline can be joined with the first."""
    if name not in nlp.pipe_names:
        raise InputError(f"{model}: has no component {name!r}")
    pipe: Any = nlp.get_pipe(name)
    other: Any = first.get_pipe(name)
    if nlp.get_pipe_meta(name).factory != first.get_pipe_meta(name).factory:
        raise InputError(f"{model}: {name} is another kind of component than in the first model")
    if any(getattr(pipe, key, None) != getattr(other, key, None) for key in MEANING):
        raise InputError(
            f"{model}: {name} has other labels or another scheme than in the first model: join "
            "models of one task"
        )
    if getattr(pipe, "_longest", None) != getattr(other, "_longest", None):
        raise InputError(
            f"{model}: {name} has another limit for spans (longest) than in the first model: join "
            "models with the same"
        )
    if isinstance(pipe, ConstituencyParser) and pipe.ranks_only != other.ranks_only:
        raise InputError(
            f"{model}: {name} has another loss than in the first model, and so scores of another "
            "kind: join parsers that one loss has trained"
        )
    if listeners(pipe.model):
        raise InputError(
            f"{model}: {name} listens to another component: train it with an encoder of its own"
        )
    if (read := annotation_read(pipe.model)) and _before(nlp, name) != _before(first, name):
        raise InputError(
            f"{model}: {name} reads {', '.join(read)}, which other components predict than in the "
            "first model: join models whose components before it are the same, or train it without"
        )
    models = pipe.model, other.model
    text = nlp.make_doc("text")
    shapes = [[array.shape for array in each.predict([text])] for each in models]
    if shapes[0] != shapes[1] or len(apart(models[0])) != len(apart(models[1])):
        raise InputError(
            f"{model}: {name} has other potentials than in the first model: one of them is of "
            "version 0.1, or of another architecture"
        )


def _before(nlp: Language, name: str) -> list[tuple[Any, bytes]]:
    """Return the settings and the weights of the components before one."""
    return [
        (
            {**nlp.get_pipe_config(own), "name": own},
            pipe.to_bytes(exclude=["vocab"]) if hasattr(pipe, "to_bytes") else b"",
        )
        for own, pipe in nlp.pipeline[: nlp.pipe_names.index(name)]
    ]


def _vectors(pipelines: dict[str, Language]) -> Vectors | None:
    """Return the word vectors of all pipelines that read some; None if there is none."""
    common: Vectors | None = None
    for model, nlp in pipelines.items():
        own = nlp.vocab.vectors
        if own.size or any(map(_looks_for_vectors, nlp.components)):
            common = own if common is None else common
            if own is not common and not _equal(own, common):
                raise InputError(
                    f"{model}: has other word vectors than a model before it: join models that "
                    "were trained with the same"
                )
    return common


def _looks_for_vectors(component: tuple[str, Any]) -> bool:
    """Whether a component has an embedder that would read word vectors if there were some."""
    model = getattr(component[1], "model", None)
    nodes = model.walk() if isinstance(model, Model) else ()
    return any(node.name in EMBEDDERS and node.attrs.get("pretrained", True) for node in nodes)


def _equal(ours: Vectors, theirs: Vectors) -> bool:
    keys = [sorted(vectors.key2row.items()) for vectors in (ours, theirs)]
    return keys[0] == keys[1] and numpy.array_equal(ours.data, theirs.data)
