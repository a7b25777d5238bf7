"""`crf_chunker`: chunks, their scores, and chunks that stand on a doc."""

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import Adam

from spacy_psa.errors import InputError
from spacy_psa.laboratory.analyses.counted_scores import counted_scores
from spacy_psa.pipeline.chain.chunker import ChunkStore
from tests.helpers.analyses import agrees, enumerate_doc
from tests.helpers.pipelines import TEXTS, make_chunk_examples, small_model, spans_of
from tests.helpers.tasks import SENTENCES, make_task_nlp, task_doc, train_tasks

WORDS = ["Ada", "met", "Evans", "in", "Bath"]


@pytest.fixture
def chunker():
    """A pipeline that has begun to learn, and its component."""
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("crf_chunker", config={"model": small_model()})
    examples = make_chunk_examples(nlp)
    nlp.initialize(lambda: examples)
    for _ in range(3):
        nlp.update(examples, sgd=Adam(0.05))
    return nlp, pipe


# Learning and scores


@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
def test_chunks_are_learnt_by_heart(scheme):
    nlp = make_task_nlp("crf_chunker", scheme=scheme)
    examples = train_tasks(nlp)
    scores = nlp.evaluate(examples)
    assert scores["chunks_f"] == 1.0
    assert set(scores["chunks_per_type"]) == {"NP", "VP", "PP"}


def test_docs_without_chunks_are_not_learned_from():
    nlp = make_task_nlp("crf_chunker")
    train_tasks(nlp, steps=1)
    chunker = nlp.get_pipe("crf_chunker")
    bare = Example(Doc(nlp.vocab, words=["dogs"]), Doc(nlp.vocab, words=["dogs"]))
    loss, _ = chunker.get_loss([bare], chunker.model.predict([bare.predicted]))
    assert loss == pytest.approx(0, abs=1e-6)


def test_tokens_of_chunks_that_end_inside_of_them_are_not_annotated():
    vocab = spacy.blank("en").vocab
    words, spaces = ["New", "York", "-", "based", "firm"], [True, False, False, True, False]
    reference = Doc(vocab, words=words, spaces=spaces)
    reference.spans["chunks"] = [Span(reference, 0, 2, "NP"), Span(reference, 4, 5, "NP")]
    predicted = Doc(vocab, words=["New", "York-based", "firm"], spaces=[True, True, False])
    spans, missing = ChunkStore().gold("chunker", Example(predicted, reference))
    assert spans == [(2, 3, "NP")] and missing.tolist() == [True, True, False]


