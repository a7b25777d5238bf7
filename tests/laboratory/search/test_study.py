"""A search, its space and its logger."""

import os
import time
from contextlib import contextmanager

import pytest
import spacy
import srsly
from optuna.trial import FrozenTrial, TrialState
from spacy.tokens import DocBin
from spacy.util import load_config

from spacy_psa.errors import InputError
from spacy_psa.laboratory.search.space import check_names, read_space
from spacy_psa.laboratory.search.study import (
    PRESENT,
    SILENCE,
    Search,
    is_interrupted,
    present,
    sign_of_life,
)
from spacy_psa.laboratory.search.trial_logger import trial_logger
from tests.helpers.paths import CONFIGS
from tests.helpers.searches import RATE, TOK2VEC, search_config, search_together, write_search
from tests.helpers.trainings import start_process

pytest.importorskip("optuna", reason="needs the extra `search`")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with `space.toml` and `train.spacy`, for train and dev."""
    return write_search(tmp_path_factory.mktemp("search"))


def searched(folder, storage, **settings):
    return Search(search_config(folder), read_space(folder / "space.toml"), storage, **settings)


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_an_interrupted_search_goes_on_as_if_it_had_not_stopped(folder, tmp_path, sampler):
    settings = {"sampler": sampler, "seed": 5, "startup": 100}
    uninterrupted = searched(folder, tmp_path / "a.db", **settings)
    expected = [uninterrupted.step() for _ in range(3)]

    broken = searched(folder, tmp_path / "b.db", **settings)
    first = broken.step()

    def interrupt(evaluation, score):
        if evaluation == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken.step(interrupt)
    assert broken.done == 1
    resumed = searched(folder, tmp_path / "b.db", **settings)
    assert resumed.done == 1
    found = [first, resumed.step(), resumed.step()]
    assert resumed.done == 3
    assert [t.params for t in found] == [t.params for t in expected]
    assert [t.value for t in found] == [t.value for t in expected]
    assert [t.state for t in found] == [TrialState.COMPLETE] * 3
    assert resumed.best.value == uninterrupted.best.value


def test_trainings_with_the_same_settings_have_the_same_score(folder, tmp_path):
    searches = [searched(folder, tmp_path / name, startup=100) for name in ("a.db", "b.db")]
    values = {RATE: 0.2, f"{TOK2VEC}.encode.hidden": 8, f"{TOK2VEC}.embed.*.words.lower": True}
    for search in (*searches, searches[0]):
        search.study.enqueue_trial(values)
    first, second = (search.step() for search in searches)
    assert first.params == second.params == values
    assert first.intermediate_values == second.intermediate_values
    # In one search, the same settings are trained once.
    evaluations = []
    third = searches[0].step(lambda *evaluation: evaluations.append(evaluation))
    assert (third.params, third.value, evaluations) == (values, first.value, [])
    assert searches[0].done == 2


def test_a_training_below_the_median_is_pruned_before_its_end(folder, tmp_path):
    search = searched(folder, tmp_path / "a.db", startup=1)
    names = f"{TOK2VEC}.encode.hidden", f"{TOK2VEC}.embed.*.words.lower"
    for rate in (0.4, 0.001):
        search.study.enqueue_trial({RATE: rate, names[0]: 8, names[1]: True})
    good, bad = search.step(), search.step()
    assert good.state == TrialState.COMPLETE and bad.state == TrialState.PRUNED
    assert good.value > bad.value
    assert len(bad.intermediate_values) < len(good.intermediate_values) == 4
    assert search.best.number == good.number
    assert search.done == 2


def test_the_score_is_the_best_of_the_evaluations(folder, tmp_path):
    trial = searched(folder, tmp_path / "a.db").step()
    assert trial.value == max(trial.intermediate_values.values())


def choosing(size):
    return {"training.batcher.size": {"type": "categorical", "choices": [size]}}


def test_a_corrected_space_replaces_a_search_in_which_every_training_failed(folder, tmp_path):
    config, storage = search_config(folder), tmp_path / "a.db"
    with pytest.raises(InputError, match=r"cannot be trained with .*eight"):
        Search(config, choosing("eight"), storage).step()
    search = Search(config, choosing(8), storage)
    assert search.done == 0
    assert search.step().params == {"training.batcher.size": 8}
    assert search.done == 1
    # From now on the file holds a training that is worth something.
    with pytest.raises(InputError, match="another config, space or overrides"):
        Search(config, choosing(4), storage)
    assert Search(config, choosing(8), storage).done == 1


def test_a_search_does_not_go_on_with_other_data(tmp_path):
    data = write_search(tmp_path) / "train.spacy"
    storage = tmp_path / "a.db"
    searched(tmp_path, storage).step()
    docs = [*DocBin().from_disk(data).get_docs(spacy.blank("en").vocab)]
    DocBin(docs=docs[1:]).to_disk(data)
    with pytest.raises(InputError, match=r"a\.db: .* other data, since .*train\.spacy has changed"):
        searched(tmp_path, storage)
    DocBin(docs=docs).to_disk(data)
    assert searched(tmp_path, storage).done == 1


def test_an_interrupted_training_is_not_replaced(folder, tmp_path):
    def interrupt(evaluation, score):
        raise KeyboardInterrupt

    config, storage = search_config(folder), tmp_path / "a.db"
    with pytest.raises(KeyboardInterrupt):
        Search(config, choosing(8), storage).step(interrupt)
    with pytest.raises(InputError, match="another config, space or overrides"):
        Search(config, choosing(4), storage)


@pytest.mark.parametrize("name", ["x?y", "a%20b.db", "{n}#1 é.db"])
def test_any_name_is_one_of_a_file(folder, tmp_path, name):
    searched(folder, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert searched(folder, tmp_path / name).done == 0


def test_a_combination_that_cannot_be_trained_is_left_out_once_another_could(folder, tmp_path):
    space = {"training.batcher.size": {"type": "categorical", "choices": [8, "eight"]}}
    search = Search(search_config(folder), space, tmp_path / "a.db", sampler="random")
    for size in (8, "eight"):
        search.study.enqueue_trial({"training.batcher.size": size})
    assert search.step().state == TrialState.COMPLETE
    failed = search.step()
    assert failed.state == TrialState.FAIL and "size" in failed.user_attrs["error"]
    assert failed.params == {"training.batcher.size": "eight"}
    assert search.done == 2 and search.best.number == 0


POSTGRES = os.environ.get("SPACY_PSA_POSTGRES", "")  # the URL of an empty database
no_postgres = pytest.mark.skipif(not POSTGRES, reason="SPACY_PSA_POSTGRES names no database")


@pytest.fixture(scope="module")
def five(folder, tmp_path_factory):
    """The settings and scores of five trials of one process."""
    storage = tmp_path_factory.mktemp("alone") / "alone.db"
    alone = searched(folder, storage, sampler="random", seed=5, startup=100)
    return sorted((str(t.params), t.value) for t in (alone.step() for _ in range(5)))


@pytest.mark.parametrize(
    "name",
    ["a.journal", "sqlite:///{}/a.db", pytest.param(POSTGRES, id="postgresql", marks=no_postgres)],
)
def test_several_processes_search_together_and_replace_one_that_is_killed(
    folder, tmp_path, name, five
):
    storage = name.format(tmp_path) if "://" in name else str(tmp_path / name)
    killed = start_process(search_together, folder, storage, 5, 1)
    shared = searched(folder, storage, sampler="random", seed=5)
    while killed.is_alive() and not shared.begun:  # else the other may do all of the work first
        time.sleep(0.05)
    other = start_process(search_together, folder, storage, 5, None)
    for process in (killed, other):
        process.join()
    assert [killed.exitcode, other.exitcode] == [-9, 0]
    # The trial of the killed process may have begun after the other one had ended.
    search_together(folder, storage, 5, None)
    found = searched(folder, storage, sampler="random", seed=5)
    assert found.done == 5 and found.step(limit=5) is None
    complete = found.study.get_trials(states=(TrialState.COMPLETE,))
    assert len(complete) == 5
    assert sorted((str(t.params), t.value) for t in complete) == five


def test_a_trial_that_has_just_begun_is_not_begun_again(folder, tmp_path, monkeypatch):
    storage = str(tmp_path / "a.journal")
    first, other = (searched(folder, storage, sampler="random") for _ in range(2))
    starter = os.getppid()

    @contextmanager
    def looked_at(trial):
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr("os.getpid", lambda: starter)
            assert other.step(limit=1) is None
        with present(trial):
            yield

    monkeypatch.setattr("spacy_psa.laboratory.search.study.present", looked_at)
    trial = first.step(limit=1)
    assert [t.number for t in other.ended] == [trial.number]
    assert len(other.study.get_trials()) == 1


def test_a_silent_process_of_this_machine_is_another_one_with_its_number():
    old, now = ({**sign_of_life(), "process": os.getppid()} for _ in range(2))
    old["time"] -= SILENCE + 1
    trials = [FrozenTrial.__new__(FrozenTrial) for _ in range(2)]
    for trial, sign in zip(trials, (old, now)):
        trial.user_attrs = {PRESENT: sign}
    assert [is_interrupted(trial) for trial in trials] == [True, False]


def test_a_trial_of_another_machine_is_waited_for(folder, tmp_path, monkeypatch):
    def interrupt(evaluation, score):
        raise KeyboardInterrupt

    storage = str(tmp_path / "a.journal")
    with pytest.raises(KeyboardInterrupt), monkeypatch.context() as elsewhere:
        elsewhere.setattr("socket.gethostname", lambda: "elsewhere")
        searched(folder, storage).step(interrupt)
    search = searched(folder, storage)
    assert search.begun == 1 and search.step(limit=1) is None
    later = time.time() + SILENCE + 1
    monkeypatch.setattr("time.time", lambda: later)
    assert search.step(limit=1).state == TrialState.COMPLETE
    assert search.done == 1


@pytest.mark.parametrize("name", ["a.journal", "a.db"])
def test_a_file_that_is_no_search_is_an_error(folder, tmp_path, name):
    (tmp_path / name).write_text("no search")
    with pytest.raises(InputError, match=f"{name}: cannot be opened as the"):
        searched(folder, tmp_path / name)


RANGE = '[a.b]\ntype = "{}"\nlow = {}\nhigh = {}\n'
SPACES = sorted((CONFIGS / "search").glob("*.toml"))
CONFIG_OF = {
    "bilstm": ["grid"],
    "idcnn": ["grid"],
    "transformer_en": ["tener", "transformer"],
    "transformer_zh": ["tener_zh", "transformer_zh"],
}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a", "is not a TOML file"),
        ("", "no setting to search"),
        ("a.b = 3", "a.b: 3 is not a range"),
        ('[a.b]\ntype = "real"', "a.b: type is 'real': choose from float, int, categorical"),
        ("[a.b]\nlow = 1", "a.b: type is None"),
        ('[a.b]\ntype = ["float"]', "a.b: type is ['float']"),
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        (f'[a.b]\ntype = "int"\nlow = 0\nhigh = {10**30}', "a.b: high is out of range"),
        (f'[a.b]\ntype = "int"\nlow = 0\nhigh = 1{"0" * 5000}', "is not a TOML file"),
        ('[a.b]\ntype = "float"\nlow = 0\nhigh = inf', "a.b: high is out of range"),
        ('[a.b]\ntype = "float"\nlow = 1', "a.b: high is None"),
        ('[a.b]\ntype = "int"\nlow = 1\nhigh = 2.5', "a.b: high is 2.5"),
        ('[a.b]\ntype = "int"\nlow = true\nhigh = 2', "a.b: low is True"),
        ('[a.b]\ntype = "float"\nlow = 2\nhigh = 1', "a.b: low is 2 and high 1"),
        ('[a.b]\ntype = "float"\nlow = 0\nhigh = 1\nlog = true', "log needs a low above 0"),
        ('[a.b]\ntype = "int"\nlow = 1\nhigh = 3\nstep = 0', "step is 0"),
        ('[a.b]\ntype = "int"\nlow = 1\nhigh = 3\nlog = "yes"', "log is 'yes'"),
        (
            '[a.b]\ntype = "int"\nlow = 1\nhigh = 3\nchoices = [1]',
            "'choices' is not an option of the type int",
        ),
        ('[a.b]\ntype = "categorical"', "choices: write a list"),
        ('[a.b]\ntype = ["float"]\nlow = 1\nhigh = 2', "a.b: type is ['float']: choose from"),
        (
            RANGE.format("int", 1, 10**30),
            "high is out of range: write a number from -2**53 to 2**53",
        ),
        (
            RANGE.format("float", 1, 10**400),
            "high is out of range: write a number from -2**53 to 2**53",
        ),
        (RANGE.format("float", "-inf", 1), "low is out of range: write"),
        (RANGE.format("float", "nan", 1), "low is out of range: write"),
        (RANGE.format("int", 1, 9) + f"step = {10**30}", "step is out of range: write"),
        (RANGE.format("int", 1, "9" * 5000), "not a TOML file"),
        (RANGE.format("int", 1, "0x" + "f" * 5000), "high is out of range: write"),
        ("a.b = 0x" + "f" * 5000, "not a TOML file"),
        (f'[a.b]\ntype = "categorical"\nchoices = [1, {10**30}]', "choices: write numbers from"),
        ('[a.b]\ntype = "categorical"\nchoices = [1.0, nan]', "choices: write numbers from"),
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a = " + "{a = " * 10_000, "nested too deeply"),
        (".".join("a" * 10_000) + " = 1", "nested too deeply"),
        ('[a.b]\ntype = "categorical"\nchoices = [[1, 2]]', "choices: write numbers"),
    ],
)
def test_a_bad_space_is_an_error_that_names_the_setting(tmp_path, text, reason):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_space(path)
    assert str(error.value).startswith(f"{path}: ") and reason in str(error.value)


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_the_spaces_of_the_paper_fit_their_configs(path):
    space = read_space(path)
    for name in CONFIG_OF[path.stem]:
        check_names(space, load_config(CONFIGS / "ner" / f"{name}.cfg", interpolate=False), path)


def test_the_logger_of_a_search_is_for_searches_only():
    with pytest.raises(InputError, match="ConsoleLogger"):
        trial_logger(None)(None, None, None)


def test_the_logger_of_the_config_goes_on(tmp_path):
    study = pytest.importorskip(
        "spacy_psa.laboratory.search.study", reason="needs the extra `search`"
    )
    folder = write_search(tmp_path)
    settings = search_config(folder)
    settings["training"]["logger"]["output_file"] = str(tmp_path / "log.jsonl")
    search = study.Search(settings, read_space(folder / "space.toml"), tmp_path / "a.db")
    trial = search.step()
    logged = [line["score"] for line in srsly.read_jsonl(tmp_path / "log.jsonl")]
    assert logged == pytest.approx(list(trial.intermediate_values.values()), abs=1e-4)
