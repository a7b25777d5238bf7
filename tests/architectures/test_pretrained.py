"""`Pretrained.v1`, over encoders of random weights."""

import copy
import json
import logging
import shutil
import sys
from functools import partial

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc
from thinc.api import Model

from spacy_psa.architectures.embed import word_embed
from spacy_psa.architectures.sum_embed import concat_embed
from spacy_psa.errors import InputError

transformers = pytest.importorskip("transformers", reason="needs the extra `pretrained`")

from safetensors.torch import load_file  # noqa: E402
from tokenizers.pre_tokenizers import ByteLevel  # noqa: E402

from spacy_psa.architectures.pretrained import pretrained  # noqa: E402
from tests.helpers.encoders import KINDS, WITHOUT_DROPOUT, write_encoder  # noqa: E402

TEXT = "Ada Lovelace met Bob-by, in London -- the Royal Society's ."


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """The folder of an encoder of each kind."""
    return {
        kind: str(write_encoder(tmp_path_factory.mktemp(kind), kind, max_position_embeddings=66))
        for kind in KINDS
    }


@pytest.fixture(scope="module")
def bert(encoders):
    return encoders["bert"]


@pytest.fixture
def doc():
    return spacy.blank("en")(TEXT)


def make(name, docs, **settings):
    settings = {"window": 60, "context": 8, "precision": "float32", **settings}
    return pretrained(name, **settings).initialize(X=docs)


