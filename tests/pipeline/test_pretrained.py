"""Components over `Pretrained.v1`: saved, shared, in several processes, on long documents."""

import resource
import shutil

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc
from thinc.api import Adam

from spacy_psa.errors import InputError
from spacy_psa.training.model_folders import ModelFolders
from tests.helpers.encoders import pretrained, write_encoder
from tests.helpers.pipelines import TEXTS, make_examples, small_encoder

WIDTH = 16
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": WIDTH, "upstream": "tok2vec"}
WEIGHTS = "encoder.safetensors"


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("bert"))


def tok2vec(folder, **settings):
    embed = pretrained(folder, **settings)
    return {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": small_encoder()}


def make(folder, **settings):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": tok2vec(folder, **settings)}
    nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    train(nlp, 3)
    return nlp


def train(nlp, steps):
    nlp.initialize(lambda: make_examples(nlp))
    for _ in range(steps):
        nlp.update(make_examples(nlp), sgd=Adam(0.001))


@pytest.fixture(scope="module")
def trained(bert):
    return make(bert, layers=2)


def marginals(nlp):
    """The probabilities of a text of two sentences, from the folder or bytes."""
    return nlp.get_pipe("ner").marginals(nlp(f"{TEXTS[0]} {TEXTS[1]}"))


@pytest.mark.parametrize(
    "settings", [{}, {"frozen": True}, {"layers": [[0], [1, 2]], "project": 5}]
)
def test_a_saved_pipeline_has_its_encoder_once_and_needs_no_other_folder(tmp_path, settings):
    source = write_encoder(tmp_path / "source")
    nlp = make(source, **settings)
    shutil.rmtree(source)
    nlp.to_disk(tmp_path / "model")
    nlp.to_disk(tmp_path / "model")
    size = (tmp_path / "model" / "ner" / WEIGHTS).stat().st_size
    assert len(list(tmp_path.rglob("*.safetensors"))) == 1
    assert (tmp_path / "model" / "ner" / "model").stat().st_size < len(nlp.to_bytes()) - size
    modes = {path.stat().st_mode for path in (tmp_path / "model" / "ner").iterdir()}
    assert len(modes) == 1  # all can be read by the same users
    expected = marginals(nlp)
    assert numpy.array_equal(marginals(spacy.load(tmp_path / "model")), expected)
    again = spacy.blank("en", config=nlp.config).from_bytes(nlp.to_bytes())
    assert numpy.array_equal(marginals(again), expected)


@pytest.mark.parametrize("damage", ["missing", "changed", "another"])
def test_weights_of_an_encoder_that_do_not_fit_are_an_error(bert, trained, tmp_path, damage):
    trained.to_disk(tmp_path / "model")
    path = tmp_path / "model" / "ner" / WEIGHTS
    if damage == "another":
        shutil.copy(bert / "model.safetensors", path)
    else:
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        if damage == "missing":
            path.unlink()
    with pytest.raises(InputError, match=rf"{WEIGHTS}: .*: copy the model again|{WEIGHTS}: .*copy"):
        spacy.load(tmp_path / "model")


def test_a_model_without_its_folder_says_where_its_encoder_is(trained, tmp_path):
    trained.to_disk(tmp_path / "model")
    data = (tmp_path / "model" / "ner" / "model").read_bytes()
    with pytest.raises(InputError, match=f"are in {WEIGHTS}, next to the model"):
        make_model = spacy.load(tmp_path / "model").get_pipe("ner").model
        make_model.from_bytes(data)


def test_an_encoder_for_which_the_disk_has_no_room_is_the_error_of_any_file(tmp_path):
    nlp, out = make(write_encoder(tmp_path / "source", hidden_size=128)), tmp_path / "out"
    out.mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, limits[1]))
    try:
        with pytest.raises(InputError, match=r"cannot be written \(File too large\)"):
            ModelFolders(out).save(nlp, is_best=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(out.iterdir())


def test_members_of_an_ensemble_with_the_same_frozen_encoder_save_it_once(bert, tmp_path):
    member = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": tok2vec(bert, frozen=True)}
    model = {"@architectures": "spacy-psa.Ensemble.v1", "*": {"a": member, "b": member}}
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path / "model")
    assert [path.name for path in tmp_path.rglob("*.safetensors")] == [WEIGHTS]
    assert numpy.array_equal(marginals(spacy.load(tmp_path / "model")), marginals(nlp))


