"""The parts of a pipeline, and which of them runs: the embedding, the encoder, and so on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FrameType
from typing import Any, NamedTuple

from spacy.language import Language
from thinc.api import Model

from spacy_psa.architectures.crf import EMISSION, HEADS
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.sentences import SplitDocs, sentence_bounds, split_sentences

REST = "spaCy"
ROOMS = {
    "reading docs": "sentences, evidence and gold annotation of docs",
    "embedding": "vectors of words and characters",
    "encoder": "the layer over the vectors",
    "potentials": "the head: scores of tags, of pairs of tags or of spans",
    "inference": "the best analyses; in training the loss and its gradient",
    "writing docs": "predictions on docs",
    "optimizer": "limits of gradients, new weights",
    REST: "everything else: batches, tokens, other components",
}
"""The rooms, with their content."""

_METHODS = {
    "predict": "inference",
    "get_loss": "inference",
    "_gold_tags": "reading docs",
    "set_annotations": "writing docs",
    "finish_update": "optimizer",
}
_FUNCTIONS = (SplitDocs.__init__, split_sentences, sentence_bounds)
_OUTSIDE = "spacy_psa.laboratory.performance."  # the profiler is not a part of the profile
_WRAPPERS = ("thinc.model", "torch.nn.modules.module")  # they wrap each layer


class Place(NamedTuple):
    """Where a program is."""

    room: str
    """A key of `ROOMS`."""
    functions: tuple[str, ...]
    """The functions from the room inwards, each called by the one before."""


class Rooms:
    """Finds the room of a frame, in a pipeline.

    A room begins where a marked layer of a model, or a method of a component, is called. The
    innermost room counts. Layers are marked only inside `marked`.
    """

    def __init__(self, nlp: Language):
        models = (getattr(pipe, "model", None) for _, pipe in nlp.pipeline)
        self.models = [model for model in models if isinstance(model, Model)]
        pipes = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, StructuredPipe)]
        self._rooms: dict[CodeType, str] = {
            getattr(type(pipe), name).__code__: room
            for pipe in pipes
            for name, room in _METHODS.items()
            if hasattr(type(pipe), name)
        }
        self._rooms |= {function.__code__: "reading docs" for function in _FUNCTIONS}
        self._names: dict[CodeType, str] = {}

    @contextmanager
    def marked(self) -> Iterator[None]:
        """Mark the layers of the pipeline inside the context."""
        before = {}
        for room, node in self._layers():
            if node.id not in before:
                before[node.id] = (node, node._func)
                node._func = partial(_forward, room, node._func)
        try:
            yield
        finally:
            for node, function in before.values():
                node._func = function

    def _layers(self) -> Iterator[tuple[str, Model]]:
        for model in self.models:
            for node in model.walk():
                refs = {name: node.get_ref(name) for name in node.ref_names if node.has_ref(name)}
                if "encode" in refs:
                    yield "encoder", refs["encode"]
                if "embed" in refs:
                    yield "embedding", refs["embed"]
                elif "tok2vec" in refs and not refs["tok2vec"].has_ref("embed"):
                    yield "embedding", refs["tok2vec"]  # a listener
                if "head" in refs or node.name in (*HEADS, EMISSION):
                    yield "potentials", refs.get("head", node)

    def place(self, frame: FrameType | None) -> Place:
        """Find the room of a frame, and the functions that run in it."""
        functions: list[str] = []
        room = REST
        while frame is not None:
            code = frame.f_code
            if code is _in_room.__code__:
                room = frame.f_locals["room"]
                break
            name = self._names.get(code)
            if name is None:
                name = self._names[code] = _name(frame)
            if name.startswith(_OUTSIDE):
                break
            if name:
                functions.append(name)
            if code in self._rooms:
                room = self._rooms[code]
                break
            frame = frame.f_back
        return Place(room, tuple(reversed(functions)))


def _name(frame: FrameType) -> str:
    """Name the function of a frame; "" for the functions that wrap each layer."""
    module = str(frame.f_globals.get("__name__", "?"))
    if module in _WRAPPERS or frame.f_code is _forward.__code__:
        return ""
    name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)  # Python 3.10 has the second
    return f"{module}.{name}".replace("<locals>.", "")


def _forward(room: str, function: Callable, *arguments: Any, **named: Any) -> tuple[Any, Callable]:
    output, backprop = _in_room(room, function, *arguments, **named)
    return output, partial(_in_room, room, backprop)


def _in_room(room: str, function: Callable, *arguments: Any, **named: Any) -> Any:
    return function(*arguments, **named)
