"""Rows that are timed in turn, and profiles."""

import signal
import sys
import threading
from collections import Counter
from xml.etree import ElementTree

import pytest
import spacy
import torch

from spacy_psa.errors import InputError
from spacy_psa.laboratory.performance.flame import WIDTH, flame_graph, folded
from spacy_psa.laboratory.performance.pipelines import (
    Annotation,
    long_text,
    named_rows,
    of_length,
    open_pipelines,
    read_words,
)
from spacy_psa.laboratory.performance.profile import Profile, markdown, profile_annotation, sampled
from spacy_psa.laboratory.performance.rooms import REST, ROOMS, Place, Rooms
from spacy_psa.laboratory.performance.timing import Timing, alternate, summary
from spacy_psa.modules.chain_potentials import LabelPair
from spacy_psa.modules.characters import CharBiLSTM
from spacy_psa.modules.psa import PSABiLSTM
from spacy_psa.pipeline.chain.decoders import ViterbiDecoder
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.chain.ner import EntityStore
from spacy_psa.pipeline.component import StructuredPipe
from tests.helpers.pipelines import TEXTS, make_examples


def test_words_are_cut_and_repeated():
    sentences = [["a", "b", "c"], ["d"]]
    assert long_text(sentences, 6) == ["a", "b", "c", "d", "a", "b"]
    assert of_length(sentences, 2, 6) == [["a", "b"], ["c", "d"], ["a", "b"]]


def test_a_component_may_have_no_model():
    nlp = spacy.blank("en")
    nlp.add_pipe("lemmatizer", config={"mode": "lookup"})
    assert nlp.get_pipe("lemmatizer").model is None
    assert [len(doc) for doc in Annotation("rules", nlp, [["Ada", "slept"]]).docs()] == [2]


def test_paths_may_have_an_equals_sign(tmp_path):
    path = tmp_path / "psa-window=5"
    path.mkdir()
    assert named_rows([str(path), "b=x=y", "c/d=e"]) == {
        str(path): str(path),
        "b": "x=y",
        "c/d=e": "c/d=e",
    }


def test_rows_have_names_of_their_own():
    assert named_rows(["a=x/y", "z"]) == {"a": "x/y", "z": "z"}
    with pytest.raises(InputError, match="two rows have this name"):
        named_rows(["a=x", "a=y"])


def test_what_is_no_spacy_file_is_an_error(tmp_path):
    (tmp_path / "no.spacy").write_bytes(b"words")
    with pytest.raises(InputError, match=r"not a \.spacy file"):
        read_words(tmp_path / "no.spacy", 10)


def test_a_missing_config_is_told_before_the_first_pipeline_is_opened(tmp_path):
    """The first is no pipeline at all: opening it would be another error."""
    config = tmp_path / "missing.cfg"
    paths = {"first": str(tmp_path / "nothing"), "second": str(config)}
    with pytest.raises(InputError, match=r"missing\.cfg: there is no such config"):
        open_pipelines(paths, tmp_path / "train.spacy", None)
    with pytest.raises(InputError, match=r"missing\.cfg: a config needs training data"):
        open_pipelines(paths, None, None)


class Counting:
    def __init__(self, name, order):
        self.name, self.order = name, order

    def run(self):
        self.order.append(self.name)
        return Timing(len(self.order), 1.0, 0.5)


def test_rows_take_turns_and_the_first_round_does_not_count():
    order = []
    timings = alternate([Counting("a", order), Counting("b", order)], repeats=2)
    assert order == ["b", "a", "a", "b", "b", "a"]
    assert [t.amount for t in timings["a"]] == [3, 6]


def test_a_summary_has_the_rates_and_their_spread():
    found = summary([Timing(10, 1.0, 2.0), Timing(10, 2.0, 2.0), Timing(10, 4.0, 2.5)])
    assert found["per_second"]["median"] == 5 and found["per_second"]["most"] == 10
    assert found["per_cpu_second"] == {
        "median": 5, "lower": 4.5, "upper": 5, "least": 4, "most": 5
    }  # fmt: skip
    assert [run["seconds"] for run in found["runs"]] == [1, 2, 4]


