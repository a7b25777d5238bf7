"""`crf_tagger` and `crf_chunker`, alone and beside `crf_ner`."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_psa.errors import InputError

SENTENCES = [
    ("Ann saw the old dog", "NNP VBD DT JJ NN", [(0, 1, "NP"), (1, 2, "VP"), (2, 5, "NP")]),
    ("dogs bark", "NNS VBP", [(0, 1, "NP"), (1, 2, "VP")]),
    ("the cat sleeps in Bath", "DT NN VBZ IN NNP",
     [(0, 2, "NP"), (2, 3, "VP"), (3, 4, "PP"), (4, 5, "NP")]),
    ("Run !", "VB .", [(0, 1, "VP")]),
]  # fmt: skip


def make_doc(vocab, text, tags, chunks):
    doc = Doc(vocab, words=text.split(), tags=tags.split())
    doc.spans["chunks"] = [Span(doc, start, end, label) for start, end, label in chunks]
    doc.ents = [Span(doc, t.i, t.i + 1, "NAME") for t in doc if t.text in ("Ann", "Bath")]
    return doc


def small_model(head="transition"):
    embed = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 12, "rows": 100}
    encode = {"@architectures": "spacy-psa.BiLSTM.v1", "hidden": 12, "input_dropout": 0.0,
              "output_dropout": 0.0}  # fmt: skip
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    if head == "softmax":
        return {"@architectures": "spacy-psa.Softmax.v1", "tok2vec": tok2vec}
    return {"@architectures": "spacy-psa.CRF.v1", "potentials": head, "tok2vec": tok2vec}


def train(nlp, steps=60):
    examples = [
        Example(Doc(nlp.vocab, words=text.split()), make_doc(nlp.vocab, text, tags, chunks))
        for text, tags, chunks in SENTENCES
    ]
    spacy.util.fix_random_seed(0)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)
    return examples


@pytest.mark.parametrize("head", ["transition", "label_pair", "softmax"])
def test_a_tagger_learns_its_tags(head):
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_tagger", config={"model": small_model(head)})
    examples = train(nlp)
    assert nlp.evaluate(examples)["tag_acc"] == 1.0


def test_a_tagger_that_does_not_overwrite_keeps_tags_and_fits_the_rest():
    nlp = spacy.blank("en")
    config = {"model": small_model(), "overwrite": False}
    tagger = nlp.add_pipe("crf_tagger", config=config)
    train(nlp)
    doc = Doc(nlp.vocab, words=["the", "cat", "sleeps"], tags=["", "NNS", ""])
    assert [token.tag_ for token in tagger(doc)][1] == "NNS"
    assert all(token.tag_ in tagger.labels for token in doc)


def test_tokens_without_a_tag_are_summed_out():
    nlp = spacy.blank("en")
    tagger = nlp.add_pipe("crf_tagger", config={"model": small_model()})
    train(nlp, steps=1)
    words = ["the", "cat"]
    bare = Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words))
    potentials = tagger.model.predict([bare.predicted])
    loss, gradient = tagger.get_loss([bare], potentials)
    assert loss == pytest.approx(0, abs=1e-6)
    assert abs(gradient[0]).max() < 1e-6


def test_a_tag_unseen_at_initialization_is_an_error():
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_tagger", config={"model": small_model()})
    train(nlp, steps=1)
    words = ["odd"]
    with pytest.raises(InputError, match="'XX'"):
        nlp.update([Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, tags=["XX"]))])


@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
def test_a_chunker_learns_its_chunks(scheme):
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_chunker", config={"model": small_model(), "scheme": scheme})
    examples = train(nlp)
    scores = nlp.evaluate(examples)
    assert scores["chunks_f"] == 1.0
    assert set(scores["chunks_per_type"]) == {"NP", "VP", "PP"}


def test_chunk_scores_count_exact_labelled_spans():
    nlp = spacy.blank("en")
    chunker = nlp.add_pipe("crf_chunker", config={"model": small_model()})
    train(nlp, steps=1)
    text, tags, chunks = SENTENCES[0]
    reference = make_doc(nlp.vocab, text, tags, chunks)
    wrong = make_doc(nlp.vocab, text, tags, [(0, 1, "NP"), (1, 2, "NP"), (2, 4, "NP")])
    scores = chunker.score([Example(wrong, reference)])
    assert (scores["chunks_p"], scores["chunks_r"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


def test_docs_without_chunks_are_not_learned_from():
    nlp = spacy.blank("en")
    chunker = nlp.add_pipe("crf_chunker", config={"model": small_model()})
    train(nlp, steps=1)
    bare = Example(Doc(nlp.vocab, words=["dogs"]), Doc(nlp.vocab, words=["dogs"]))
    loss, _ = chunker.get_loss([bare], chunker.model.predict([bare.predicted]))
    assert loss == pytest.approx(0, abs=1e-6)


def test_annotation_survives_disk_and_docbin(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_tagger", config={"model": small_model()})
    nlp.add_pipe("crf_chunker", config={"model": small_model()})
    train(nlp)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    doc = loaded(Doc(loaded.vocab, words=["the", "cat", "sleeps"]))
    assert [token.tag_ for token in doc] == ["DT", "NN", "VBZ"]
    data = DocBin(docs=[doc]).to_bytes()
    (back,) = DocBin().from_bytes(data).get_docs(loaded.vocab)
    assert [(s.start, s.end, s.label_) for s in back.spans["chunks"]] == [
        (0, 2, "NP"),
        (2, 3, "VP"),
    ]


def test_three_components_train_over_one_shared_encoder():
    nlp = spacy.blank("en")
    shared = small_model()["tok2vec"]
    nlp.add_pipe("tok2vec", config={"model": shared})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 24, "upstream": "*"}
    head = {"@architectures": "spacy-psa.CRF.v1", "potentials": "transition", "tok2vec": listener}
    for name in ("crf_tagger", "crf_chunker", "crf_ner"):
        nlp.add_pipe(name, config={"model": head})
    examples = train(nlp, steps=120)
    scores = nlp.evaluate(examples)
    assert (scores["tag_acc"], scores["chunks_f"], scores["ents_f"]) == (1.0, 1.0, 1.0)


def test_spacys_attribute_ruler_and_lemmatizer_follow_the_tagger():
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_tagger", config={"model": small_model()})
    train(nlp)
    ruler = nlp.add_pipe("attribute_ruler")
    ruler.add([[{"TAG": "NNS"}]], {"POS": "NOUN", "MORPH": "Number=Plur"})
    doc = nlp(Doc(nlp.vocab, words=["dogs", "bark"]))
    assert doc[0].pos_ == "NOUN" and doc[0].morph.get("Number") == ["Plur"]


@pytest.mark.parametrize("name", ["crf_tagger", "crf_chunker"])
def test_empty_and_one_token_docs(name):
    nlp = spacy.blank("en")
    nlp.add_pipe(name, config={"model": small_model()})
    train(nlp, steps=1)
    docs = [Doc(nlp.vocab), Doc(nlp.vocab, words=["Run"]), Doc(nlp.vocab, words=[" "])]
    assert [len(doc) for doc in nlp.pipe(docs)] == [0, 1, 1]


@pytest.mark.parametrize("name", ["crf_tagger", "crf_chunker"])
def test_not_initialized(name):
    nlp = spacy.blank("en")
    nlp.add_pipe(name, config={"model": small_model()})
    with pytest.raises(ValueError, match="initialize"):
        nlp("dogs bark")
