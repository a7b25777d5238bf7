"""benchmarks.choose: which of two runs the protocol chooses."""

import shutil
import sys

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from benchmarks import choose
from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.record import FILE, Scored, write_record
from tests.helpers.experiments import make_record

RIGHT = {"better": [8, 9, 7, 9, 8, 9], "level": [7, 5, 6, 6, 6, 6], "old": [6, 6, 6, 6, 6, 6]}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """The trainings of a plan on 6 documents of 2 sentences, the second without an entity."""
    monkeypatch.chdir(tmp_path)
    vocab, docs = spacy.blank("en").vocab, DocBin(store_user_data=True)
    for number in range(len(RIGHT["old"])):
        for _ in range(2):
            doc = Doc(vocab, words=["a", "b"])
            doc.user_data["document"] = number
            docs.add(doc)
    docs.to_disk(tmp_path / "dev.spacy")
    for name, right in RIGHT.items():
        counts = [each for n in right for each in ((n, 10, 10), (0, 0, 0))]
        dev = Scored(path="dev.spacy", scores={}, sentences={"ents_f": counts})
        for seed in (1, 2, 3):
            out = tmp_path / "training" / tmp_path.name / "plan" / name / f"seed-{seed}"
            out.mkdir(parents=True)
            record = make_record(run=name, seed=seed)
            state = "running" if (name, seed) == ("level", 3) else "finished"
            write_record(record.model_copy(update={"dev": dev, "state": state}), out / FILE)
    return tmp_path / "plan.toml"


@pytest.mark.parametrize(("new", "chosen", "seeds"), [("better", "better", 3), ("level", "old", 2)])
def test_a_new_setting_is_taken_if_it_is_better_with_certainty(
    plan, monkeypatch, new, chosen, seeds
):
    made = []
    monkeypatch.setattr(choose, "write_record", lambda *record: made.append(record))
    monkeypatch.setattr(sys, "argv", ["choose", str(plan), new, "old"])
    choose.main()
    ((name, experiment, compared),) = made
    assert (name, experiment) == (f"plan-{new}-old", plan.parent.name)
    assert compared["chosen"] == chosen and compared["documents"] == 6
    assert len(compared["seeds"]) == seeds
    assert compared["scores"]["old"] == pytest.approx([0.6] * seeds)
    assert compared["difference"] == pytest.approx(sum(RIGHT[new]) / 60 - 0.6)
    low, high = compared["interval"]
    assert low <= compared["difference"] <= high
    assert (compared["better"] == 1) == (new == "better")


def test_runs_without_a_common_seed_are_an_error(plan):
    with pytest.raises(InputError, match="no finished seed in common; train the plan"):
        choose.compare(plan.parent / "training" / plan.parent.name / "plan", "other", "old")


def test_the_documents_of_all_splits_count(plan):
    out = plan.parent / "training" / plan.parent.name / "plan"
    for number, name in enumerate(("better", "level"), 1):
        for run, source in (("new", name), ("old", "old")):
            shutil.copytree(out / source, out / f"{run}_{number}")
    result = choose.compare(out, "new", "old", splits=2)
    assert (result["documents"], result["seeds"]) == (12, [1, 2])  # level has not finished seed 3
    assert result["scores"]["new"] == pytest.approx([(50 + 36) / 120] * 2)
    with pytest.raises(InputError, match="new_3 and old_3 have no finished seed in common"):
        choose.compare(out, "new", "old", splits=3)