def test_processes_annotate_as_one_does(trained):
    texts = [*TEXTS, "", " ".join(TEXTS)] * 2
    one, two = ([doc.to_json() for doc in trained.pipe(texts, n_process=n)] for n in (1, 2))
    assert one == two


def test_components_share_an_encoder(bert):
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": pretrained(bert)})
    chain = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": LISTENER}
    nlp.add_pipe("crf_ner", name="first", config={"model": chain})
    nlp.add_pipe("crf_ner", name="second", config={"model": chain})
    nlp.add_pipe("ner", name="spacys", config={"model": {"tok2vec": LISTENER}})
    train(nlp, 0)
    [shim] = nlp.get_pipe("tok2vec").model.shims
    before = shim.module.net.embeddings.word_embeddings.weight.detach().clone()
    optimizer = Adam(0.003)
    losses = [nlp.update(make_examples(nlp), sgd=optimizer) for _ in range(40)]
    assert not torch.equal(shim.module.net.embeddings.word_embeddings.weight, before)
    for name in ("first", "second", "spacys"):
        assert losses[-1][name] < losses[0][name] / 2
    again = spacy.blank("en", config=nlp.config).from_bytes(nlp.to_bytes())
    docs = [[(e.text, e.label_) for e in each(TEXTS[0]).ents] for each in (nlp, again)]
    assert docs[0] == docs[1]
    nlp.replace_listeners("tok2vec", "first", ["model.tok2vec"])
    doc = nlp(f"{TEXTS[0]} {TEXTS[1]}")
    assert nlp.get_pipe("first").marginals(doc).shape[0] == len(doc)


def test_a_listener_of_another_width_is_an_error(bert):
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": pretrained(bert)})
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": {**LISTENER, "width": 8}}
    nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    with pytest.raises(InputError, match="have width 16, but it was made for 8: set `width`"):
        train(nlp, 1)


@pytest.mark.parametrize(
    "upstream, after, before", [("encoder", "tok2vec", "tok2vec"), ("*", None, "none")]
)
def test_a_listener_without_a_component_to_listen_to_is_an_error(bert, upstream, after, before):
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": pretrained(bert)})
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": {**LISTENER, "upstream": upstream}}
    place = {"after": after} if after else {"first": True}
    nlp.add_pipe("crf_ner", name="ner", config={"model": model}, **place)
    with pytest.raises(InputError, match=r"ner: its tok2vec-listener .* finds no") as error:
        train(nlp, 0)
    assert f"(upstream = {upstream!r})" in str(error.value)
    assert f"before it in the pipeline ({before})" in str(error.value)


def test_a_frozen_component_that_a_training_does_not_ask_for_vectors_is_an_error(bert):
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": pretrained(bert)})
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": LISTENER}
    nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    train(nlp, 0)
    frozen = {"sgd": Adam(0.001), "exclude": ["tok2vec"]}
    with pytest.raises(InputError, match=r"ner: it listens to tok2vec, .*annotating_components"):
        nlp.update(make_examples(nlp), **frozen)
    assert nlp.update(make_examples(nlp), **frozen, annotates=["tok2vec"])["ner"] > 0


def test_a_document_of_many_words(trained):
    """Its vectors are those of its words in the same surroundings."""
    vocab, words = trained.vocab, TEXTS[0].split() * 12_500
    docs = [Doc(vocab, words=words), Doc(vocab, words=words[:2000])]
    embed = trained.get_pipe("ner").model.get_ref("tok2vec").get_ref("embed")
    long, short = embed.predict(docs)
    assert long.shape == (100_000, WIDTH) and numpy.isfinite(long).all()
    numpy.testing.assert_allclose(long[:50], short[:50], atol=1e-4)
