"""What every labelling component does, shown on `crf_ner`."""

import itertools

import numpy
import pytest
import torch
from spacy.tokens import Doc
from thinc.api import Adam

from spacy_psa.sentences import sentence_bounds

HEADS = ["label_pair", "transition", "softmax"]


def marked_docs(nlp, lines):
    return [Doc(nlp.vocab, words=line.split()) for line in lines]


# Before initialization, and where there is nothing to label


def test_not_initialized(tools):
    nlp = tools.make_nlp()
    ner = nlp.get_pipe("ner")
    doc = nlp.make_doc("Ada met Evans")
    for use in (lambda: nlp(doc.text), lambda: ner.predict([doc]), lambda: ner.distribution([doc])):
        with pytest.raises(ValueError, match="initialize"):
            use()
    with pytest.raises(ValueError):
        nlp.update(tools.make_examples(nlp), sgd=Adam(0.01))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("words", [[], ["Bath"], [" "], ["\n\n"], [" ", "Bath", "\n"]])
def test_docs_of_no_token_one_token_or_blanks_are_annotated(tools, head, words):
    nlp = tools.random_nlp(head=head)
    doc = nlp.get_pipe("ner")(Doc(nlp.vocab, words=words))
    assert len(doc) == len(words) and doc.has_annotation("ENT_IOB", require_complete=True)


def test_empty_docs_in_a_batch_leave_the_others_as_they_are(tools, trained):
    ner = trained.get_pipe("ner")
    docs = marked_docs(trained, ["", tools.texts[0], "", "", tools.texts[5], ""])
    got = [tools.entities(doc) for doc in ner.pipe(docs)]
    alone = [tools.entities(trained(text)) for text in (tools.texts[0], tools.texts[5])]
    assert got == [[], alone[0], [], [], alone[1], []] and all(alone)


def test_update_takes_empty_docs(tools):
    nlp = tools.make_nlp()
    examples = tools.make_examples(nlp, ["", *tools.marked[:3], ""])
    history = tools.train(nlp, 5, Adam(0.01), examples)
    assert history[-1] < history[0]
    before = nlp.to_bytes()
    assert nlp.update(tools.make_examples(nlp, ["", ""]), sgd=Adam(0.1)) == {"ner": 0.0}
    assert nlp.to_bytes() == before
    assert nlp.update([], sgd=Adam(0.1)) == {}


def test_distribution_without_tokens_is_an_error(trained):
    with pytest.raises(ValueError, match="no token"):
        trained.get_pipe("ner").distribution([trained.make_doc("")])


# Distributions and predictions


@pytest.mark.parametrize("head", HEADS)
def test_marginals_sum_to_one_and_the_best_sequence_is_predicted(tools, head):
    nlp = tools.random_nlp(head=head)
    ner = nlp.get_pipe("ner")
    docs = marked_docs(nlp, ["", *tools.texts])
    chain = ner.distribution(docs)
    filled = [doc for doc in docs if len(doc)]
    assert chain.lengths.tolist() == [len(doc) for doc in filled]
    sums = chain.marginals.sum(-1)
    predicted = [tags for tags in ner.predict(docs) if len(tags)]
    for row, (doc, tags) in enumerate(zip(filled, predicted, strict=True)):
        torch.testing.assert_close(sums[row, : len(doc)], torch.ones(len(doc)))
        assert not sums[row, len(doc) :].any()
        assert chain.argmax[row, : len(doc)].tolist() == tags.tolist()


@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
@pytest.mark.parametrize("head", HEADS)
def test_predictions_of_random_weights_are_legal(tools, head, scheme):
    rng = numpy.random.default_rng(0)
    nlp = tools.make_nlp(tools.small_model(head), scheme=scheme)
    tools.train(nlp, steps=0)
    ner = nlp.get_pipe("ner")
    words = [word for text in tools.texts for word in text.split()]
    sizes = rng.integers(1, 25, 20)
    docs = [Doc(nlp.vocab, words=rng.choice(words, size).tolist()) for size in sizes]
    moves, start, end = ner.legal()
    seen = set()
    for _ in range(8):
        for node in ner.model.walk():
            for shim in node.shims:
                for parameter in shim.module.parameters():
                    parameter.data.normal_()
        for tags in ner.predict(docs):
            assert start[tags[0]] and end[tags[-1]]
            assert all(moves[a, b] for a, b in itertools.pairwise(tags))
            seen |= set(tags.tolist())
    assert len(seen) > len(ner.tags) // 2


def test_prediction_does_not_depend_on_the_batch(tools):
    nlp = tools.random_nlp()
    ner = nlp.get_pipe("ner")
    rng = numpy.random.default_rng(1)
    words = [word for text in tools.texts for word in text.split()]
    docs = [
        Doc(nlp.vocab, words=rng.choice(words, n).tolist()) for n in [*rng.integers(0, 40, 30), 150]
    ]
    alone = [ner.predict([doc])[0].tolist() for doc in docs]
    for budget in (1, 60, 4000):
        ner.batch_tokens = budget
        assert [tags.tolist() for tags in ner.predict(docs)] == alone


def test_long_docs_do_not_pad_short_ones(tools, monkeypatch):
    nlp = tools.random_nlp()
    ner = nlp.get_pipe("ner")
    ner.batch_tokens = 50
    given = []
    potentials = ner._potentials

    def spy(docs):
        given.append([len(doc) for doc in docs])
        return potentials(docs)

    monkeypatch.setattr(ner, "_potentials", spy)
    sizes = [3, 80, 0, 20, 4, 19, 5]
    ner.predict([Doc(nlp.vocab, words=["a"] * n) for n in sizes])
    assert sorted(n for batch in given for n in batch) == [3, 4, 5, 19, 20, 80]
    assert all(len(batch) == 1 or len(batch) * max(batch) <= 50 for batch in given)
    assert len(given) == 3


