"""A parser that learns from what another one says."""

import numpy
import pytest
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import fix_random_seed, load_config

from spacy_psa.errors import InputError
from spacy_psa.pipeline.distillation import Teacher, learn_from
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.parsers import chart_model, make_parser, train_parser, tree_examples
from tests.helpers.paths import CONFIGS
from tests.helpers.pipelines import parameters, randomize
from tests.helpers.trainings import assert_parts_are_the_batch

LIKELIHOOD = {"loss": "log_likelihood"}


@pytest.fixture(scope="module")
def teacher():
    nlp = make_parser(**LIKELIHOOD)
    train_parser(nlp, 40)
    return nlp


@pytest.fixture
def student():
    nlp = make_parser(chart_model("FactoredTransformer"), **LIKELIHOOD)
    train_parser(nlp)
    nlp.update(tree_examples(nlp), losses={}, sgd=False)  # words get their rows
    for parameter in parameters(nlp.get_pipe("parser")):
        parameter.grad = None
    randomize(nlp.get_pipe("parser"), 2)
    return nlp


def short(nlp, with_trees=True):
    """Examples of at most two words, whose trees can be enumerated."""
    trees = "(NP (NNP Ada) (NNP Evans))", "(TOP (UH Yes))", "(NP (NNP Leeds))"
    examples = tree_examples(nlp, trees)
    if not with_trees:
        for example in examples:
            del example.reference.spans["constituents"]
    return examples


def cross_entropies(teacher, nlp, docs):
    """The cross entropy of the two parsers on each doc of one sentence, over all trees."""
    found = []
    for doc in docs:
        told = teacher.get_pipe("parser").distribution([doc])
        log_probs, trees = zip(*told.kbest(10**5)[0], strict=True)
        probabilities = numpy.exp(log_probs)
        assert probabilities.sum() == pytest.approx(1, abs=1e-3)
        said = nlp.get_pipe("parser").distribution([doc] * len(trees))
        found.append(-float(said.log_prob(trees).numpy(force=True) @ probabilities))
    return found


def test_the_loss_is_that_of_the_trees_and_that_of_all_analyses(teacher, student):
    parser, examples = student.get_pipe("parser"), short(student)
    each = cross_entropies(teacher, student, [eg.predicted for eg in examples])
    plain = [parser.update([eg])["parser"] for eg in examples]
    learn_from(parser, Teacher(teacher, "parser"), weight=0.25)
    expected = [0.75 * p + 0.25 * c for p, c in zip(plain, each, strict=True)]
    assert parser.update(examples)["parser"] == pytest.approx(numpy.mean(expected), rel=1e-3)
    del examples[0].reference.spans["constituents"]
    expected[0] = 0.25 * each[0]
    assert parser.update(examples)["parser"] == pytest.approx(numpy.mean(expected), rel=1e-3)


def test_a_sentence_that_the_teacher_does_not_parse_only_has_its_tree(student):
    teacher = make_parser(**LIKELIHOOD, max_length=1)
    teacher.initialize(lambda: tree_examples(student))
    parser, examples = student.get_pipe("parser"), tree_examples(student)[:3]
    plain = parser.update(examples)["parser"]
    learn_from(parser, Teacher(teacher, "parser"), weight=0.25)
    with pytest.warns(UserWarning, match="more than max_length = 1"):
        assert parser.update(examples)["parser"] == pytest.approx(plain, rel=1e-5)


def test_a_student_comes_to_say_what_the_teacher_says_without_annotation(teacher, student):
    fix_random_seed(0)
    examples = short(student, with_trees=False)
    docs = [eg.predicted for eg in examples]
    before = sum(cross_entropies(teacher, student, docs))
    least = sum(cross_entropies(teacher, teacher, docs))
    learn_from(student.get_pipe("parser"), Teacher(teacher, "parser", cache_gb=0.01), weight=1.0)
    optimizer = student.resume_training()
    optimizer.learn_rate = 0.01
    for _ in range(60):
        student.update(examples, sgd=optimizer)
    assert sum(cross_entropies(teacher, student, docs)) - least < 0.1 * (before - least)


def test_the_gradient_of_parts_is_that_of_the_batch(teacher, student):
    parser, examples = student.get_pipe("parser"), tree_examples(student)
    del examples[1].reference.spans["constituents"]
    learn_from(parser, Teacher(teacher, "parser"))
    assert_parts_are_the_batch(student, examples, 3, rtol=1e-4)


def test_what_does_not_fit_is_an_error(teacher, student):
    parser = student.get_pipe("parser")
    margin = make_parser()
    train_parser(margin)
    with pytest.raises(InputError, match="'parser' is trained with loss = 'max_margin'"):
        Teacher(margin, "parser")
    with pytest.raises(InputError, match="cannot learn from probabilities"):
        learn_from(margin.get_pipe("parser"), Teacher(teacher, "parser"))
    other = make_parser(**LIKELIHOOD)
    other.initialize(lambda: tree_examples(student, ["(S (XY Ada))"]))
    with pytest.raises(InputError, match="the teacher has the labels"):
        learn_from(parser, Teacher(other, "parser"))
    teacher.add_pipe("sentencizer", first=True)
    learn_from(parser, Teacher(teacher, "parser"))
    doc = student.make_doc("Ada left . Bob left .")
    with pytest.raises(InputError, match="splits a text into other sentences"):
        parser.update([Example(doc, doc.copy())])
    teacher.remove_pipe("sentencizer")


def test_the_command_trains_a_student_of_trees(teacher, tmp_path):
    teacher.to_disk(tmp_path / "teacher")
    docs = [eg.reference for eg in tree_examples(teacher)]
    DocBin(docs=docs).to_disk(tmp_path / "trees.spacy")
    config = load_config(CONFIGS / "parser" / "small.cfg")
    config["components"]["parser"].update(model=chart_model(), **LIKELIHOOD)
    config["paths"].update(dict.fromkeys(("train", "dev"), str(tmp_path / "trees.spacy")))
    config["training"].update(max_steps=4, max_epochs=0, eval_frequency=2)
    config.to_disk(tmp_path / "config.cfg")
    (tmp_path / "raw.txt").write_text("Ada left\n", encoding="utf8")
    arguments = [tmp_path / "teacher", tmp_path / "config.cfg", "-o", tmp_path / "out"]
    succeed(command("distill")(*arguments, "--unlabelled", tmp_path / "raw.txt"))
    assert (tmp_path / "out" / "model-last" / "parser").is_dir()
    config["components"]["parser"]["loss"] = "max_margin"
    config.to_disk(tmp_path / "config.cfg")
    assert_one_error(command("distill")(*arguments), "cannot learn from probabilities")