def by_transformers(folder, words, layer=-1, first=False):
    """The vectors of words by Hugging Face's own pass."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if isinstance(tokenizer.backend_tokenizer.pre_tokenizer, ByteLevel):
        # Transformers 4 has a setting for it.
        tokenizer.backend_tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=True)
    net = transformers.AutoModel.from_pretrained(folder).eval()
    batch = tokenizer([words], is_split_into_words=True, return_tensors="pt")
    places = batch.word_ids(0)
    with torch.no_grad():
        output = net(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            output_hidden_states=True,
        )
    vectors = (output.last_hidden_state if layer == -1 else output.hidden_states[layer])[0]
    own = [[i for i, place in enumerate(places) if place == w] for w in range(len(words))]
    return torch.stack([vectors[w[:1] if first else w].mean(0) for w in own]).numpy()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_vectors_of_a_doc_in_one_window_are_those_of_transformers(encoders, kind, pooling, doc):
    [vectors] = make(encoders[kind], [doc], pooling=pooling).predict([doc])
    expected = by_transformers(encoders[kind], [t.text for t in doc], first=pooling == "first")
    assert vectors.dtype == "float32"
    numpy.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_an_encoder_without_a_longest_input_has_windows_of_any_size(bert, doc, tmp_path):
    folder = tmp_path / "encoder"
    shutil.copytree(bert, folder)
    sizes = {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16}
    transformers.XLNetModel(transformers.XLNetConfig(300, **sizes)).save_pretrained(folder)
    [vectors] = make(str(folder), [doc], window=1000).predict([doc])
    expected = by_transformers(folder, [token.text for token in doc])
    numpy.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_docs_of_all_sizes(encoders, kind, doc):
    """Docs without tokens, with one, with line breaks, with long words and with many words."""
    vocab = doc.vocab
    words = [
        [],
        ["Ada"],
        ["\n", " ", "Ada", "\u200b"],
        ["x" * 5000, "London"],
        [t.text for t in doc] * 30,
    ]
    docs = [Doc(vocab, words=each) for each in words]
    model = make(encoders[kind], docs)
    vectors = model.predict(docs)
    assert [array.shape for array in vectors] == [(len(d), 16) for d in docs]
    assert all(numpy.isfinite(array).all() for array in vectors)
    numpy.testing.assert_allclose(vectors[1], model.predict(docs[1:2])[0], atol=1e-5)
    assert [array.shape for array in model.predict(docs[:1])] == [(0, 16)]


def test_a_word_without_wordpieces_has_zeros(bert, doc):
    docs = [Doc(doc.vocab, words=["\n"]), Doc(doc.vocab, words=["Ada", " ", "met"])]
    alone, between = make(bert, docs).predict(docs)
    assert not alone.any() and not between[1].any() and between[0].any() and between[2].any()


@pytest.mark.parametrize(
    "layers, means", [(2, [[-1, -2]]), ([0, 1], [[0, 1]]), ([[2], [0, 1]],) * 2]
)
def test_layers_are_mixed_with_equal_weights_at_first(bert, doc, layers, means):
    [vectors] = make(bert, [doc], layers=layers).predict([doc])
    words = [token.text for token in doc]
    every = [[by_transformers(bert, words, layer) for layer in mean] for mean in means]
    expected = numpy.concatenate([sum(mean) / len(mean) for mean in every], axis=1)
    numpy.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_docs_of_one_document_are_read_together(bert, doc):
    halves = [doc[:5].as_doc(), doc[5:].as_doc()]
    model = make(bert, [doc])
    apart = model.predict(halves)
    for half in halves:
        half.user_data["document"] = "a"
    together = numpy.concatenate(model.predict(halves))
    numpy.testing.assert_allclose(together, model.predict([doc])[0], atol=1e-5)
    assert abs(together - numpy.concatenate(apart)).max() > 0.01


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_gradients_reach_the_encoder_unless_it_is_frozen(bert, doc, frozen, layers):
    embed = concat_embed(
        word_embed(width=4), pretrained(bert, layers, window=60, context=8, frozen=frozen)
    )
    embed.initialize(X=[doc])
    vectors, backprop = embed.begin_update([doc])
    # A gradient of ones is none: the encoder ends with layer normalization.
    backprop([numpy.arange(array.size, dtype="f").reshape(array.shape) for array in vectors])
    modules = {node.name: node.shims[0].module for node in embed.walk() if node.shims}
    grads = [p.grad for p in modules["pretrained"].parameters()]
    assert any(g is not None and g.any() for g in grads) != frozen
    assert modules["pretrained"].net.training != frozen
    if layers == 2:
        assert modules["layer_mix"].weights[0].grad.any()


def test_saved_model_needs_no_source(bert, doc, tmp_path):
    model = make(bert, [doc], layers=2)
    model.to_disk(tmp_path / "model")
    elsewhere = partial(pretrained, "/nowhere", 2, window=60, context=8, precision="float32")
    for again in (
        elsewhere().from_disk(tmp_path / "model"),
        elsewhere().from_bytes(model.to_bytes()),
        copy.deepcopy(model),
        model.copy(),
    ):
        assert isinstance(again, Model)
        assert numpy.array_equal(again.predict([doc])[0], model.predict([doc])[0])
        assert again.to_bytes() == model.to_bytes()


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"window": 0}, "window is 0"),
        ({"context": 30}, "context is 30: it must be less than half of window, 60"),
        ({"layers": 0}, "layers is 0"),
        ({"layers": []}, r"layers is \[\]"),
        ({"project": 0}, "project is 0"),
        ({"pooling": "max"}, "pooling is 'max'"),
        ({"precision": "half"}, "precision is 'half'"),
        ({"cache": "here"}, "a cache needs frozen = true"),
        ({"frozen": True, "lora_rank": 2}, "lora_rank needs frozen = false"),
        ({"cache_gb": -1.0}, "cache_gb is -1.0"),
        ({"window": 65}, "window is 65: the encoder reads 64 wordpieces"),
        ({"layers": [3]}, "layers is 3: the encoder has the layers 0 to 2"),
        ({"layers": 9}, "layers is -9"),
    ],
)
def test_bad_settings(bert, doc, settings, message):
    with pytest.raises(InputError, match=f"Pretrained.v1: {message}"):
        make(bert, [doc], **settings)


def gradients(folder, docs, **settings):
    """The gradients of the encoder's weights, by name."""
    model = make(folder, docs, **settings)
    vectors, backprop = model.begin_update(docs)
    backprop([array * 0 + numpy.arange(16, dtype="float32") for array in vectors])
    module = model.shims[0].module
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """An encoder without dropout."""
    return str(write_encoder(tmp_path_factory.mktemp("calm"), **WITHOUT_DROPOUT))


