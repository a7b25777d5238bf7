"""What every labelling component does, shown on `crf_ner`."""

import itertools
import pickle

import numpy
import pytest
import srsly
import torch
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam, Optimizer

from spacy_psa.architectures.heads import sentence_bounds, sentences
from spacy_psa.errors import InputError
from spacy_psa.pipeline.schemes import MISSING
from spacy_psa.training.optimizers import sgd

HEADS = ["label_pair", "transition", "softmax"]


def ready(tools, **model):
    """A pipeline with random weights that are large, so that no two scores are close."""
    nlp = tools.make_nlp(tools.small_model(**model))
    tools.train(nlp, steps=0)
    generator = torch.Generator().manual_seed(1)
    for node in nlp.get_pipe("ner").model.walk():
        for shim in node.shims:
            for parameter in shim.module.parameters():
                parameter.data.normal_(generator=generator)
    return nlp


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
    nlp = ready(tools, head=head)
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
    nlp = ready(tools, head=head)
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
    nlp = ready(tools)
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
    nlp = ready(tools)
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
    nlp = ready(tools)
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
    for embed in (hash_embed(), {**characters, "rows": 50, "include_static_vectors": False}):
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


# Losses


def scores_of(ner, examples):
    return ner.model.predict([eg.predicted for eg in examples])


def missing_example(nlp, tags):
    """An example annotated with IOB tags, "-" where there is no annotation."""
    words = "Ada Lovelace met Evans in Bath".split()[: len(tags)]
    reference = Doc(nlp.vocab, words=words, ents=[tag.replace("-", "", tag == "-") for tag in tags])
    return Example(Doc(nlp.vocab, words=words), reference)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("head", HEADS)
def test_gradient_of_the_loss_is_the_finite_difference(tools, head, reduction):
    nlp = ready(tools, head=head)
    ner = nlp.get_pipe("ner")
    ner.reduction = reduction
    examples = tools.make_examples(nlp, ["[Ada|PER] left [New Bath|LOC]", "", "[Acme|ORG]"])
    examples.append(missing_example(nlp, ["B-PER", "I-PER", "-", "-"]))
    scores = [array.astype("float64") for array in scores_of(ner, examples)]
    _, gradient = ner.get_loss(examples, scores)
    rng = numpy.random.default_rng(0)
    step = 1e-5
    for i in (0, 2, 3):
        assert gradient[i].shape == scores[i].shape
        direction = rng.normal(size=scores[i].shape)
        moved = [[*scores[:i], scores[i] + s * direction, *scores[i + 1 :]] for s in (step, -step)]
        up, down = (ner.get_loss(examples, m)[0] for m in moved)
        assert (up - down) / (2 * step) == pytest.approx((gradient[i] * direction).sum(), rel=1e-6)
    assert gradient[1].shape[0] == 0


def test_mean_is_the_sum_over_the_number_of_sentences(tools):
    nlp = ready(tools)
    ner = nlp.get_pipe("ner")
    examples = tools.make_examples(nlp, [*tools.marked, ""])
    scores = scores_of(ner, examples)
    mean, d_mean = ner.get_loss(examples, scores)
    ner.reduction = "sum"
    total, d_total = ner.get_loss(examples, scores)
    count = len(tools.marked)
    assert total == pytest.approx(count * mean)
    numpy.testing.assert_allclose(d_total[0], count * d_mean[0], rtol=1e-5)
    parts = [ner.get_loss([eg], [s])[0] for eg, s in zip(examples[:-1], scores)]
    assert sum(parts) == pytest.approx(total)


def test_example_without_annotation_has_no_loss_and_no_gradient(tools):
    nlp = ready(tools)
    ner = nlp.get_pipe("ner")
    example = missing_example(nlp, ["-"] * 6)
    loss, (gradient,) = ner.get_loss([example], scores_of(ner, [example]))
    assert loss == 0.0 and not gradient.any()


def sequence_score(potentials, tags):
    """Sum of the log potentials of a tag sequence, by a plain loop."""
    k = round(potentials.shape[1] ** 0.5)
    score = potentials[0, tags[0]]
    for t in range(1, len(tags)):
        score += potentials[t, tags[t - 1] * k + tags[t]]
    return float(score)


