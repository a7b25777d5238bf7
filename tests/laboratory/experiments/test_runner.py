"""The runner: which trainings are done, what a kill leaves, and one error for what is wrong."""

import json
import shutil
from pathlib import Path

import pytest
from spacy.tokens import DocBin

from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.job import CONFIG, LOG, run_job
from spacy_psa.laboratory.experiments.plan import read_plan
from spacy_psa.laboratory.experiments.processes import Ended, run_locally, start
from spacy_psa.laboratory.experiments.record import FILE, by_run, read_record, write_record
from spacy_psa.laboratory.experiments.runner import make_jobs, run_jobs
from spacy_psa.laboratory.experiments.tables import rows, unfinished
from spacy_psa.scoring.sentence_counts import total
from spacy_psa.training.config import check_values
from spacy_psa.training.layers import read_config
from spacy_psa.training.model_folders import locked
from tests.helpers.experiments import make_record, plan_text, run_table, write_data
from tests.helpers.paths import CONFIGS
from tests.helpers.patience import PATIENCE
from tests.helpers.trainings import digests, killed_at

OPTIONS = ["-1", "0"]
TEXT = plan_text(run_table("a"), seeds="[1]")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with data and a config."""
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished_once(tmp_path_factory):
    """A folder in which the plan `TEXT` is finished."""
    path = tmp_path_factory.mktemp("finished")
    write_data(path)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(path)
        run(jobs_of(TEXT))
    return path


@pytest.fixture
def finished(finished_once, tmp_path, monkeypatch):
    """The record of the plan `TEXT`, which is finished in the current folder."""
    shutil.copytree(finished_once, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return read_record(Path("out/a/seed-1", FILE))


def jobs_of(text, out="out", name="plan"):
    path = Path(f"{name}.toml")
    path.write_text(text, encoding="utf8")
    return make_jobs(read_plan(path), Path(out))


def in_this_process(folders):
    """An engine."""
    for folder in folders:
        run_job(folder)
        yield [Ended(folder, 0)]


def run(jobs, engine=in_this_process, out="out"):
    return [record for records in run_jobs(jobs, engine, Path(out)) for record in records]


def test_a_training_is_recorded_with_its_scores_and_its_source(folder):
    test = 'test = "train.spacy"'
    (job,) = jobs_of(plan_text(run_table("a", "final = true"), seeds="[3]", paths=test))
    (record,) = run([job])
    assert record == read_record(Path("out/a/seed-3", FILE))
    assert (record.plan, record.run, record.seed, record.state) == ("plan", "a", 3, "finished")
    assert record.config["system"]["seed"] == 3 and record.config["paths"]["dev"] == "train.spacy"
    assert [*record.data] == ["train.spacy"] and record.versions["spacy-psa"]
    assert [each.step for each in record.evaluations] == [0, 8, 16, 24]
    assert record.seconds > 0
    assert record.best.score == max(each.score for each in record.evaluations)
    for scored in (record.dev, record.tested):
        assert total(scored.sentences["ents_f"]).f1 == pytest.approx(scored.scores["ents_f"])
    assert record.dev.scores["ents_f"] == pytest.approx(record.best.scores["ents_f"])
    assert Path("out/a/seed-3/model-best").is_dir()


def test_the_test_corpus_is_read_only_if_the_run_is_final(folder):
    (job,) = jobs_of(plan_text(run_table("a"), seeds="[1]", paths='test = "none.spacy"'))
    (record,) = run([job])
    assert record.state == "finished" and record.tested is None


def test_what_is_finished_is_left_out_until_it_changes(finished):
    before = digests(Path("out"))
    assert run(jobs_of(TEXT)) == [] and digests(Path("out")) == before
    shutil.copy("train.spacy", "same.spacy")
    assert jobs_of(TEXT.replace("train.spacy", "same.spacy"))[0].done  # the same content elsewhere
    assert [job.done for job in jobs_of(TEXT.replace("[1]", "[1, 2]"))] == [True, False]
    changed = TEXT + 'overrides = {"training.dropout" = 0.3}\n'
    assert not jobs_of(changed)[0].done
    content = Path("train.spacy").read_bytes()
    write_other_data(Path("train.spacy"))
    assert not jobs_of(TEXT)[0].done
    Path("train.spacy").write_bytes(content)
    assert jobs_of(TEXT)[0].done


def write_other_data(path):
    import spacy

    docs = list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))
    DocBin(docs=docs[:-1]).to_disk(path)


def test_a_run_that_becomes_final_is_scored_and_not_trained_again(finished):
    weights = Path("out/a/seed-1/model-best/ner/model").stat().st_mtime_ns
    (job,) = jobs_of(
        plan_text(run_table("a", "final = true"), seeds="[1]", paths='test = "train.spacy"')
    )
    assert job.same and not job.done
    (final,) = run([job])
    assert final.tested is not None and final.seconds == finished.seconds
    assert final.evaluations == finished.evaluations
    assert Path("out/a/seed-1/model-best/ner/model").stat().st_mtime_ns == weights
    assert jobs_of(TEXT)[0].done  # and it stays, if the run is not final any more


@pytest.mark.parametrize("removed", [True, False])
def test_what_is_finished_stays_if_test_data_cannot_be_scored(finished, removed):
    test = "train.spacy"
    if removed:
        shutil.rmtree("out/a/seed-1/model-best")
    else:
        test = "empty.spacy"
        DocBin().to_disk(test)
    final = plan_text(run_table("a", "final = true"), seeds="[1]", paths=f'test = "{test}"')
    (record,) = run(jobs_of(final))
    assert "cannot be scored on test data" in record.lacking
    assert (record.dev, record.evaluations) == (finished.dev, finished.evaluations)
    assert record.tested is None and not jobs_of(final)[0].done
    assert jobs_of(TEXT)[0].done
    (row,) = rows(by_run([record]))
    assert row.seeds == 1 and row.test is None
    assert unfinished(by_run([record])) == [f"{record.name}: {record.lacking}"]


def test_a_changed_training_that_fails_leaves_no_model_of_the_old_one(finished):
    broken = run_table("a", 'overrides = {"components.ner.model.tok2vec.encode.hidden" = 0}')
    (record,) = run(jobs_of(plan_text(broken, seeds="[1]")))
    assert record.state == "failed"
    assert not Path("out/a/seed-1/model-best").exists()
    assert not Path("out/a/seed-1/model-last").exists()


def test_a_changed_training_starts_again_from_nothing(finished):
    changed = TEXT + 'overrides = {"training.max_steps" = 9}\n'
    (record,) = run(jobs_of(changed))
    assert record.state == "finished" and [each.step for each in record.evaluations] == [0, 8]
    (again,) = run(jobs_of(changed, out="other"), out="other")
    assert again.evaluations == record.evaluations


def test_a_killed_plan_goes_on_and_ends_as_one_that_was_not_killed(folder, monkeypatch):
    text = plan_text(run_table("a"), run_table("b"), seeds="[1]")
    with killed_at(monkeypatch, 8):
        run(jobs_of(text))
    states = [read_record(Path(f"out/{name}/seed-1", FILE)).state for name in "ab"]
    assert states == ["running", "running"]
    assert [*Path("out/a/seed-1/checkpoints").glob("*.pt")]
    killed = run(jobs_of(text))
    assert [record.state for record in killed] == ["finished"] * 2
    assert killed[0].seconds is None and killed[1].seconds > 0
    whole = run(jobs_of(text, out="whole"), out="whole")
    for one, other in zip(killed, whole, strict=True):
        assert one.evaluations == other.evaluations and one.dev == other.dev
    for name in ("model-best/ner/model", "model-last/ner/model", LOG):
        made = [Path(out, "a", "seed-1", name).read_bytes() for out in ("out", "whole")]
        assert made[0] == made[1]


def test_a_failed_run_does_not_end_the_others_and_is_tried_again(folder):
    broken = run_table("broken", 'overrides = {"components.ner.model.tok2vec.encode.hidden" = 0}')
    records = run(jobs_of(plan_text(broken, run_table("whole"), seeds="[1]")))
    assert [record.state for record in records] == ["failed", "finished"]
    assert "hidden is 0" in records[0].reason
    jobs = jobs_of(plan_text(broken, run_table("whole"), seeds="[1]"))
    assert [job.done for job in jobs] == [False, True]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (-9, "was killed (SIGKILL)"),
        (1, "ended with code 1; see out/a/seed-1/output.txt"),
        (None, "again and"),
    ],
)
def test_a_process_that_ends_without_a_word_has_failed(folder, code, reason):
    def engine(folders):
        yield []
        yield [Ended(folder, code) for folder in folders]

    (record,) = run(jobs_of(TEXT), engine)
    assert record.state == "failed" and reason in record.reason
    assert read_record(Path("out/a/seed-1", FILE)) == record


def test_processes_train_as_this_one_does(folder):
    text = plan_text(run_table("a"), run_table("b"), seeds="[1]")
    local = run(jobs_of(text), lambda folders: run_locally(folders, OPTIONS, 2))
    here = run(jobs_of(text, out="here"), out="here")
    for one, other in zip(sorted(local, key=lambda record: record.run), here, strict=True):
        assert one.evaluations == other.evaluations and one.dev == other.dev
    assert "finished" in Path("out/a/seed-1/output.txt").read_text()


def test_processes_end_with_the_generator_and_with_their_starter(folder):
    endless = 'overrides = {"training.max_steps" = 1000000}'
    jobs = jobs_of(plan_text(run_table("a", endless), seeds="[1]"))
    rounds = run_jobs(jobs, lambda folders: run_locally(folders, OPTIONS, 1), Path("out"))
    assert next(rounds) == []
    rounds.close()
    assert read_record(Path("out/a/seed-1", FILE)).state == "running"
    process = start(Path("out/a/seed-1"), OPTIONS)
    process.stdin.close()
    assert process.wait(timeout=PATIENCE) == 1
    assert read_record(Path("out/a/seed-1", FILE)).state == "running"


def test_progress_is_read_from_the_log(folder):
    (job,) = jobs_of(TEXT)
    assert job.progress == 0.0 and job.last is None
    job.folder.mkdir(parents=True)
    rows = [{"epoch": 2, "step": step, "score": 0.5} for step in (8, 18)]
    (job.folder / LOG).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert job.progress == 18 / 24 and job.last["score"] == 0.5
    (job.folder / LOG).write_text("half a li")
    assert job.progress == 0.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            plan_text(run_table("a")).replace("tiny.cfg", "none.cfg"),
            "none.cfg: there is no such config",
        ),
        (plan_text(run_table("a", 'layers = ["none.cfg"]')), "none.cfg: there is no such config"),
        (
            plan_text(run_table("a")).replace('"train.spacy"', '"none.spacy"'),
            "none.spacy: there is no",
        ),
        (
            plan_text(run_table("a", 'overrides = {"training.droput" = 0.1}')),
            "no setting 'training.droput'; did you mean 'dropout'",
        ),
        (plan_text(run_table("a", 'overrides = {"training.batcher" = 3}')), "is a section"),
        (
            plan_text(run_table("a"), paths='vectro = "v"'),
            "no setting 'paths.vectro'; did you mean 'vectors'",
        ),
        (
            plan_text(run_table("a")).replace("dev =", "#"),
            "tiny.cfg: the path of [corpora.dev] is null; set it",
        ),
        (
            plan_text(run_table("a", "final = true"), paths='test = "none.spacy"'),
            "run 'a': none.spacy: there is no such file or folder, and paths.test names it",
        ),
    ],
)
def test_what_a_plan_names_and_is_not_there_is_one_error(folder, text, reason):
    with pytest.raises(InputError) as error:
        jobs_of(text)
    assert reason in str(error.value) and "run 'a'" in str(error.value)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("components.ner.model.tok2vec.encode.hidden", '"abc"'),
        ("components.ner.model.tok2vec.embed.*.words.rows", '"many"'),
        ("components.ner.scheme", '"BOI"'),
        ("components.ner.max_grad_norm", '"abc"'),
        ("corpora.train.gold_preproc", '"abc"'),
        ("initialize.vectors", "3"),
        ("nlp.lang", '"qq"'),
        ("training.dropout", '"abc"'),
        ("training.optimizer.learn_rate", '"abc"'),
    ],
)
def test_a_value_of_the_wrong_kind_is_one_error_and_no_record_is_lost(folder, setting, value):
    (job,) = jobs_of(TEXT)
    finished = job.record.model_copy(update={"state": "finished", "dev": make_record().dev})
    write_record(finished, job.folder / FILE)
    with pytest.raises(InputError) as error:
        jobs_of(TEXT + f'overrides = {{"{setting}" = {value}}}\n')
    section, _, name = setting.rpartition(".")
    assert f"run 'a': [{section}]: {name} is {json.loads(value)!r}: " in str(error.value)
    assert "\n" not in str(error.value) and read_record(job.folder / FILE) == finished


def test_a_function_that_a_training_may_import_is_not_checked(folder):
    function = '{"@optimizers" = "my_own.v1", rate = 3}'
    (job,) = jobs_of(
        plan_text(run_table("a", f'overrides = {{"training.optimizer" = {function}}}'), seeds="[1]")
    )
    assert job.config["training"]["optimizer"]["@optimizers"] == "my_own.v1"


@pytest.mark.parametrize(
    "path",
    sorted(path for path in CONFIGS.glob("*/*.cfg") if path.parent.name != "corpora"),
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_the_values_of_every_config_pass(path):
    config = read_config(path)
    config["paths"].update(train="train.spacy", dev="dev.spacy", vectors="vectors")
    check_values(config.interpolate())


def test_a_pipeline_whose_components_are_taken_over_is_part_of_the_training(folder):
    config = read_config(Path("tiny.cfg"))
    config["components"] = {"ner": {"source": "srcm"}}
    config.to_disk("source.cfg", interpolate=False)
    text = TEXT.replace("tiny.cfg", "source.cfg")
    Path("srcm").mkdir()
    hashes = []
    for content in ("one", "other"):
        Path("srcm/model").write_text(content)
        (job,) = jobs_of(text)
        hashes.append(job.record.hash)
        assert [*job.record.data] == ["srcm/model", "train.spacy"]
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize("name", ["other", "other/plan"])
def test_two_plans_that_write_one_result_are_an_error(folder, name):
    (job,) = jobs_of(TEXT)
    write_record(job.record, job.folder / FILE)
    Path("other").mkdir()
    with pytest.raises(InputError, match=r"of the plan 'plan\.toml', and the plan other"):
        jobs_of(TEXT, name=name)


def test_a_plan_that_was_moved_is_the_same(folder):
    (job,) = jobs_of(TEXT)
    Path("other").mkdir()
    for moved in (job.record, job.record.model_copy(update={"plan_file": None})):
        write_record(moved, job.folder / FILE)
        Path("plan.toml").unlink(missing_ok=True)
        jobs_of(TEXT, name="other/plan")


def test_two_commands_in_one_folder_are_an_error(folder):
    jobs = jobs_of(TEXT)
    with locked(Path("out")), pytest.raises(InputError, match="another process"):
        run(jobs)
    assert not Path("out/a").exists()


def test_results_that_would_go_to_a_file_are_refused_at_once(folder):
    with pytest.raises(InputError, match=r"^train.spacy: is a file; name a folder$"):
        jobs_of(TEXT, out="train.spacy")


def test_a_record_of_another_format_is_not_written_over(folder):
    path = Path("out/a/seed-1", FILE)
    path.parent.mkdir(parents=True)
    path.write_text('{"format": "spacy-psa run 0"}')
    with pytest.raises(InputError, match="has the format 'spacy-psa run 0'"):
        jobs_of(TEXT)


def test_the_config_of_a_run_keeps_its_variables(folder):
    jobs = jobs_of(plan_text(run_table("a"), seeds="[5]"))
    run(jobs, lambda folders: (each for each in [[]]))
    text = Path("out/a/seed-5", CONFIG).read_text()
    assert "seed = 5" in text and "path = ${paths.dev}" in text


def test_the_seed_of_a_run_is_that_of_its_training_whatever_a_layer_says(folder):
    Path("layer.cfg").write_text("[training]\nseed = 7\n", encoding="utf8")
    jobs = jobs_of(plan_text(run_table("a", 'layers = ["layer.cfg"]')))
    assert [job.config.interpolate()["training"]["seed"] for job in jobs] == [1, 2]
    assert len({job.record.hash for job in jobs}) == 2
