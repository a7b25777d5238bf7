"""When a training comes near its best score."""

import pytest

from spacy_psa.laboratory.analyses.convergence import convergence, draw_convergence, epochs


def log(scores, steps=10, a_epoch=10):
    return [
        {"epoch": steps * n // a_epoch, "step": steps * n, "score": score}
        for n, score in enumerate(scores)
    ]


def test_shares_of_the_best_score_are_reached_in_the_first_such_epoch():
    found = convergence(log([0.0, 0.45, 0.47, 0.46, 0.5, 0.496]))
    assert found["epochs"] == [0, 1, 2, 3, 4, 5] and found["best"] == 0.5
    assert found["reached"] == {"90": 1.0, "95": 4.0, "99": 4.0}


def test_evaluations_within_an_epoch_have_fractions_of_it():
    assert convergence(log([0.1, 0.2, 0.3, 0.4], steps=5))["epochs"] == [0.0, 0.5, 1.0, 1.5]
    assert epochs([(0, 0), (0, 5), (1, 10)]) == [0.0, 0.5, 1.0]
    assert epochs([(0, 0), (2, 200), (4, 400)]) == [0.0, 2.0, 4.0]
    assert epochs([]) == [] and epochs([(0, 0)]) == [0.0]


def test_a_training_that_never_left_its_first_epoch_stays_below_1():
    assert epochs([(0, 0), (0, 5)]) == [0.0, pytest.approx(5 / 6)]


@pytest.mark.parametrize(("size", "apart"), [(100, 199), (100, 30), (33, 100), (97, 7)])
def test_evaluations_at_any_step_are_in_their_epochs(size, apart):
    steps = range(0, 40 * size, apart)
    found = epochs([(step // size, step) for step in steps])
    assert found == pytest.approx([step / size for step in steps], rel=0.03)


def test_few_evaluations_at_any_step_are_near_their_epochs():
    assert epochs([(0, 0), (1, 199), (3, 398)]) == pytest.approx([0, 1.99, 3.98], rel=0.15)


def test_a_log_with_odd_steps_has_epochs_all_the_same():
    assert all(place >= 0 for place in epochs([(0, 0), (0, 0), (1, 0), (2, 9)]))


def test_a_picture_has_a_line_and_a_dot_for_each_training():
    trainings = {"_a": convergence(log([0.0, 0.5])), "b": convergence(log([0.1, 0.2, 0.3]))}
    (axes,) = draw_convergence(trainings).axes
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]
    assert lines[0] == ([0, 1], [0, 50]) and lines[1] == ([1], [50])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["_a", "b"]
    assert lines[2][1] == pytest.approx([10, 20, 30]) and lines[3] == ([2], [30])
