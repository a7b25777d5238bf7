"""Plans are trained, recorded, and checkpoints are written as often as asked."""

from pathlib import Path

from benchmarks import run_plan
from benchmarks.record import read_record
from spacy_psa.laboratory.experiments import record
from spacy_psa.laboratory.experiments.job import run_job
from spacy_psa.laboratory.experiments.processes import Ended
from spacy_psa.training.checkpoint import Checkpoints
from tests.helpers.experiments import plan_text, run_table, write_data


def test_a_plan_is_trained_once_with_checkpoints_between_evaluations(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    plan, saved = Path("tiny_plan.toml"), []
    plan.write_text(plan_text(run_table("a"), seeds="[1]"), encoding="utf8")
    save = Checkpoints.save

    def saving(self, step, state):
        saved.append(step)
        save(self, step, state)

    def in_this_process(folders, options, jobs):
        for folder in folders:
            run_job(folder, *map(int, options))
            yield [Ended(folder, 0)]

    monkeypatch.setattr(Checkpoints, "save", saving)
    monkeypatch.setattr(run_plan, "run_locally", in_this_process)
    run_plan.train(plan, 1, save_every=6)
    assert {6, 12, 18} <= set(saved)  # it is evaluated after each 8 steps
    trained = record.read_record(
        Path("training", tmp_path.name, "tiny_plan", "a", "seed-1", record.FILE)
    )
    scores = read_record(Path("results", "tiny_plan.json"))["results"]["runs"]["a"]["1"]
    assert scores["dev"] == trained.dev.scores["ents_f"]
    assert scores["step"] == trained.best.step
    saved.clear()
    run_plan.train(plan, 1)
    assert not saved  # it has a result