def test_missing_annotation_is_summed_out(tools):
    nlp = tools.make_nlp()
    nlp.initialize(lambda: tools.make_examples(nlp, ["[Ada|PER] [Bath|LOC]"]))
    ner = nlp.get_pipe("ner")
    k, n = len(ner.tags), 4
    potentials = numpy.random.default_rng(3).normal(size=(n, k * k))
    moves, start, end = ner.legal()
    legal = [
        tags
        for tags in itertools.product(range(k), repeat=n)
        if start[tags[0]]
        and end[tags[-1]]
        and all(moves[a, b] for a, b in itertools.pairwise(tags))
    ]
    everything = numpy.logaddexp.reduce([sequence_score(potentials, tags) for tags in legal])
    for known in (["B-PER", "I-PER", "-", "-"], ["-", "O", "-", "B-LOC"], ["-", "-", "-", "O"]):
        example = missing_example(nlp, known)
        (gold,) = ner.gold_tags(example, sentence_bounds(example.predicted))
        assert [tag == MISSING for tag in gold] == [tag == "-" for tag in known]
        agree = [
            sequence_score(potentials, tags)
            for tags in legal
            if all(g in (MISSING, tag) for g, tag in zip(gold, tags))
        ]
        assert 1 < len(agree) < len(legal)
        loss, _ = ner.get_loss([example], [potentials])
        assert loss == pytest.approx(everything - numpy.logaddexp.reduce(agree))


# Updates


class Recorder(Optimizer):
    """An optimizer that changes nothing and keeps the gradients that it is given."""

    def __init__(self):
        super().__init__(0.0, grad_clip=0.0)
        self.gradients = {}

    def __call__(self, key, weights, gradient, *, lr_scale=1.0):
        self.gradients[key] = gradient.copy()
        return weights, gradient * 0


def hash_embed():
    return {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 8,
        "attrs": ["NORM", "SHAPE"],
        "rows": [50, 50],
        "include_static_vectors": False,
    }


def test_gradients_are_clipped_by_the_norm_of_all_layers_together(tools):
    seen = {}
    for limit in (0.0, 0.5, 1e6):
        nlp = tools.make_nlp(tools.small_model(embed=hash_embed()), max_grad_norm=limit)
        tools.train(nlp, steps=0)
        recorder = Recorder()
        nlp.update(tools.make_examples(nlp), sgd=recorder, drop=0.0)
        seen[limit] = [recorder.gradients[key] for key in sorted(recorder.gradients)]
    names = {name for _, name in recorder.gradients}
    assert {"E", "pair.weight"} <= names  # a parameter of thinc's and one of torch's

    def norm(gradients):
        return sum(float((g**2).sum()) for g in gradients) ** 0.5

    assert norm(seen[0.0]) > 0.5
    assert norm(seen[0.5]) == pytest.approx(0.5, rel=1e-4)
    for free, clipped, within in zip(seen[0.0], seen[0.5], seen[1e6], strict=True):
        scaled = free * 0.5 / norm(seen[0.0])
        numpy.testing.assert_allclose(clipped, scaled, rtol=1e-3, atol=1e-7)
        numpy.testing.assert_allclose(within, free, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "optimizer",
    [sgd(0.05, use_averages=True), Adam(0.01, use_averages=True)],
    ids=["SGD.v1", "Adam.v1"],
)
def test_averaged_weights_are_used_within_use_params(tools, optimizer):
    nlp = tools.make_nlp()
    examples = tools.make_examples(nlp)
    nlp.initialize(lambda: examples)
    ner = nlp.get_pipe("ner")

    def weights():
        modules = [shim.module for node in ner.model.walk() for shim in node.shims]
        return [p.detach().clone() for m in modules for p in m.parameters()]

    averages = [torch.zeros_like(p) for p in weights()]
    for t in range(1, 6):
        nlp.update(examples, sgd=optimizer)
        decay = (1 + t) / (10 + t)
        averages = [decay * a + (1 - decay) * p for a, p in zip(averages, weights())]
    last = weights()
    docs = [eg.predicted for eg in examples]
    before = ner.distribution(docs).marginals
    with nlp.use_params(optimizer.averages):
        for held, average in zip(weights(), averages, strict=True):
            torch.testing.assert_close(held, average, rtol=1e-4, atol=1e-6)
        assert not torch.allclose(ner.distribution(docs).marginals, before)
    assert all(torch.equal(a, b) for a, b in zip(weights(), last, strict=True))
    torch.testing.assert_close(ner.distribution(docs).marginals, before)


def test_gradients_of_several_updates_add_up_before_a_step(tools):
    def weights(nlp):
        return nlp.get_pipe("ner").model.get_ref("head").shims[0].module.pair.weight.detach()

    trained = []
    for parts in ([slice(0, 8)], [slice(0, 3), slice(3, 8)]):
        nlp = tools.make_nlp(reduction="sum", max_grad_norm=0.0)
        tools.train(nlp, steps=0)
        examples = tools.make_examples(nlp)
        nlp.update(examples, sgd=sgd(0.001, 0.0))  # all words have their rows
        for part in parts:
            nlp.update(examples[part], sgd=False)
        nlp.get_pipe("ner").finish_update(sgd(0.001, 0.0))
        trained.append(weights(nlp))
    torch.testing.assert_close(trained[0], trained[1], rtol=1e-4, atol=1e-6)


# Saving and loading


