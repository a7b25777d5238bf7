"""A CRF over contextual vectors: spacy-transformers' and spaCy's own tok2vec, from the configs."""

import warnings

import numpy
import pytest
import spacy
import torch
from spacy.cli.train import train
from spacy.ml.models.tok2vec import build_Tok2Vec_model as tok2vec
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config, registry
from spacy.vocab import Vocab
from thinc.api import Model

from spacy_psa.architectures.crf import crf
from tests.helpers.paths import CONFIGS
from tests.helpers.pipelines import TEXTS, make_examples

SMALL = {
    "training.max_steps": 40,
    "training.eval_frequency": 20,
    "training.batcher.size": 16,
    "training.dropout": 0.0,
    "training.optimizer.rates": {"pretrained": 1.0, "*": 1.0},
    "training.optimizer.learn_rate.max_rate": 0.02,
    "training.optimizer.learn_rate.total_steps": 80,
}
TOK2VEC = {
    "components.tok2vec.model.encode.width": 16,
    "components.tok2vec.model.embed.width": 16,
    "components.tok2vec.model.embed.rows": [200, 200, 200, 200],
    "components.tok2vec.model.encode.depth": 1,
    "training.max_steps": 40,
    "training.eval_frequency": 20,
    "training.optimizer.learn_rate.max_rate": 0.02,
    "training.optimizer.learn_rate.total_steps": 80,
}


