"""A component that learns from what another one says."""

import numpy
import pytest
import torch
from spacy.tokens import Doc
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.pipeline.distillation import Teacher, learn_from, taught
from tests.helpers.pipelines import (
    MARKED,
    TEXTS,
    hash_embed,
    make_examples,
    make_nlp,
    randomize,
    small_encoder,
    small_model,
    train,
)


def made(model=None, seed=1, **settings):
    nlp = make_nlp(model, **settings)
    train(nlp, steps=0)
    randomize(nlp.get_pipe("ner"), seed)
    return nlp


def told_by(teacher, docs):
    """The distributions of a teacher."""
    return taught(teacher, docs)


def without_annotation(nlp, texts=TEXTS):
    docs = [nlp.make_doc(text) for text in texts]
    return [Example(doc, doc.copy()) for doc in docs]


def distance(told, said):
    """How far the marginals of two pipelines are from each other."""
    total = 0.0
    for text in TEXTS:
        one, other = (
            nlp.get_pipe("ner").distribution([nlp.make_doc(text)]).marginals for nlp in (told, said)
        )
        total += float((one - other).abs().mean())
    return total


@pytest.mark.parametrize(
    ("teaches", "learns"),
    [("label_pair", "transition"), ("softmax", "label_pair"), ("label_pair", "softmax")],
)
def test_the_loss_is_that_of_the_annotation_and_that_of_all_analyses(teaches, learns):
    teacher, nlp = made(small_model(teaches), seed=1), made(small_model(learns), seed=2)
    ner = nlp.get_pipe("ner")
    examples = make_examples(nlp, ["[Ada|PER] left", "He left [Bath|LOC]"])
    plain = ner.update(examples)["ner"]
    learn_from(ner, Teacher(teacher, "ner"), weight=0.25)
    loss = ner.update(examples)["ner"]
    docs = [eg.predicted for eg in examples]
    told, expected = teacher.get_pipe("ner").distribution(docs), 0.0
    flat = torch.from_numpy(numpy.concatenate(ner.model.predict(docs)))
    said = ner._chain(flat, told.lengths, legal=learns != "softmax")
    for row in range(2):
        one = torch.tensor([row])
        for log_prob, tags in told.select(one).kbest(13**3)[0]:
            expected -= numpy.exp(log_prob) * float(said.select(one).log_prob([tags])) / 2
    assert loss == pytest.approx(0.75 * plain + 0.25 * expected, rel=1e-3)


@pytest.mark.parametrize("learns", ["label_pair", "transition"])
def test_a_student_comes_to_say_what_the_teacher_says_without_annotation(learns):
    teacher = make_nlp()
    train(teacher, 25)
    model = small_model(learns, encoder=small_encoder("BiLSTM"), embed=hash_embed())
    nlp = made(model, seed=3)
    before = distance(teacher, nlp)
    learn_from(nlp.get_pipe("ner"), Teacher(teacher, "ner"))
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.02
    for _ in range(40):
        nlp.update(without_annotation(nlp), sgd=optimizer)
    assert distance(teacher, nlp) < 0.3 * before


def test_the_gradient_is_that_of_the_loss():
    teacher, nlp = made(seed=1), made(seed=2)
    ner = nlp.get_pipe("ner")
    learn_from(ner, Teacher(teacher, "ner"), weight=1.0)
    examples = without_annotation(nlp, TEXTS[:3])
    module = ner.model.get_ref("head").shims[0].module
    ner.update(examples)
    weights = next(module.parameters())
    gradient = weights.grad.clone()
    step = 1e-2 * gradient / gradient.norm()
    losses = []
    for sign in (1, -1):
        with torch.no_grad():
            weights += sign * step
        losses.append(ner.update(examples)["ner"])
        with torch.no_grad():
            weights -= sign * step
    change = (losses[0] - losses[1]) / 2
    assert change == pytest.approx(float((gradient * step).sum()), rel=1e-2)


def test_a_teacher_reads_its_own_vectors_and_what_stands_before_it():
    teacher = made(seed=1)
    for word in ("Ada", "left"):
        teacher.vocab.set_vector(word, numpy.ones(8, dtype="float32"))
    doc = made(seed=2).make_doc("Ada left . He left .")
    teacher.add_pipe("sentencizer", first=True)
    told = told_by(Teacher(teacher, "ner"), [doc])
    own = teacher.make_doc(doc.text)
    teacher.get_pipe("sentencizer")(own)
    expected = teacher.get_pipe("ner").distribution([own])
    assert told.lengths.tolist() == [3, 3]
    torch.testing.assert_close(told.marginals, expected.marginals)


def counted(teacher):
    """The numbers of docs that the model of a teacher gets, call by call."""
    model, calls = teacher.pipe.model, []
    predict = model._func
    model._func = lambda model, docs, is_train: (
        calls.append(len(docs)) or predict(model, docs, is_train)
    )
    return calls


