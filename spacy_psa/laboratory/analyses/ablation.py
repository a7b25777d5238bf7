"""The contributions of the parts of a self-attentive BiLSTM (Li2019 section 5.4.1, Tables 3 and 4).

The output H || C1 || … || Cm of the encoder goes to a linear classifier,

    H Wc[:d_h] + Σ_i Ci Wc[…] + b.

If blocks of the output are replaced with zeros, their terms fall out of the scores.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.training import Example
from thinc.util import to_numpy

from spacy_psa.bridge.optimizer import torch_modules
from spacy_psa.errors import InputError
from spacy_psa.modules.self_attentive import SelfAttentiveBiLSTM
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.scoring.token_recall import Recall, chunk_class, token_recall
from spacy_psa.sentences import sentence_bounds

_LACKING = "Component '{}' has no trained SelfAttentiveBiLSTM.v1 of its own"


def blocks(pipe: TrainablePipe) -> tuple[str, ...]:
    """List the blocks of a component's encoder that can be zeroed: "H", "C1", …, "Cm"."""
    return tuple(_module(pipe).blocks)


@contextmanager
def zeroed(pipe: TrainablePipe, names: Iterable[str]) -> Iterator[None]:
    """Replace blocks of the encoder's output with zeros within the context."""
    module = _module(pipe)
    silent = frozenset(names)
    if unknown := sorted(silent - module.blocks.keys()):
        raise InputError(
            f"Component '{pipe.name}' has no block {', '.join(unknown)}: "
            f"choose from {', '.join(module.blocks)}"
        )
    before, module.zeroed = module.zeroed, silent
    try:
        yield
    finally:
        module.zeroed = before


def setups(names: Sequence[str]) -> dict[str, frozenset[str]]:
    """List the columns of Li2019 Table 3, and for each the blocks that are replaced with zeros.

    "HC" is the whole model, "H" only the BiLSTM, "C" only the attention, and "C1" and so on only
    one head.
    """
    every = frozenset(names)
    heads = {name: every - {name} for name in names if name != "H"}
    return {"HC": frozenset(), "H": every - {"H"}, "C": frozenset({"H"}), **heads}


def recalls(
    pipe: ChainLabeler, examples: Iterable[Example], project: Callable[[str], str] = chunk_class
) -> dict[str, dict[str, Recall]]:
    """Compute the token recall of each class under each of the `setups` (Li2019 Table 3).

    With `project = type_class` the classes are those of Table 4. `differences` computes the numbers
    of both tables from the recalls. Under a softmax head each token gets its most probable tag,
    whatever the tags of its neighbours, as in Li2019. Under a CRF the best sequence counts.

    Args:
        pipe: the component.
        examples: predicted docs with their references.
        project: function from a tag to its class.

    Returns:
        The recall by setup and class.
    """
    examples = [example for example in examples if len(example.predicted)]
    gold = [_gold(pipe, example) for example in examples]
    by_setup = {}
    for name, silent in setups(blocks(pipe)).items():
        with zeroed(pipe, silent):
            by_setup[name] = token_recall(gold, (_predict(pipe, e) for e in examples), project)
    return by_setup


def check_encoder(nlp: Language, name: str) -> None:
    """Raise an InputError if a component holds no encoder whose blocks can be replaced."""
    pipes = {key: pipe for key, pipe in nlp.pipeline if isinstance(pipe, TrainablePipe)}
    holders = {key: pipe for key, pipe in pipes.items() if _encoder(pipe) is not None}
    if name in holders:
        return
    fault = _LACKING.format(name)
    if not holders:
        raise InputError(f"{fault}, and the pipeline has none: use a pipeline with one")
    for holder, pipe in holders.items():
        if name in getattr(pipe, "listening_components", ()):
            places = json.dumps([*_listeners(nlp.get_pipe_config(name)["model"], "model")])
            raise InputError(
                f"{fault}, but listens to '{holder}': add one with nlp.replace_listeners("
                f'"{holder}", "{name}", {places}), and save the pipeline'
            )
    raise InputError(f"{fault}: use one of {', '.join(holders)}")


def _listeners(section: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield the places of the listeners in a section of a config."""
    if "Listener" in section.get("@architectures", ""):
        yield place
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _listeners(value, f"{place}.{key}")


def unknown_labels(pipe: ChainLabeler, example: Example) -> list[str]:
    """List the gold labels of an example that a component does not have, sorted."""
    if isinstance(pipe, SpanLabeler):
        return sorted(
            {label for _, _, label in pipe.store.gold(pipe.name, example)[0]} - {*pipe.labels}
        )
    names = {name for name in example.get_aligned("TAG", as_string=True) if name}
    known = {*pipe.tags}
    if isinstance(pipe, CRFTagger) and pipe._neg_prefix:
        known |= {pipe._neg_prefix + tag for tag in pipe.tags}
    return sorted(names - known)


def _module(pipe: TrainablePipe) -> SelfAttentiveBiLSTM:
    module = _encoder(pipe)
    if module is None:
        raise InputError(f"{_LACKING.format(pipe.name)}: use one that has")
    return module


def _encoder(pipe: TrainablePipe) -> SelfAttentiveBiLSTM | None:
    modules = (module for node in pipe.model.walk() for module in torch_modules(node))
    return next((module for module in modules if isinstance(module, SelfAttentiveBiLSTM)), None)


def _gold(pipe: ChainLabeler, example: Example) -> list[str | None]:
    tags = numpy.concatenate(pipe._gold_tags(example, sentence_bounds(example.predicted)))
    # Below 0 are tokens without a tag, and with tags that they are known not to have.
    return [None if tag < 0 else pipe.tags[tag] for tag in tags.tolist()]


def _predict(pipe: ChainLabeler, example: Example) -> list[str]:
    doc = example.predicted
    scores = numpy.concatenate([to_numpy(array) for array in pipe.model.predict([doc])])
    if scores.shape[1] == len(pipe.tags):
        tags = scores.argmax(1).tolist()
    else:
        tags = [tag for part in pipe.distribution([doc]).argmax for tag in part.tolist()]
    return [pipe.tags[tag] for tag in tags]