def test_pipe_keeps_the_order_of_docs(tools, trained):
    texts = [tools.texts[i % 8] * (1 + i % 3) for i in range(40)]
    docs = list(trained.pipe(texts, batch_size=7))
    assert [doc.text for doc in docs] == texts
    assert [tools.entities(doc) for doc in docs] == [tools.entities(trained(t)) for t in texts]


def test_long_doc_without_sentence_boundaries_is_annotated(tools, trained):
    words = tools.texts[0].split()
    doc = trained.get_pipe("ner")(Doc(trained.vocab, words=words * 430))
    assert len(doc) > 3000 and len(doc.ents) > 430


def test_sentence_boundaries_bound_the_analysis(tools):
    nlp = tools.random_nlp()
    ner = nlp.get_pipe("ner")
    parts = [text.split() for text in tools.texts]
    starts = [i == 0 for part in parts for i in range(len(part))]
    words = [word for part in parts for word in part]
    joined = Doc(nlp.vocab, words=words, sent_starts=starts)
    apart = [Doc(nlp.vocab, words=part) for part in parts]
    assert sentence_bounds(joined) == [(s.start, s.end) for s in joined.sents]
    expected = numpy.concatenate(ner.predict(apart))
    assert ner.predict([joined])[0].tolist() == expected.tolist()
    torch.testing.assert_close(
        ner.distribution([joined]).marginals, ner.distribution(apart).marginals
    )
    unbounded = ner.predict([Doc(nlp.vocab, words=words)])[0]
    assert unbounded.tolist() != expected.tolist()


def test_sentences_of_a_doc_keep_what_embedders_read(trained):
    words = ["Ada", "ran", ".", "She", "won", "."]
    doc = Doc(
        trained.vocab,
        words=words,
        spaces=[True, False, True, True, False, False],
        tags=["NNP", "VBD", ".", "PRP", "VBD", "."],
        pos=["PROPN", "VERB", "PUNCT", "PRON", "VERB", "PUNCT"],
        morphs=["Number=Sing", "Tense=Past", "", "Number=Sing", "Tense=Past", ""],
        lemmas=["Ada", "run", ".", "she", "win", "."],
        sent_starts=[True, False, False, True, False, False],
    )
    doc[0].norm_ = "ada lovelace"
    attributes = ["ORTH", "NORM", "SPACY", "TAG", "POS", "MORPH", "LEMMA"]
    parts = sentences([doc, doc[:3].as_doc()])
    assert [part.text.strip() for part in parts] == ["Ada ran.", "She won.", "Ada ran."]
    whole = numpy.concatenate([part.to_array(attributes) for part in parts[:2]])
    assert (whole == doc.to_array(attributes)).all()


def test_sentence_boundaries_serve_embedders_of_spacy(tools):
    characters = {"@architectures": "spacy.CharacterEmbed.v2", "width": 8, "nM": 4, "nC": 4}
    for embed in (tools.hash_embed(), {**characters, "rows": 50, "include_static_vectors": False}):
        nlp = tools.make_nlp(tools.small_model(embed=embed))
        tools.train(nlp, 3, Adam(0.01))
        ner = nlp.get_pipe("ner")
        apart = marked_docs(nlp, tools.texts[:3])
        joined = Doc.from_docs(apart, ensure_whitespace=False)
        for i in range(1, len(joined)):
            joined[i].is_sent_start = i in (len(apart[0]), len(apart[0]) + len(apart[1]))
        torch.testing.assert_close(
            ner.distribution([joined]).marginals, ner.distribution(apart).marginals
        )


# Errors in a stream


def test_only_the_doc_that_fails_goes_to_the_error_handler(tools, trained, monkeypatch):
    ner = trained.get_pipe("ner")
    known_tags = ner.known_tags

    def fail_on_leeds(doc, bounds):
        if doc[0].text == "Leeds":
            raise RuntimeError("bad doc")
        return known_tags(doc, bounds)

    monkeypatch.setattr(ner, "known_tags", fail_on_leeds)
    with pytest.raises(RuntimeError, match="bad doc"):
        list(trained.pipe(tools.texts))
    failed = []
    trained.set_error_handler(lambda name, pipe, docs, error: failed.append((name, docs, error)))
    got = [(doc.text, tools.entities(doc)) for doc in trained.pipe(tools.texts, batch_size=3)]
    ((name, (doc,), error),) = failed
    assert (name, doc.text, str(error)) == ("ner", tools.texts[4], "bad doc")
    monkeypatch.undo()
    good = [text for text in tools.texts if text != doc.text]
    assert got == [(text, tools.entities(trained(text))) for text in good]


SEVERAL_PROCESSES = """
import json, sys
import spacy, torch
path, *texts = sys.argv[1:]
torch.set_num_threads(2)
nlp = spacy.load(path)
before = [len(doc.ents) for doc in nlp.pipe(texts * 5)]
x = torch.randn(400, 400)
(x @ x).sum()  # the parent has used its threads
after = [len(doc.ents) for doc in nlp.pipe(texts * 5, n_process=2, batch_size=4)]
print(json.dumps([before, after, torch.get_num_threads()]))
"""


def test_several_processes_annotate_with_threads_on(tools, trained_path):
    before, after, threads = tools.run_elsewhere(
        SEVERAL_PROCESSES, trained_path, *tools.texts, OMP_NUM_THREADS="2"
    )
    assert after == before and sum(after) > 50
    assert threads == 2