@pytest.mark.parametrize("potentials", ["label_pair", "transition"])
def test_a_teacher_with_a_cache_scores_each_doc_once_and_says_the_same(potentials):
    nlp = made(small_model(potentials), seed=1)
    nlp.add_pipe("sentencizer", first=True)
    plain, teacher = Teacher(nlp, "ner"), Teacher(nlp, "ner", cache_gb=0.01)
    calls = counted(teacher)
    docs = [nlp.make_doc(text) for text in [*TEXTS, "Ada left. He left."]]
    batches = [docs, docs[1:][::-1], [docs[2], nlp.make_doc("Eve went"), docs[0]]]
    found = [told_by(teacher, batch) for batch in batches]
    assert calls == [len(docs), 1]
    for chain, batch in zip(found, batches):
        expected = told_by(plain, batch)
        assert chain.lengths.tolist() == expected.lengths.tolist()
        torch.testing.assert_close(chain.marginals, expected.marginals)


def test_docs_of_other_sentences_and_docs_that_do_not_fit_are_scored_again():
    nlp = made(seed=1)
    words = ["Ada", "met", "Bob", "."]
    one, two = (
        Doc(nlp.vocab, words=words, sent_starts=starts)
        for starts in ([True, False, False, False], [True, False, True, False])
    )
    teacher = Teacher(nlp, "ner", cache_gb=0.01)
    calls = counted(teacher)
    assert told_by(teacher, [one]).lengths.tolist() == [4]
    assert told_by(teacher, [two]).lengths.tolist() == [2, 2]
    assert told_by(teacher, [one]).lengths.tolist() == [4]
    assert calls == [1, 1]
    (array,) = nlp.get_pipe("ner").model.predict([one])
    small = Teacher(nlp, "ner", cache_gb=1.5 * array.nbytes / 1e9)
    calls = counted(small)
    for doc in (one, two, one, two):
        told_by(small, [doc])
    assert calls == [1, 1, 1]  # the first doc fits


def test_sentences_that_name_their_document_are_not_kept_by_a_teacher_that_sees_documents():
    for sees, expected in ((True, [1, 2, 1]), (False, [1, 1])):
        model = small_model()
        if sees:
            model["tok2vec"] = {
                "@architectures": "spacy-psa.DocumentMemory.v1",
                "width": 4,
                "tok2vec": model["tok2vec"],
            }
        nlp = made(model, seed=1)
        teacher = Teacher(nlp, "ner", cache_gb=0.01)
        calls = counted(teacher)
        docs = [nlp.make_doc(text) for text in ("Ada left", "Bob met Ada")]
        for doc in docs:
            doc.user_data["document"] = "one"
        alone = told_by(teacher, docs[:1]).marginals
        together = told_by(teacher, docs).marginals[0, :2]
        told_by(teacher, docs[:1])
        assert calls == expected
        assert torch.allclose(alone[0], together, atol=1e-6) is not sees


def test_other_sentences_other_labels_and_wrong_weights_are_errors():
    teacher, nlp = made(), made()
    ner = nlp.get_pipe("ner")
    with pytest.raises(InputError, match=r"weight is 1\.5: it must be a number from 0 to 1"):
        learn_from(ner, Teacher(teacher, "ner"), weight=1.5)
    with pytest.raises(InputError, match="no component 'x' of spacy-psa"):
        Teacher(teacher, "x")
    with pytest.raises(InputError, match=r"cache_gb is -1: it must be 0 or more"):
        Teacher(teacher, "ner", cache_gb=-1)
    other = made(scheme="BIO")
    with pytest.raises(InputError, match=r"tags O, B-.*: set the scheme of the teacher"):
        learn_from(ner, Teacher(other, "ner"))
    new = make_nlp()
    new.get_pipe("ner").add_label("NEW")
    train(new, steps=0)
    with pytest.raises(InputError, match=r"labels NEW, .*initialize\.components\.ner\.labels"):
        learn_from(ner, Teacher(new, "ner"))
    teacher.add_pipe("sentencizer", first=True)
    learn_from(ner, Teacher(teacher, "ner"))
    with pytest.raises(InputError, match="other sentences than the student"):
        ner.update(without_annotation(nlp, ["Ada left . He left ."]))


def test_a_teacher_of_another_kind_is_an_error():
    """Although it has the same labels."""
    nlp = made()
    ner, spans = nlp.get_pipe("ner"), nlp.add_pipe("crf_spans")
    for label in ner.labels:
        spans.add_label(label)
    for student, name in ((ner, "crf_spans"), (spans, "ner")):
        with pytest.raises(InputError, match="the teacher is another kind of component"):
            learn_from(student, Teacher(nlp, name))


def test_docs_without_tokens_pass_and_the_teacher_is_not_saved():
    teacher, nlp = made(seed=1), made(seed=2)
    before = nlp.to_bytes()
    ner = nlp.get_pipe("ner")
    learn_from(ner, Teacher(teacher, "ner"))
    assert nlp.to_bytes() == before
    losses = ner.update([*without_annotation(nlp, ["", "Ada left"]), *make_examples(nlp, MARKED)])
    assert losses["ner"] > 0
    assert ner.update(without_annotation(nlp, [""]))["ner"] == 0
    learn_from(ner, None)
    assert ner.update(without_annotation(nlp, ["Ada left"]))["ner"] == pytest.approx(0, abs=1e-5)
