"""The input of a component from those before it: their annotation, and their vectors."""

from collections.abc import Collection, Iterable
from typing import Any

from spacy.attrs import NAMES
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model

from spacy_psa.architectures.sentencewise import listeners, upstream_name
from spacy_psa.errors import InputError

PREDICTED = {
    "TAG", "POS", "MORPH", "LEMMA", "DEP", "ENT_TYPE", "ENT_IOB", "ENT_ID", "ENT_KB_ID",
    "SENT_START",
}  # fmt: skip
"""Attributes of tokens that components predict."""


def with_upstream(
    nlp: Language, name: str, examples: Iterable[Example], without: Collection[str] = ()
) -> list[Example]:
    """Annotate copies of examples by the components before one.

    Args:
        examples: the examples; they stay as they are.
        without: names of components that are left out.
    """
    examples = list(examples)
    before = nlp.pipe_names[: nlp.pipe_names.index(name)]
    with nlp.select_pipes(enable=[other for other in before if other not in without]):
        docs = list(nlp.pipe(example.predicted.copy() for example in examples))
    return [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]


def annotation_read(model: Model) -> list[str]:
    """List the attributes of tokens that a model reads and other components predict.

    These are the attributes of `TagEmbed.v1` and spaCy's embedders: TAG, POS, MORPH, LEMMA, DEP and
    so on.
    """
    read: set[str] = set()
    for node in model.walk():
        given = [node.attrs.get("attribute"), *(node.attrs.get("columns") or ())]
        read.update(NAMES[each] if isinstance(each, int) else str(each) for each in given)
    return sorted(read & PREDICTED)


def check_before(nlp: Language, pipe: Any) -> None:
    """Raise InputError if a component listens to one that is not before it in the pipeline."""
    nodes = listeners(pipe.model)
    components: list[tuple[str, Any]] = nlp.components if nodes else []  # also the disabled ones
    before = []
    for name, other in components:
        if other is pipe:
            break
        before.append(name)
        if hasattr(other, "find_listeners"):
            other.find_listeners(pipe)
            linked = other.listener_map.get(pipe.name, ())
            nodes = [node for node in nodes if not any(node is each for each in linked)]
    else:
        return  # it is not in this pipeline
    if nodes:
        raise InputError(
            f"{pipe.name}: its {nodes[0].name} (upstream = {upstream_name(nodes[0])!r}) finds no "
            f"component to listen to before it in the pipeline ({', '.join(before) or 'none'}): "
            "correct `upstream`, or the order in [nlp.pipeline]"
        )


def check_upstream(name: str, model: Model, docs: Iterable[Doc], update: bool = False) -> None:
    """Raise InputError if a doc lacks the vectors that a model listens to; it would read zeros.

    In an `update`, the component before it may have handed the vectors over.
    """
    nodes = listeners(model)
    if update:
        nodes = [node for node in nodes if getattr(node, "_batch_id", "other") is None]
    for doc in docs if nodes else ():
        for node in nodes:
            if isinstance(node, Tok2VecListener):
                missing = not doc.tensor.size
            else:
                missing = doc.has_extension("trf_data") and doc._.trf_data is None
            if missing and len(doc):
                upstream = upstream_name(node)
                upstream = "its upstream" if upstream == "*" else upstream
                raise InputError(
                    f"{name}: it listens to {upstream}, which has not seen the doc "
                    f"{doc.text[:100]!r}: annotate it with the whole pipeline first, as nlp(text) "
                    "does; in training, name that component in [training.annotating_components], "
                    "before this one"
                )
