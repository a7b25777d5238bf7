"""Saving and loading of every labelling component, shown on `crf_ner`."""

import io
import pickle

import pytest
import spacy
import srsly
import torch
from spacy.tokens import Doc, DocBin
from thinc.api import Adam

from spacy_psa.errors import InputError
from spacy_psa.training.optimizers import sgd
from tests.helpers.pipelines import (
    LOAD_AND_ANNOTATE,
    TEXTS,
    annotate,
    hash_embed,
    make_examples,
    make_nlp,
    small_encoder,
    small_model,
    spans_of,
    train,
)
from tests.helpers.processes import run_elsewhere
from tests.helpers.tasks import make_task_nlp, task_model, train_tasks


def test_a_new_process_gives_the_same_entities_and_marginals(trained, trained_path):
    got = run_elsewhere(LOAD_AND_ANNOTATE, trained_path, *TEXTS)
    assert got == annotate(trained, TEXTS)
    assert sum(map(len, got["entities"])) > 10


def test_bytes_load_before_initialize_and_give_the_same(trained):
    again = make_nlp().from_bytes(trained.to_bytes())
    assert again.get_pipe("ner").labels == trained.get_pipe("ner").labels
    assert annotate(again, TEXTS) == annotate(trained, TEXTS)
    assert again.to_bytes() == trained.to_bytes()


def test_pickle_gives_the_same(trained):
    again = pickle.loads(pickle.dumps(trained))
    assert annotate(again, TEXTS) == annotate(trained, TEXTS)


def test_copied_model_gives_the_same_and_is_its_own(trained):
    expected = annotate(trained, TEXTS)
    ner = trained.get_pipe("ner")
    original, ner.model = ner.model, ner.model.copy()
    assert annotate(trained, TEXTS) == expected
    trained.update(make_examples(trained), sgd=sgd(0.5))
    assert annotate(trained, TEXTS) != expected
    ner.model = original
    assert annotate(trained, TEXTS) == expected


def test_component_that_was_never_initialized_is_saved_and_loaded(tmp_path):
    nlp = make_nlp()
    nlp.to_disk(tmp_path / "model")
    again = make_nlp().from_disk(tmp_path / "model")
    assert train(again, 3, Adam(0.02))[-1] > 0


def test_loaded_pipeline_trains_on(trained):
    again = make_nlp().from_bytes(trained.to_bytes())
    optimizer = again.resume_training(sgd=sgd(0.05))
    examples = make_examples(again, ["[Mary|PER] left [Acme|ORG] ."])
    losses = [again.update(examples, sgd=optimizer)["ner"] for _ in range(15)]
    assert losses[-1] < losses[0]