def name_of(frame):
    return frame.f_code.co_name


def wait_for_a_sample(seconds):
    while not seconds["wait_for_a_sample"]:
        sum(range(1000))


def test_time_counts_for_the_function_that_runs():
    with sampled(name_of) as seconds:
        wait_for_a_sample(seconds)
    assert seconds["wait_for_a_sample"] > 0


def test_an_error_passes_and_the_timer_ends():
    handler = signal.getsignal(signal.SIGALRM)
    with pytest.raises(ZeroDivisionError), sampled(name_of):
        raise ZeroDivisionError
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is handler


def test_other_threads_are_refused():
    found = []

    def ask():
        try:
            with sampled(name_of):
                pass
        except InputError as error:
            found.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert "main thread" in found[0]


SVG = "{http://www.w3.org/2000/svg}"
PROFILE = Profile(
    2,
    "word",
    Counter(
        {
            Place("encoder", ("spacy_psa.a", "spacy_psa.b.<lambda>")): 6e-6,
            Place("encoder", ("spacy_psa.a",)): 2e-6,
            Place("spaCy", ()): 2e-6,
        }
    ),
)


def test_rooms_and_functions_share_the_time():
    record = PROFILE.to_dict()
    assert record["rooms"]["encoder"] == 8e-6 and record["rooms"]["spaCy"] == 2e-6
    assert list(record["rooms"]) == list(ROOMS)
    assert [(f["function"], f["seconds"]) for f in record["functions"]] == [
        ("spacy_psa.b.<lambda>", 6e-6), ("spacy_psa.a", 2e-6), ("", 2e-6),
    ]  # fmt: skip


def test_the_table_has_the_time_of_a_unit_of_work():
    table = markdown({"Annotation": PROFILE})
    assert "| encoder | 4.00 | 80.0% |" in table and "| all | 5.00 | 100% |" in table
    assert "| `spacy_psa.b.<lambda>` | encoder | 60.0% |" in table
    assert "Sampled every 2 ms, over 0.00 s of processor time." in table


def test_a_flame_graph_is_as_wide_as_the_time():
    root = ElementTree.fromstring(flame_graph("annotation", PROFILE))
    drawn = {
        group.findtext(f"{SVG}title").split(":")[0]: group.find(f"{SVG}rect").attrib
        for group in root.iter(f"{SVG}g")
    }
    widths = {name: float(rectangle["width"]) / WIDTH for name, rectangle in drawn.items()}
    assert widths == {
        "annotation": 1.0, "encoder": 0.8, "spaCy": 0.2, "spacy_psa.a": 0.8,
        "spacy_psa.b.<lambda>": 0.6,
    }  # fmt: skip
    assert drawn["spacy_psa.b.<lambda>"]["y"] > drawn["spacy_psa.a"]["y"]
    assert drawn["spaCy"]["x"] == "960.0"


def test_stacks_are_lines_with_microseconds():
    assert folded(PROFILE).splitlines() == [
        "encoder;spacy_psa.a 2", "encoder;spacy_psa.a;spacy_psa.b.<lambda> 6", "spaCy 2",
    ]  # fmt: skip


def test_annotation_is_profiled_in_all_its_runs(trained):
    found = profile_annotation(trained, [text.split() for text in TEXTS], repeats=2)
    assert found.amount == 2 * sum(len(text.split()) for text in TEXTS) and found.unit == "word"
    assert found.total > 0 and "test_profile" not in folded(found)


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


def test_a_component_without_a_model_has_no_room():
    nlp = spacy.blank("en")
    nlp.add_pipe("lemmatizer", config={"mode": "rule"})
    with Rooms(nlp).marked():
        assert nlp.get_pipe("lemmatizer").model is None


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