def test_gradients_are_the_same_with_checkpoints_and_in_other_groups(calm, doc):
    docs = [doc, doc[:3].as_doc(), doc[2:].as_doc()]
    expected = gradients(calm, docs)
    for settings in ({"gradient_checkpointing": True}, {"batch_pieces": 1}):
        again = gradients(calm, docs, **settings)
        assert again.keys() == expected.keys()
        for name in expected:
            torch.testing.assert_close(again[name], expected[name], rtol=1e-4, atol=1e-5)


def test_checkpoints_draw_the_same_dropout_again(bert, doc):
    def trained(seed, checkpoints):
        model = make(bert, [doc], gradient_checkpointing=checkpoints)
        torch.manual_seed(seed)
        vectors, backprop = model.begin_update([doc])
        backprop([array * 0 + numpy.arange(16, dtype="float32") for array in vectors])
        return {name: p.grad for name, p in model.shims[0].module.named_parameters()}

    expected, again, other = trained(0, False), trained(0, True), trained(1, False)
    assert again.keys() == expected.keys()
    weights = [name for name in expected if expected[name] is not None]
    for name in weights:
        torch.testing.assert_close(again[name], expected[name], rtol=1e-4, atol=1e-5)
    assert any(not torch.allclose(other[name], expected[name]) for name in weights)


def test_low_rank_updates_are_trained_in_place_of_the_weights(calm, doc):
    pytest.importorskip("peft", reason="needs the extra `lora`")
    model = make(calm, [doc], lora_rank=2)
    numpy.testing.assert_allclose(model.predict([doc])[0], make(calm, [doc]).predict([doc])[0])
    trained = gradients(calm, [doc], lora_rank=2, gradient_checkpointing=True)
    assert trained and all("lora_" in name for name in trained)
    again = pretrained("/nowhere", lora_rank=2, precision="float32").from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()


def test_bfloat16_is_near_float32(bert, doc):
    near = make(bert, [doc], precision="bfloat16").predict([doc])[0]
    exact = make(bert, [doc]).predict([doc])[0]
    assert near.dtype == "float32"
    assert 0 < abs(near - exact).max() < 0.1


@pytest.mark.parametrize("module, settings", [("transformers", {}), ("peft", {"lora_rank": 2})])
def test_a_library_that_is_not_installed_is_named(bert, doc, monkeypatch, module, settings):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"needs {module}: pip install 'spacy-psa\["):
        make(bert, [doc], **settings)


