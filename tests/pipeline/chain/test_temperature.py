"""The temperature of a component: what it does to a distribution, and that it is saved."""

import pytest
import spacy

from spacy_psa.errors import InputError
from spacy_psa.pipeline.coverage import CountCorrection, Coverage, Promise
from tests.helpers.analyses import Truth, enumerate_doc
from tests.helpers.pipelines import entities, make_examples, make_nlp, random_nlp


def test_temperature_flattens_the_distribution_and_keeps_the_best():
    nlp = random_nlp()
    ner = nlp.get_pipe("ner")
    text = "Ada met Evans"
    truth = enumerate_doc(ner, nlp.make_doc(text))
    best = entities(nlp(text))
    for temperature in (0.5, 1.0, 4):
        ner.temperature = temperature
        weights = truth.probabilities ** (1 / temperature)
        tempered = Truth(truth.values, weights / weights.sum())
        assert ner.entropy(nlp.make_doc(text)) == pytest.approx(tempered.entropy, rel=1e-4)
        assert entities(nlp(text)) == best
    assert ner.temperature == 4.0


@pytest.mark.parametrize(
    "value", [0, -1.0, 1e-40, 1e40, float("nan"), float("inf"), "hot", None, True]
)
def test_wrong_temperature_is_an_error_and_changes_nothing(value):
    ner = make_nlp().get_pipe("ner")
    ner.temperature = 2.0
    with pytest.raises(InputError, match="temperature is"):
        ner.temperature = value
    assert ner.temperature == 2.0


def test_temperature_is_saved_and_models_without_one_load(unsure, tmp_path):
    nlp = unsure()
    old = nlp.to_bytes()
    assert "temperature" not in nlp.get_pipe("ner").cfg
    nlp.get_pipe("ner").temperature = 1.5
    assert unsure().from_bytes(nlp.to_bytes()).get_pipe("ner").temperature == 1.5
    nlp.to_disk(tmp_path / "model")
    assert spacy.load(tmp_path / "model").get_pipe("ner").temperature == 1.5
    assert nlp.from_bytes(old).get_pipe("ner").temperature == 1.0
    cfg = tmp_path / "model" / "ner" / "cfg"
    cfg.write_text(cfg.read_text().replace("1.5", "-1"))
    with pytest.raises(InputError, match=r"'ner' cannot be loaded.*temperature is -1"):
        spacy.load(tmp_path / "model")


def test_temperature_is_not_for_training(unsure):
    nlp = unsure()
    examples = make_examples(nlp)
    scores = nlp.get_pipe("ner").model.predict([eg.predicted for eg in examples])
    cold, _ = nlp.get_pipe("ner").get_loss(examples, scores)
    nlp.get_pipe("ner").temperature = 3.0
    assert nlp.get_pipe("ner").get_loss(examples, scores)[0] == cold


def test_another_temperature_removes_the_coverage_of_the_former_probabilities(unsure):
    ner = unsure().get_pipe("ner")
    coverage = Coverage(level=0.9, least=0.02, documents=215)
    ner.calibrated.coverage = coverage
    ner.temperature = 1.0
    assert ner.calibrated.coverage == coverage
    ner.temperature = 1.5
    assert ner.calibrated.coverage is None


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("coverage", Coverage(0.9, 0.02, 215), (2, 0.02, 215)),
        ("recall", {"PER": Promise(0.9, 0.8, 0.1, 50)}, {"PER": (0.9, 0.8)}),
        ("counts", {"PER": CountCorrection()}, {"PER": 1}),
    ],
)
def test_a_wrong_result_of_calibration_is_an_error_and_changes_nothing(name, right, wrong):
    calibrated = make_nlp().get_pipe("ner").calibrated
    setattr(calibrated, name, right)
    with pytest.raises(InputError, match=f"ner: {name} is "):
        setattr(calibrated, name, wrong)
    assert getattr(calibrated, name) == right
