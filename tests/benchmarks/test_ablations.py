"""The plans of benchmarks/ablations, what is left of them, and how differences are judged."""

import re

import pytest
from spacy.util import registry

from benchmarks import lookup
from benchmarks.ablations.figures import PAPER, agreement, counts, noise
from benchmarks.record import FOLDER
from benchmarks.run_plan import left
from spacy_psa.laboratory.experiments.plan import read_plan
from spacy_psa.training.layers import layered
from tests.helpers.paths import CONFIGS


@pytest.fixture(autouse=True)
def corpus(tmp_path, monkeypatch):
    """A folder where the plans can be read."""
    (tmp_path / "corpus" / "conll2003").mkdir(parents=True)
    (tmp_path / "corpus" / "conll2003" / "test.spacy").touch()
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)


def plan(name="wei2020"):
    return read_plan(FOLDER / "ablations" / f"{name}.toml")


@pytest.mark.parametrize("name", ["wei2020", "yan2019"])
def test_the_models_of_a_plan_can_be_made(name):
    for run in plan(name).runs:
        config = layered(run.config, run.layers, run.settings).interpolate()
        assert registry.resolve({"model": config["components"]["ner"]["model"]})["model"]
        training = config["training"]
        assert training["max_steps"] == training["optimizer"]["learn_rate"]["total_steps"]
        assert training["max_steps"] % training["eval_frequency"] == 0


def test_the_page_has_each_run_of_the_plans():
    text = (FOLDER / "ablations" / "README.md").read_text(encoding="utf8")
    runs = {run.name for name in ("wei2020", "yan2019") for run in plan(name).runs}
    rows = set(re.findall(r"<!-- row: (\S+) -->", text))
    assert rows | set(re.findall(r'scores\("([^"]+)"\)', text)) == runs
    assert {run for paper in PAPER for run in paper} <= rows


def test_what_has_a_result_is_left_out_and_first_seeds_come_first():
    names = [run.name for run in plan().runs]
    scores = {"dev": 0.5, "test": 0.5}
    found = {names[0]: {"1": scores, "3": scores}, names[1]: {"1": {"dev": 0.5}}}
    rest = [(run.name, run.seeds) for run in left(plan(), found).runs]
    assert rest[: len(names) - 1] == [(name, (1,)) for name in names[1:]]
    assert rest[len(names) - 1] == (names[0], (2,))
    assert len(rest) == 3 * len(names) - 2


@pytest.fixture
def record(monkeypatch):
    """Puts scores of runs in the place of the records."""

    def put(**scores):
        runs = {
            run: {str(i): {"test": score} for i, score in enumerate(each, 1)}
            for run, each in scores.items()
        }
        records = {
            name: {"results": {"runs": found}}
            for name, found in (("wei2020", runs), ("yan2019", {}))
        }
        monkeypatch.setattr(lookup, "records_of", lambda experiment: records)

    return put


def test_a_difference_counts_beyond_two_standard_errors_of_the_pooled_deviation(record):
    record(full=[0.90, 0.92], no_mask=[0.89, 0.91], none=[0.80, 0.82])
    assert noise() == pytest.approx(100 * 0.02**0.5 / 10)  # the deviation of each of them
    assert not counts("full", "no_mask") and counts("full", "none")


def test_pairs_are_compared_with_the_order_of_the_paper(record, monkeypatch):
    paper = {"full": 91.33, "no_mask": 91.12, "no_gaussian": 91.19}
    monkeypatch.setattr("benchmarks.ablations.figures.PAPER", (paper,))
    record(full=[0.90, 0.91], no_mask=[0.50, 0.51], no_gaussian=[0.70, 0.71])
    assert agreement() == (3, 3)
    record(full=[0.90, 0.91], no_mask=[0.70, 0.71], no_gaussian=[0.50, 0.51])
    assert agreement() == (2, 3)