def test_chunk_scores_count_exact_labelled_spans():
    nlp = make_task_nlp("crf_chunker")
    train_tasks(nlp, steps=1)
    text, tags, chunks = SENTENCES[0]
    reference = task_doc(nlp.vocab, text, tags, chunks)
    wrong = task_doc(nlp.vocab, text, tags, [(0, 1, "NP"), (1, 2, "NP"), (2, 4, "NP")])
    scores = nlp.get_pipe("crf_chunker").score([Example(wrong, reference)])
    assert (scores["chunks_p"], scores["chunks_r"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


def test_the_scorer_reads_the_span_group_of_the_component():
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("crf_chunker", config={"model": small_model(), "spans_key": "phrases"})
    examples = make_chunk_examples(nlp, "phrases")
    nlp.initialize(lambda: examples)
    gold = [Example(example.reference, example.reference) for example in examples]
    assert pipe.score(gold)["chunks_f"] == 1.0
    (count, *_) = counted_scores(nlp)["chunks_f"](gold)
    assert count == (2 + 1, 2 + 1, 2 + 1)
    named = {"@scorers": "spacy-psa.chunk_scorer.v1", "spans_key": "chunks"}
    other = nlp.add_pipe("crf_chunker", name="other", config={"scorer": named})
    assert other.score(gold)["chunks_f"] is None


# Confidences


def test_confidences_are_written_beside_the_chunks():
    nlp = spacy.blank("en")
    config = {"model": small_model(), "confidence": True}
    chunker = nlp.add_pipe("crf_chunker", config=config)
    nlp.initialize(lambda: make_chunk_examples(nlp))
    doc = nlp(TEXTS[0])
    group = doc.spans["crf_chunker"]
    assert spans_of(group) == spans_of(doc.spans["chunks"]) != []
    posteriors = chunker.posterior(doc.spans["chunks"])
    assert posteriors == pytest.approx(group.attrs["scores"], abs=1e-6)
    assert "scores" not in doc.spans["chunks"].attrs


def test_spans_above_a_threshold_leave_the_chunks_alone():
    nlp = spacy.blank("en")
    config = {"model": small_model(), "decode": "threshold", "threshold": 0.001}
    chunker = nlp.add_pipe("crf_chunker", name="many", config=config)
    examples = make_chunk_examples(nlp)
    nlp.initialize(lambda: examples)
    doc = nlp(TEXTS[0])
    assert len(doc.spans["many"]) > len(doc) and "chunks" not in doc.spans
    for example in examples:
        example.predicted = nlp(example.predicted.text)
    figures = chunker.score(examples)
    assert figures["spans_many_r"] > figures["spans_many_p"] > 0 and "chunks_f" in figures


@pytest.mark.parametrize("overwrite", [False, True])
def test_spans_above_a_threshold_may_not_take_the_place_of_the_chunks(overwrite):
    nlp = spacy.blank("en")
    config = {"model": small_model(), "decode": "threshold", "overwrite": overwrite}
    message = r"^chunks: decode is 'threshold', .*doc\.spans\[\"chunks\"\]: .* another name"
    with pytest.raises(InputError, match=message):
        nlp.add_pipe("crf_chunker", name="chunks", config=config)
    with pytest.raises(InputError, match=r"^phrases: "):
        config["spans_key"] = "phrases"
        nlp.add_pipe("crf_chunker", name="phrases", config=config)
    assert nlp.add_pipe("crf_chunker", name="chunks", config=config).store.spans_key == "phrases"


@pytest.mark.parametrize("settings", [{"confidence": True}, {"decode": "mbr"}, {}])
def test_a_chunker_named_like_its_chunks_keeps_the_evidence(settings):
    groups = []
    for name in ("chunks", "other"):
        nlp = spacy.blank("en")
        pipe = nlp.add_pipe("crf_chunker", name=name, config={"model": small_model(), **settings})
        fix_random_seed(0)
        nlp.initialize(lambda nlp=nlp: make_chunk_examples(nlp))
        doc = Doc(nlp.vocab, words=WORDS)
        doc.spans["chunks"] = [Span(doc, 1, 3, "ORG"), Span(doc, 3, 4, "UNKNOWN")]
        for _ in range(2):
            pipe(doc)
            assert spans_of(pipe._held(doc)[0]) == [(1, 3, "ORG"), (3, 4, "UNKNOWN")]
            groups.append(spans_of(doc.spans["chunks"]))
    assert len(set(map(tuple, groups))) == 1


# Evidence


def test_chunks_on_a_doc_are_evidence(chunker):
    nlp, pipe = chunker
    doc = Doc(nlp.vocab, words=WORDS)
    truth = enumerate_doc(pipe, doc).where(agrees([(1, 3, "ORG")], []))
    doc.spans["chunks"] = [Span(doc, 1, 3, "ORG")]
    pipe(doc)
    chunks = tuple(spans_of(doc.spans["chunks"]))
    assert chunks == truth.best and (1, 3, "ORG") in chunks
    pipe.overwrite = True
    pipe(doc)
    assert (1, 3, "ORG") not in spans_of(doc.spans["chunks"])


BAD = {
    "overlapping": ([(0, 3, "PER"), (2, 5, "ORG")], r"'Ada met Evans' \(PER\) and 'Evans in Bath'"),
    "nested": ([(0, 5, "PER"), (2, 3, "ORG")], r"'Ada met Evans in Bath' \(PER\) and 'Evans'"),
    "one span with two labels": ([(0, 1, "PER"), (0, 1, "ORG")], r"'Ada' \(.*\) and 'Ada' \("),
    "empty": ([(0, 1, "PER"), (2, 2, "ORG")], r"a span \(ORG\) before token 2 has no token"),
    "empty at the end": ([(5, 5, "ORG")], r"a span \(ORG\) before token 5 has no token"),
}


@pytest.mark.parametrize("tokens", [WORDS, [*WORDS[:-1], "Ba", "th"]])
@pytest.mark.parametrize("scheme", ["BIOES", "BIO"])
@pytest.mark.parametrize(("spans", "message"), BAD.values(), ids=BAD)
def test_gold_chunks_that_no_tags_have_are_one_error(chunker, tokens, scheme, spans, message):
    nlp, _ = chunker
    spaces = [True] * 4 + [False] * (len(tokens) - 4)
    reference = Doc(nlp.vocab, words=WORDS)
    reference.spans["chunks"] = [Span(reference, *span) for span in spans]
    example = Example(Doc(nlp.vocab, words=tokens, spaces=spaces), reference)
    message = f"{message}.*of the reference 'Ada met Evans in Bath"
    with pytest.raises(InputError, match=message):
        nlp.update([*make_chunk_examples(nlp), example])
    fresh = spacy.blank("en")
    fresh.add_pipe("crf_chunker", config={"model": small_model(), "scheme": scheme})
    with pytest.raises(InputError, match=message):
        fresh.initialize(lambda: [example])


@pytest.mark.parametrize("at", [0, 2, 5])
def test_a_chunk_without_a_token_on_a_doc_is_an_error(chunker, at):
    nlp, pipe = chunker
    doc = Doc(nlp.vocab, words=WORDS)
    doc.spans["chunks"] = [Span(doc, at, at, "ORG")]
    with pytest.raises(InputError, match=rf"a span \(ORG\) before token {at} has no token"):
        pipe(doc)


def test_overlapping_chunks_on_a_doc_are_one_error_and_the_others_go_on(chunker):
    nlp, pipe = chunker
    docs = [Doc(nlp.vocab, words=WORDS, sent_starts=[1, 0, 1, 0, 0]) for _ in range(3)]
    docs[1].spans["chunks"] = [Span(docs[1], 3, 5, "ORG"), Span(docs[1], 2, 4, "PER")]
    message = r"'Evans in' \(PER\) and 'in Bath' \(ORG\) overlap and are both required"
    with pytest.raises(InputError, match=message):
        pipe(docs[1])
    failed = []
    pipe.set_error_handler(lambda name, proc, docs, error: failed.extend(docs))
    assert list(pipe.pipe(docs)) == [docs[0], docs[2]] and failed == [docs[1]]
