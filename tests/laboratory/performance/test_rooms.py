"""In which room of a pipeline each function runs."""

import sys

import pytest
import torch

from spacy_psa.laboratory.performance.rooms import REST, Rooms
from spacy_psa.modules.chain_potentials import LabelPair
from spacy_psa.modules.char_bilstm import CharBiLSTM
from spacy_psa.modules.psa import PSABiLSTM
from spacy_psa.pipeline.chain.decoders import ViterbiDecoder
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.chain.ner import EntityStore
from spacy_psa.pipeline.component import StructuredPipe
from tests.helpers.pipelines import TEXTS, make_examples


@pytest.fixture
def noted(trained, monkeypatch):
    """Where each watched function ran, and its backward pass: {name: rooms}."""
    rooms, found = Rooms(trained), {}

    def watch(owner, name):
        function = getattr(owner, name)
        title = f"{owner.__name__}.{name}"

        def note(ending=""):
            found.setdefault(title + ending, set()).add(rooms.place(sys._getframe()).room)

        def watched(*arguments, **named):
            note()
            result = function(*arguments, **named)
            if isinstance(result, torch.Tensor) and result.requires_grad:
                result.register_hook(lambda gradient: note(" backward"))
            return result

        monkeypatch.setattr(owner, name, watched)

    for module in (LabelPair, CharBiLSTM, PSABiLSTM):
        watch(module, "forward")
    watch(ViterbiDecoder, "read")
    watch(EntityStore, "write")
    watch(EntityStore, "gold")
    watch(ChainLabeler, "_log_prob_of_gold")
    watch(StructuredPipe, "pipe")
    return rooms, found


def test_annotation_has_rooms(trained, noted):
    rooms, found = noted
    with rooms.marked():
        list(trained.pipe(TEXTS))
    assert found == {
        "CharBiLSTM.forward": {"embedding"},
        "PSABiLSTM.forward": {"encoder"},
        "LabelPair.forward": {"potentials"},
        "ViterbiDecoder.read": {"inference"},
        "EntityStore.write": {"writing docs"},
        "StructuredPipe.pipe": {REST},
    }


def test_training_has_rooms_forward_and_backward(trained, noted):
    rooms, found = noted
    with rooms.marked():
        trained.update(make_examples(trained), sgd=trained.resume_training())
    assert found == {
        "CharBiLSTM.forward": {"embedding"},
        "CharBiLSTM.forward backward": {"embedding"},
        "PSABiLSTM.forward": {"encoder"},
        "PSABiLSTM.forward backward": {"encoder"},
        "LabelPair.forward": {"potentials"},
        "LabelPair.forward backward": {"potentials"},
        "EntityStore.gold": {"reading docs"},
        "ChainLabeler._log_prob_of_gold": {"inference"},
        "ChainLabeler._log_prob_of_gold backward": {"inference"},
    }


def test_a_model_is_as_before_afterwards(trained):
    functions = [node._func for node in trained.get_pipe("ner").model.walk()]
    with Rooms(trained).marked():
        assert [n._func for n in trained.get_pipe("ner").model.walk()] != functions
    assert [node._func for node in trained.get_pipe("ner").model.walk()] == functions


def test_functions_are_listed_from_the_room_inwards(trained, monkeypatch):
    rooms, places = Rooms(trained), []
    write = EntityStore.write

    def noting(self, *arguments):
        places.append(rooms.place(sys._getframe()))
        write(self, *arguments)

    monkeypatch.setattr(EntityStore, "write", noting)
    trained(TEXTS[0])
    first, *_, last = places[0].functions
    assert first.endswith("SpanLabeler.set_annotations") and last.endswith("inwards.noting")
