"""The figures of rankings of errors, and training data without the places of suspects."""

import numpy
import pytest
from sklearn.metrics import average_precision_score

from benchmarks.find_errors import nodes
from benchmarks.find_errors.measure import areas, damaged
from benchmarks.find_errors.train import as_missing, sample, wrong_tokens
from spacy_psa.analysis.label_errors import annotation
from spacy_psa.pipeline.evidence import cross
from tests.helpers.parsers import make_parser, train_parser, tree_examples
from tests.helpers.pipelines import entities, make_examples, make_nlp
from tests.helpers.tasks import make_task_nlp, train_tasks


@pytest.mark.parametrize("levels", [5, 1000])
def test_the_area_of_a_draw_is_the_average_precision_of_its_documents(levels):
    generator = numpy.random.default_rng(levels)
    documents = generator.integers(6, size=200)
    scores = generator.integers(levels, size=200) / levels
    wrong = generator.random(200) < 0.2 + 0.3 * scores
    drawn = numpy.array([[1, 1, 1, 1, 1, 1], [3, 0, 1, 2, 0, 0]])
    expected = [average_precision_score(wrong, scores, sample_weight=w[documents]) for w in drawn]
    assert areas(wrong, scores, documents, drawn) == pytest.approx(expected)


def docs_of_documents():
    docs = [example.reference for example in make_examples(make_nlp())]
    for i, doc in enumerate(docs):
        doc.user_data["document"] = i // 2
    return docs


def test_damage_is_of_a_share_of_the_entities_and_a_seed_gives_the_same():
    docs = docs_of_documents()
    before = [entities(doc) for doc in docs]
    after = [[entities(doc) for doc in damaged(docs, 0.5, seed)] for seed in (1, 1, 2)]
    assert [entities(doc) for doc in docs] == before
    assert after[0] == after[1] != after[2]
    assert wrong_tokens(damaged(docs, 0.5), docs) > wrong_tokens(damaged(docs, 0.0), docs) == 0


def trained(name):
    """A pipeline that has learned the examples, and their references."""
    if name == "parser":
        nlp = make_parser()
        examples = tree_examples(nlp)
        train_parser(nlp, 40, examples=examples)
    else:
        nlp = make_task_nlp(f"crf_{name}")
        examples = train_tasks(nlp)
    references = [example.reference for example in examples]
    for i, doc in enumerate(references):
        doc.user_data["document"] = i
    return nlp, nlp.pipe_names[-1], references


@pytest.mark.parametrize("name", ["tagger", "chunker", "parser"])
def test_damaged_nodes_are_a_share_and_stay_well_formed(name):
    nlp, pipe_name, docs = trained(name)
    pipe = nlp.get_pipe(pipe_name)
    before = [annotation(pipe, doc) for doc in docs]
    draws = [nodes.damaged(pipe, docs, 0.4, seed) for seed in (1, 1, 2)]
    assert [annotation(pipe, doc) for doc in docs] == before
    assert draws[0] == draws[1] != draws[2]
    assert nodes.damaged(pipe, docs, 0.0) == before
    for own in draws[0]:
        pairs = [(a, b) for i, a in enumerate(own) for b in own[i + 1 :]]
        assert not any(cross(*sorted(pair)) for pair in pairs)
        assert name == "parser" or all(a[1] <= b[0] for a, b in pairs)
    if name == "tagger":
        changed = sum(a != b for own, old in zip(draws[0], before) for a, b in zip(own, old))
        assert changed == round(0.4 * sum(map(len, before)))
        assert [len(own) for own in draws[0]] == [len(own) for own in before]
    after = nodes.annotated(pipe, docs, draws[0])
    assert [annotation(pipe, doc) for doc in after] == draws[0]


@pytest.mark.parametrize("name", ["tagger", "chunker", "parser"])
def test_a_model_that_knows_the_truth_ranks_the_damage_first(name, monkeypatch):
    monkeypatch.setattr(nodes, "DAMAGE", 0.3)
    nlp, pipe_name, docs = trained(name)
    found = nodes.figures(nlp, pipe_name, docs)
    assert found["left_out"] == 0 < found["wrong"] < 0.4
    assert found["suspects"]["nodes"] > found["wrong"]
    assert found["suspects"]["sentences"] == found["suspects"]["first"] == 1.0


def test_a_sample_has_whole_documents_in_their_order():
    docs = docs_of_documents()
    chosen = sample(docs, 3, seed=1)
    names = [doc.user_data["document"] for doc in chosen]
    assert len(chosen) >= 3 and names == sorted(names) and len(names) == 2 * len(set(names))


def test_the_places_of_rows_are_missing_and_the_rest_stays():
    doc = docs_of_documents()[0]
    first, *others = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    last = len(doc) - 1
    row = {"doc": 0, "annotated": [first], "proposed": [(last, last + 1, "PER")]}
    as_missing([doc], [row])
    assert [(ent.start, ent.end, ent.label_) for ent in doc.ents] == others
    assert {t.i for t in doc if not t.ent_iob} == {*range(*first[:2]), last}