def damaged(kind, trained):
    """The bytes of a component that cannot be loaded."""
    data = trained.get_pipe("ner").to_bytes()
    if kind == "truncated":
        return data[: len(data) // 2]
    if kind == "truncated weights":
        message = srsly.msgpack_loads(data)
        message["model"] = message["model"][: len(message["model"]) // 2]
        return srsly.msgpack_dumps(message)
    if kind == "truncated module":
        message = srsly.msgpack_loads(data)
        model = srsly.msgpack_loads(message["model"])
        model["shims"] = [[shim[: len(shim) // 2] for shim in shims] for shims in model["shims"]]
        message["model"] = srsly.msgpack_dumps(model)
        return srsly.msgpack_dumps(message)
    if kind == "labels of another model":
        message = srsly.msgpack_loads(data)
        message["cfg"] = srsly.json_dumps({"labels": ["PER"]})
        return srsly.msgpack_dumps(message)
    models = {
        "another encoder": small_model(encoder=small_encoder("BiLSTM")),
        "another head": small_model("transition"),
        "another head of emissions": small_model("softmax"),
        "another embedder": small_model(embed=hash_embed()),
        "another size": small_model(encoder=small_encoder(hidden=12)),
    }
    nlp = make_nlp(models[kind])
    train(nlp, steps=0)
    return nlp.get_pipe("ner").to_bytes()


DAMAGES = [
    "truncated",
    "truncated weights",
    "truncated module",
    "labels of another model",
    "another encoder",
    "another head",
    "another head of emissions",
    "another embedder",
    "another size",
]


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_or_foreign_weights_are_one_error_and_change_nothing(trained, kind):
    data = damaged(kind, trained)
    ner = trained.get_pipe("ner")
    expected = annotate(trained, TEXTS)
    with pytest.raises(InputError, match="'ner' cannot be loaded") as caught:
        ner.from_bytes(data)
    assert "\n" not in str(caught.value)
    assert annotate(trained, TEXTS) == expected

    blank = make_nlp()
    before = blank.get_pipe("ner").model.to_bytes()
    with pytest.raises(InputError, match="'ner' cannot be loaded"):
        blank.get_pipe("ner").from_bytes(data)
    assert blank.get_pipe("ner").model.to_bytes() == before
    assert not blank.get_pipe("ner").labels
    train(blank, 2, Adam(0.01))  # it can still be initialized
    assert len(blank("Ada left Bath")) == 3


def test_settings_of_a_component_that_cannot_be_loaded_are_not_set():
    saved, ner = (make_nlp().get_pipe("ner") for _ in range(2))
    saved.decode = "mbr"
    saved.cfg["temperature"] = -1
    with pytest.raises(InputError, match=r"'ner' cannot be loaded: .* temperature is -1"):
        ner.from_bytes(saved.to_bytes())
    assert ner.decode == "viterbi"


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_folder_with_truncated_weights_does_not_load(trained, tmp_path, share):
    trained.to_disk(tmp_path / "model")
    path = tmp_path / "model" / "ner" / "model"
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match="'ner' cannot be loaded"):
        spacy.load(tmp_path / "model")


def test_folder_without_weights_does_not_load(trained, tmp_path):
    trained.to_disk(tmp_path / "model")
    (tmp_path / "model" / "ner" / "model").unlink()
    with pytest.raises(OSError, match="model"):
        spacy.load(tmp_path / "model")


def test_a_folder_that_is_not_there_is_an_error_that_names_it_and_changes_nothing(
    trained, tmp_path
):
    expected = annotate(trained, TEXTS)
    with pytest.raises(FileNotFoundError, match=r"'ner' cannot be loaded: .* no folder .*nowhere"):
        trained.get_pipe("ner").from_disk(tmp_path / "nowhere")
    assert annotate(trained, TEXTS) == expected
    with pytest.raises(OSError, match=r"\[E052\]"):
        spacy.load(tmp_path / "nowhere")


def test_code_in_a_weights_file_is_not_run(trained, tmp_path):
    """Weights are data: a pickle that calls something is refused."""

    class Evil:
        def __reduce__(self):
            return (tmp_path.joinpath("ran").touch, ())

    buffer = io.BytesIO()
    torch.save({"make": "PSABiLSTM", "arguments": {}, "state": Evil()}, buffer)
    data = srsly.msgpack_loads(trained.get_pipe("ner").to_bytes())
    model = srsly.msgpack_loads(data["model"])
    model["shims"] = [[buffer.getvalue() for _ in shims] for shims in model["shims"]]
    data["model"] = srsly.msgpack_dumps(model)
    with pytest.raises(InputError, match="cannot be read"):
        trained.get_pipe("ner").from_bytes(srsly.msgpack_dumps(data))
    assert not (tmp_path / "ran").exists()


def test_tags_and_chunks_survive_disk_and_docbin(tmp_path):
    nlp = make_task_nlp("crf_tagger")
    nlp.add_pipe("crf_chunker", config={"model": task_model()})
    train_tasks(nlp)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    doc = loaded(Doc(loaded.vocab, words=["the", "cat", "sleeps"]))
    assert [token.tag_ for token in doc] == ["DT", "NN", "VBZ"]
    data = DocBin(docs=[doc]).to_bytes()
    (back,) = DocBin().from_bytes(data).get_docs(loaded.vocab)
    assert spans_of(back.spans["chunks"]) == [(0, 2, "NP"), (2, 3, "VP")]
