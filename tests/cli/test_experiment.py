"""`spacy-psa experiment`: a plan from start to picture, and one line for what is wrong."""

import shutil

import pytest

from spacy_psa.laboratory.experiments.record import FILE, read_record, write_record
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.experiments import make_record, plan_text, run_table, write_data
from tests.helpers.paths import ROOT

run, table, plot = (command("experiment", name) for name in ("run", "table", "plot"))
BROKEN = run_table(
    "broken", 'seeds = [1]\noverrides = {"components.ner.model.tok2vec.encode.hidden" = 0}'
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.fixture
def folder(data, tmp_path, monkeypatch):
    """The current folder, with data, a config and a plan."""
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(plan_text(run_table("a"), run_table("b")))
    return tmp_path


def test_a_plan_is_run_told_and_drawn(folder):
    (folder / "plan.toml").write_text(plan_text(run_table("a"), BROKEN, seeds="[1]"))
    result = run("plan.toml", "--jobs", 2)
    assert result.exit_code == 1
    told = sorted(result.stdout.splitlines())
    assert told[0].startswith("a, seed 1: dev ents_f ")
    assert told[1].startswith("broken, seed 1: failed: ") and "hidden is 0" in told[1]
    assert told[2].startswith("experiments/plan: 1 of 2 trainings finished, 1 failed")
    (folder / "plan.toml").write_text(plan_text(run_table("a"), seeds="[1]"))
    again = succeed(run("plan.toml"))
    assert again.stdout.splitlines() == [
        "a, seed 1: has a record, experiments/plan/a/seed-1",
        "experiments/plan: 1 of 1 trainings finished",
    ]
    score = read_record(folder / "experiments/plan/a/seed-1" / FILE).dev.scores["ents_f"]
    shown = table("experiments/plan")
    assert f"| a | ents_f | 1 | {100 * score:.2f} |" in shown.stdout
    assert "broken, seed 1: failed: " in shown.stdout
    assert plot("experiments/plan", "dev.svg").exit_code == 0
    assert "<svg" in (folder / "dev.svg").read_text()


@pytest.mark.usefixtures("on_ray")
def test_on_ray_each_training_is_a_task(folder):
    (folder / "plan.toml").write_text(plan_text(run_table("a"), BROKEN, seeds="[1]"))
    result = run("plan.toml", "--engine", "ray", "--jobs", 2, "--out", "out")
    assert result.exit_code == 1, result.output
    states = {
        name: read_record(folder / "out" / name / "seed-1" / FILE) for name in ("a", "broken")
    }
    assert [record.state for record in states.values()] == ["finished", "failed"]
    assert "hidden is 0" in states["broken"].reason


def test_tables_and_pictures_of_records(folder):
    for name in ("a", "b"):
        for seed in (1, 2):
            write_record(make_record(name, seed), folder / "out" / name / str(seed) / FILE)
    shown = table("out", "--compare", "a", "b", "--resamples", 200)
    assert shown.exit_code == 0 and "a less b: +0.00 dev ents_f" in shown.stdout
    csv = table("out", "--format", "csv", "--resamples", 200).stdout.splitlines()
    assert csv[0].startswith("run,score,seeds,dev_mean") and len(csv) == 3
    assert plot("out/a", "out/b", "dev.png").stdout == "Written: dev.png\n"
    assert (folder / "dev.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["none.toml"], "none.toml: there is no such plan"),
        (["plan.toml", "--jobs", 0], "--jobs 0: set a number of trainings"),
        (["plan.toml", "--address", "auto"], "--address auto: needs --engine ray"),
        (["tiny.cfg"], "tiny.cfg: is not a TOML file"),
        (
            ["plan.toml", "--engine", "ray", "--address", "127.0.0.1:1"],
            "--address 127.0.0.1:1: there is no Ray cluster (",
        ),
    ],
)
def test_a_run_that_cannot_begin_is_one_error(folder, words, reason):
    assert_one_error(run(*words), reason)
    assert not (folder / "experiments").exists()


def test_the_address_of_the_environment_counts(folder, monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'spacy-psa[ray]'")
    (folder / "plan.toml").write_text(plan_text(run_table("a")))
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    result = run("plan.toml", "--engine", "ray")
    assert_one_error(result, "RAY_ADDRESS 127.0.0.1:1: there is no Ray cluster (")


def test_tables_of_nothing_are_one_error(folder):
    assert_one_error(table("none"), "none: there is no such folder")
    assert_one_error(plot(".", "a.svg"), "has no record.json in it")
    write_record(make_record(), folder / "out" / FILE)
    assert_one_error(
        table("out", "--compare", "a", "c"), "--compare c: there is no such run; name one of a"
    )
    assert_one_error(
        table("out", "--compare", "a", "a", "--format", "csv"), "needs --format markdown"
    )
    assert_one_error(plot("out", "dev.txt"), "dev.txt: is not the name of an image")


def test_the_plan_of_the_repository_can_be_run(folder):
    from spacy_psa.laboratory.experiments.plan import read_plan
    from spacy_psa.laboratory.experiments.runner import make_jobs

    (folder / "configs").symlink_to(ROOT / "configs")
    for part in ("train", "dev", "test"):
        (folder / "corpus" / "sample").mkdir(parents=True, exist_ok=True)
        shutil.copy("train.spacy", folder / "corpus" / "sample" / f"{part}.spacy")
    for path in sorted((ROOT / "configs" / "experiments").glob("*.toml")):
        jobs = make_jobs(read_plan(path), folder / "out")
        assert len(jobs) > 1
        assert {job.config["training"]["eval_frequency"] for job in jobs} == {100}