class TestFolders:
    """Encoders that cannot be read."""

    @pytest.mark.parametrize(
        "removed, message",
        [
            ("config.json", "it has no config.json"),
            ("tokenizer*", "its tokenizer cannot be read"),
            ("model.safetensors", "it has no weights in model.safetensors"),
        ],
    )
    def test_a_part_is_missing(self, bert, doc, tmp_path, removed, message):
        shutil.copytree(bert, tmp_path / "encoder")
        for path in (tmp_path / "encoder").glob(removed):
            path.unlink()
        with pytest.raises(InputError, match=rf"encoder '.*': {message}.*; use a folder with"):
            make(str(tmp_path / "encoder"), [doc])

    def test_weights_that_can_run_code_are_refused(self, bert, doc, tmp_path):
        shutil.copytree(bert, tmp_path / "encoder")
        weights = tmp_path / "encoder" / "model.safetensors"
        torch.save(load_file(weights), tmp_path / "encoder" / "pytorch_model.bin")
        weights.unlink()
        with pytest.raises(InputError, match="it has no weights"):
            make(str(tmp_path / "encoder"), [doc])

    def test_an_adapter_is_refused(self, bert, doc, tmp_path):
        peft = pytest.importorskip("peft", reason="needs the extra `lora`")
        net = transformers.AutoModel.from_pretrained(bert)
        adapter = peft.get_peft_model(net, peft.LoraConfig(target_modules="all-linear"))
        adapter.save_pretrained(tmp_path / "alone")
        shutil.copytree(bert, tmp_path / "with")
        adapter.save_pretrained(tmp_path / "with")
        for name in ("alone", "with"):
            with pytest.raises(InputError, match=r"it has an adapter .*: merge it with"):
                make(str(tmp_path / name), [doc])

    def test_code_of_the_encoder_is_not_run(self, bert, doc, tmp_path):
        folder = tmp_path / "encoder"
        shutil.copytree(bert, folder)
        config = json.loads((folder / "config.json").read_text())
        config |= {
            "model_type": "new",
            "auto_map": {"AutoModel": "code.Net", "AutoConfig": "code.C"},
        }
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "code.py").write_text("raise SystemExit('the code is run')")
        with pytest.raises(InputError, match=r"no code for its model_type, .new., .* never run"):
            make(str(folder), [doc])

    def test_weights_of_another_encoder(self, bert, doc, tmp_path):
        folder = tmp_path / "encoder"
        shutil.copytree(bert, folder)
        config = json.loads((folder / "config.json").read_text())
        for change, message in (
            ({"hidden_size": 24}, "its weights are damaged, or do not fit its config"),
            ({"num_hidden_layers": 3}, "its weights lack"),
        ):
            (folder / "config.json").write_text(json.dumps(config | change))
            with pytest.raises(InputError, match=f"encoder .*: {message}"):
                make(str(folder), [doc])

    def test_a_tokenizer_of_another_encoder(self, bert, doc, tmp_path):
        folder = tmp_path / "encoder"
        shutil.copytree(bert, folder)
        config = transformers.AutoConfig.from_pretrained(folder, vocab_size=50)
        transformers.AutoModel.from_config(config).save_pretrained(folder)
        with pytest.raises(InputError, match=r"its tokenizer is that of another: .*, not 50; use"):
            make(str(folder), [doc])

    def test_a_slow_tokenizer(self, bert, doc, monkeypatch):
        slow = type("Slow", (), {"is_fast": False})()
        read = transformers.AutoTokenizer
        monkeypatch.setattr(read, "from_pretrained", lambda *args, **settings: slow)
        with pytest.raises(InputError, match="only has a slow tokenizer"):
            make(bert, [doc])

    def test_no_network(self, doc, monkeypatch):
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(InputError, match=r"encoder 'nobody/nothing': .*name and the network"):
            make("nobody/nothing", [doc])

    def test_retries_of_the_hub_are_not_reported(self, doc, monkeypatch, caplog):
        hub = logging.getLogger("huggingface_hub.utils._http")
        monkeypatch.setattr(logging.getLogger("huggingface_hub"), "propagate", True)

        def fail(name):
            hub.warning("Retrying in 1s [Retry 1/5].")
            raise OSError("no connection")

        monkeypatch.setattr(transformers.PretrainedConfig, "get_config_dict", fail)
        with pytest.raises(InputError, match=r"its config cannot be read .no connection."):
            make("nobody/nothing", [doc])
        assert caplog.messages == []
        hub.warning("after it")
        assert caplog.messages == ["after it"]

    def test_an_encoder_with_a_decoder(self, doc, tmp_path):
        transformers.T5Config(d_model=8, num_layers=1).save_pretrained(tmp_path)
        with pytest.raises(InputError, match="t5 is not an encoder of text"):
            make(str(tmp_path), [doc])

    def test_an_encoder_that_reads_something_else(self, bert, doc, tmp_path):
        folder = tmp_path / "encoder"
        shutil.copytree(bert, folder)
        sizes = {"hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 8}
        transformers.FNetModel(transformers.FNetConfig(300, **sizes)).save_pretrained(folder)
        with pytest.raises(InputError, match="fnet does not turn wordpieces and a mask into"):
            make(str(folder), [doc])

    def test_weights_of_another_width_in_a_saved_model(self, bert, doc):
        model = make(bert, [doc])
        other = make(bert, [doc])
        other.shims[0].cfg["config"] |= {"hidden_size": 24}
        with pytest.raises(InputError, match="weights do not fit PretrainedEncoder"):
            model.from_bytes(other.to_bytes())
        assert model.predict([doc])[0].shape == (len(doc), 16)


def test_words_without_wordpieces_train_nothing_and_are_no_error(bert, doc):
    model = make(bert, [doc])
    blank = Doc(doc.vocab, words=["\n", " "])
    (vectors,), backprop = model.begin_update([blank])
    assert not vectors.any()
    assert backprop([vectors + 1]) == []
    (vectors,), backprop = model.begin_update([doc])
    assert vectors.any()