def test_a_new_process_gives_the_same_entities_and_marginals(tools, trained, trained_path):
    got = tools.run_elsewhere(tools.load_and_annotate, trained_path, *tools.texts)
    assert got == tools.annotate(trained, tools.texts)
    assert sum(map(len, got["entities"])) > 10


def test_bytes_load_before_initialize_and_give_the_same(tools, trained):
    again = tools.make_nlp().from_bytes(trained.to_bytes())
    assert again.get_pipe("ner").labels == trained.get_pipe("ner").labels
    assert tools.annotate(again, tools.texts) == tools.annotate(trained, tools.texts)
    assert again.to_bytes() == trained.to_bytes()


def test_pickle_gives_the_same(tools, trained):
    again = pickle.loads(pickle.dumps(trained))
    assert tools.annotate(again, tools.texts) == tools.annotate(trained, tools.texts)


def test_copied_model_gives_the_same_and_is_its_own(tools, trained):
    expected = tools.annotate(trained, tools.texts)
    ner = trained.get_pipe("ner")
    original, ner.model = ner.model, ner.model.copy()
    assert tools.annotate(trained, tools.texts) == expected
    trained.update(tools.make_examples(trained), sgd=sgd(0.5))
    assert tools.annotate(trained, tools.texts) != expected
    ner.model = original
    assert tools.annotate(trained, tools.texts) == expected


def test_component_that_was_never_initialized_is_saved_and_loaded(tools, tmp_path):
    nlp = tools.make_nlp()
    nlp.to_disk(tmp_path / "model")
    again = tools.make_nlp().from_disk(tmp_path / "model")
    assert tools.train(again, 3, Adam(0.02))[-1] > 0


def test_loaded_pipeline_trains_on(tools, trained):
    again = tools.make_nlp().from_bytes(trained.to_bytes())
    optimizer = again.resume_training(sgd=sgd(0.05))
    examples = tools.make_examples(again, ["[Mary|PER] left [Acme|ORG] ."])
    losses = [again.update(examples, sgd=optimizer)["ner"] for _ in range(15)]
    assert losses[-1] < losses[0]


def damaged(kind, tools, trained):
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
        "another encoder": tools.small_model(encoder=tools.small_encoder("BiLSTM")),
        "another head": tools.small_model("transition"),
        "another head of emissions": tools.small_model("softmax"),
        "another embedder": tools.small_model(embed=hash_embed()),
        "another size": tools.small_model(encoder=tools.small_encoder(hidden=12)),
    }
    nlp = tools.make_nlp(models[kind])
    tools.train(nlp, steps=0)
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
def test_damaged_or_foreign_weights_are_one_error_and_change_nothing(tools, trained, kind):
    data = damaged(kind, tools, trained)
    ner = trained.get_pipe("ner")
    expected = tools.annotate(trained, tools.texts)
    with pytest.raises(InputError, match="'ner' cannot be loaded") as caught:
        ner.from_bytes(data)
    assert "\n" not in str(caught.value)
    assert tools.annotate(trained, tools.texts) == expected

    blank = tools.make_nlp()
    before = blank.get_pipe("ner").model.to_bytes()
    with pytest.raises(InputError, match="'ner' cannot be loaded"):
        blank.get_pipe("ner").from_bytes(data)
    assert blank.get_pipe("ner").model.to_bytes() == before
    assert not blank.get_pipe("ner").labels
    tools.train(blank, 2, Adam(0.01))  # it can still be initialized
    assert len(blank("Ada left Bath")) == 3


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_folder_with_truncated_weights_does_not_load(tools, trained, tmp_path, share):
    import spacy

    trained.to_disk(tmp_path / "model")
    path = tmp_path / "model" / "ner" / "model"
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match="'ner' cannot be loaded"):
        spacy.load(tmp_path / "model")


def test_folder_without_weights_does_not_load(trained, tmp_path):
    import spacy

    trained.to_disk(tmp_path / "model")
    (tmp_path / "model" / "ner" / "model").unlink()
    with pytest.raises(OSError, match="model"):
        spacy.load(tmp_path / "model")


def test_code_in_a_weights_file_is_not_run(tools, trained, tmp_path):
    """Weights are data: a pickle that calls something is refused."""

    class Evil:
        def __reduce__(self):
            return (tmp_path.joinpath("ran").touch, ())

    import io

    buffer = io.BytesIO()
    torch.save({"make": "PSABiLSTM", "arguments": {}, "state": Evil()}, buffer)
    data = srsly.msgpack_loads(trained.get_pipe("ner").to_bytes())
    model = srsly.msgpack_loads(data["model"])
    model["shims"] = [[buffer.getvalue() for _ in shims] for shims in model["shims"]]
    data["model"] = srsly.msgpack_dumps(model)
    with pytest.raises(InputError, match="cannot be read"):
        trained.get_pipe("ner").from_bytes(srsly.msgpack_dumps(data))
    assert not (tmp_path / "ran").exists()