@pytest.fixture(scope="module", autouse=True)
def quiet():
    """transformers and spacy-transformers warn of what they themselves do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A folder with a BERT of random weights and a tokenizer of some pieces of words."""
    transformers = pytest.importorskip("transformers", reason="needs the extra `transformers`")
    pytest.importorskip("spacy_transformers", reason="needs the extra `transformers`")
    folder = tmp_path_factory.mktemp("bert")
    words = sorted({word for text in TEXTS for word in text.split()})
    whole = [word for word in words if not word.endswith("ace")]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Love", "##lace", *whole]
    (folder / "vocab.txt").write_text("\n".join(pieces))
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=False)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=160,
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A file of documents, of one sentence and of two."""
    docs = [example.reference for example in make_examples(spacy.blank("en"))] * 4
    docs += [Doc.from_docs(docs[i : i + 2]) for i in (0, 2, 6)]
    for doc in docs:
        starts = {0} | {i for i, token in enumerate(doc) if i and doc[i - 1].text == "."}
        for i, token in enumerate(doc):
            token.is_sent_start = i in starts
    path = tmp_path_factory.mktemp("corpus") / "all.spacy"
    DocBin(docs=docs).to_disk(path)
    return path


def overrides(corpus, **more):
    return {"paths.train": str(corpus), "paths.dev": str(corpus), **more}


def trained(name, corpus, folder, **more):
    """The pipeline before and after `spacy train`, the second from its folder."""
    settings = overrides(corpus, **more)
    before = init_nlp(
        load_config(CONFIGS / "ner" / f"{name}.cfg", overrides=settings, interpolate=False)
    )
    train(CONFIGS / "ner" / f"{name}.cfg", folder, overrides=settings)
    return before, spacy.load(folder / "model-last")


def weights(model):
    """All weights of a model, torch's and thinc's."""
    found = [node.get_param(n) for node in model.walk() for n in node.param_names]
    for node in model.walk():
        for shim in node.shims:
            # The pooler is no part of what spacy-transformers reads.
            named = shim._model.named_parameters()
            found += [p.detach().numpy().copy() for name, p in named if "pooler" not in name]
    return found


@pytest.fixture(scope="module")
def pipelines(bert, corpus, tmp_path_factory):
    settings = {**SMALL, "components.transformer.model.name": str(bert)}
    return trained("transformer_crf", corpus, tmp_path_factory.mktemp("bert"), **settings)


def gold(nlp, corpus):
    return list(DocBin().from_disk(corpus).get_docs(nlp.vocab))


def test_training_over_a_transformer_learns(pipelines, corpus):
    _, nlp = pipelines
    assert nlp.meta["performance"]["ents_f"] > 0.6
    examples = [Example(nlp(Doc(d.vocab, [t.text for t in d])), d) for d in gold(nlp, corpus)]
    assert nlp.evaluate(examples)["ents_f"] > 0.4  # each document one sentence here


def test_gradients_reach_the_transformer(pipelines):
    before, after = pipelines
    old, new = (weights(nlp.get_pipe("transformer").model) for nlp in (before, after))
    assert len(old) > 10
    # All but the bias of keys, which softmax does not see.
    assert sum(numpy.abs(a - b).max() > 1e-4 for a, b in zip(old, new, strict=True)) >= len(old) - 1


def test_sentences_are_told_apart_over_a_transformer(pipelines, corpus):
    """Documents of several sentences, one without tokens, and one of a blank between others."""
    _, nlp = pipelines
    docs = [doc.copy() for doc in gold(nlp, corpus)[-3:]]
    bounds = [[(sent.start, sent.end) for sent in doc.sents] for doc in docs]
    assert max(map(len, bounds)) == 2
    for doc in docs:
        doc.set_ents([], default="missing")
    blank = Doc(nlp.vocab, words=["\n", "Ada"], spaces=[False, False])
    stream = [docs[0], Doc(nlp.vocab), docs[1], blank, docs[2]]
    assert list(nlp.pipe(stream)) == stream
    assert all(doc.has_annotation("ENT_IOB") for doc in stream if len(doc))
    chain = nlp.get_pipe("ner").distribution(docs)
    assert chain.lengths.tolist() == [end - start for found in bounds for start, end in found]
    for doc, found in zip(docs, bounds, strict=True):
        for ent in doc.ents:
            assert any(start <= ent.start and ent.end <= end for start, end in found)
    alone = [
        nlp(Doc(nlp.vocab, [t.text for t in doc], sent_starts=[t.is_sent_start for t in doc]))
        for doc in docs
    ]
    assert [list(map(str, doc.ents)) for doc in alone] == [list(map(str, d.ents)) for d in docs]


class Fed(Model):
    """As a listener: gives whole docs the vectors that it was fed."""

    upstream_name = "fed"

    def __init__(self, rows):
        def forward(model, docs, is_train):
            return rows, lambda d_rows: d_rows

        super().__init__("fed", forward, dims={"nO": rows[0].shape[1]})


@pytest.mark.parametrize("encoder", ["PSABiLSTM", "TENER"])
def test_an_encoder_over_a_listener_sees_one_sentence(encoder):
    options = {"hidden": 4} if encoder == "PSABiLSTM" else {"heads": 2, "head_width": 4}
    rng = numpy.random.default_rng(0)
    rows = rng.normal(size=(7, 6)).astype("float32")
    starts = [True, False, False, True, False, False, False]
    doc = Doc(Vocab(), words=list("abcdefg"), sent_starts=starts)

    def model(arrays):
        encode = {"@architectures": f"spacy-psa.{encoder}.v1", **options}
        built = crf(tok2vec(Fed(arrays), registry.resolve({"encode": encode})["encode"]))
        built.set_dim("nO", 3)
        torch.manual_seed(0)
        built.initialize(X=[doc])
        return built

    first, second = model([rows]).predict([doc])
    other = rows.copy()
    other[:3] = 0
    assert (len(first), len(second)) == (3, 4)
    changed, same = model([other]).predict([doc])
    numpy.testing.assert_allclose(same, second, atol=1e-6)
    assert numpy.abs(changed - first).max() > 1e-3


def test_gradients_of_a_listener_s_sentences_are_put_together():
    rows = [numpy.ones((3, 4), dtype="float32"), numpy.ones((2, 4), dtype="float32")]
    docs = [
        Doc(Vocab(), words=list("abc"), sent_starts=[True, False, True]),
        Doc(Vocab(), words=list("de")),
    ]
    encode = registry.resolve({"encode": {"@architectures": "spacy-psa.BiLSTM.v1", "hidden": 3}})
    model = crf(tok2vec(Fed(rows), encode["encode"]))
    model.set_dim("nO", 2)
    model.initialize(X=docs)
    potentials, backprop = model.begin_update(docs)
    assert [len(array) for array in potentials] == [2, 1, 2]
    assert [array.shape for array in backprop(potentials)] == [(3, 4), (2, 4)]


def test_training_over_spacys_tok2vec_learns_and_reaches_it(corpus, tmp_path):
    before, after = trained("tok2vec_crf", corpus, tmp_path, **TOK2VEC)
    assert after.meta["performance"]["ents_f"] > 0.8
    old, new = (weights(nlp.get_pipe("tok2vec").model) for nlp in (before, after))
    assert all(numpy.abs(a - b).max() > 1e-4 for a, b in zip(old, new, strict=True))
    doc = gold(after, corpus)[-3].copy()
    doc.set_ents([], default="missing")
    assert after(doc).ents


def test_a_model_of_a_config_continues_in_python(corpus, tmp_path):
    """Variables in a config would not be filled in there."""
    _, nlp = trained("tok2vec_crf", corpus, tmp_path, **{**TOK2VEC, "training.max_steps": 1})
    nlp.replace_listeners("tok2vec", "ner", ["model.tok2vec"])
    examples = make_examples(nlp)
    losses = nlp.update(examples, sgd=nlp.resume_training())
    assert losses["ner"] > 0
    nlp.to_disk(tmp_path / "own")
    assert spacy.load(tmp_path / "own").pipe_names == nlp.pipe_names


def over(bert, factory, model, **settings):
    """A component that listens to a transformer of random weights."""
    nlp = spacy.blank("en")
    transformer = {
        "@architectures": "spacy-transformers.TransformerModel.v3",
        "name": str(bert),
        "get_spans": {
            "@span_getters": "spacy-transformers.strided_spans.v1",
            "window": 128,
            "stride": 96,
        },
    }
    nlp.add_pipe("transformer", config={"model": transformer})
    listener = {
        "@architectures": "spacy-transformers.TransformerListener.v1",
        "grad_factor": 1.0,
        "pooling": {"@layers": "reduce_mean.v1"},
    }
    config = {"model": {**model, "tok2vec": listener}, **settings}
    nlp.add_pipe(factory, name="ours", config=config)
    return nlp


@pytest.mark.parametrize("factory", ["crf_ner", "crf_tagger", "constituency_parser"])
def test_batches_of_empty_docs_alone_are_annotated_over_a_transformer(bert, factory):
    architecture = "ChartParser" if factory == "constituency_parser" else "CRF"
    nlp = over(bert, factory, {"@architectures": f"spacy-psa.{architecture}.v1"})
    examples = make_examples(nlp)
    for example in examples:
        for token in example.reference:
            token.tag_ = "X"
        span = Span(example.reference, 0, len(example.reference), "S")
        example.reference.spans["constituents"] = [span]
    nlp.initialize(lambda: examples)
    for texts in ([""], ["", ""], ["", "Ada left", ""]):
        assert [doc.text for doc in nlp.pipe(texts)] == texts
    assert nlp("").text == ""
    if hasattr(nlp.get_pipe("ours"), "kbest"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert not any(nlp.get_pipe("ours").kbest(nlp.make_doc(""), 2)[0][1:])
