"""`spacy-psa search`: what it tells and writes, going on, and bad arguments."""

import shutil
import socket

import pytest
import spacy
from spacy.cli.train import train
from spacy.util import load_config

from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.processes import run_elsewhere
from tests.helpers.searches import BASE, RATE, SPACE, override_words, search_config, write_search

pytest.importorskip("optuna", reason="needs the extra `search`")

run = command("search")
RANGE = '[{name}]\ntype = "float"\nlow = 0.1\nhigh = 0.5\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with `space.toml` and `train.spacy`, for train and dev."""
    return write_search(tmp_path_factory.mktemp("search"))


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory):
    """An uninterrupted search: its output, and the files that it wrote."""
    path = tmp_path_factory.mktemp("whole")
    words = ["--output", path / "best.cfg", "--trials", 3, "--seed", 3, "--sampler", "random"]
    result = succeed(run(BASE, folder / "space.toml", *words, *override_words(folder)))
    return result, path


def test_a_search_tells_its_trials_and_the_best(whole):
    result, _ = whole
    lines = result.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == ["trial 0", "trial 1", "trial 2"]
    scores = [float(line.partition(";")[0].split()[-1]) for line in lines[:3]]
    assert lines[3].startswith("Best of 3: trial ")
    assert float(lines[3].partition(";")[0].split()[-1]) == max(scores)
    assert max(scores) > min(scores)
    assert all(name in lines[0] for name in (RATE, "encode.hidden", "words.lower"))


def test_the_best_config_is_one_that_spacy_trains(whole, folder, tmp_path):
    result, path = whole
    best = load_config(path / "best.cfg", interpolate=False)
    base = search_config(folder)
    assert best["training"]["logger"] == base["training"]["logger"]
    assert best["corpora"]["train"]["path"] == "${paths.train}"
    told = result.stdout.splitlines()[3]
    rate = best["training"]["optimizer"]["learn_rate"]["initial_rate"]
    assert f"{RATE} = {rate}" in told
    train(path / "best.cfg", tmp_path)
    score = spacy.load(tmp_path / "model-best").meta["performance"]["ents_f"]
    assert f"{100 * score:.2f};" in told  # the training of the trial, once more


def test_more_trials_go_on_with_the_search(whole, folder, tmp_path):
    _, path = whole
    copy = tmp_path / "best.cfg.db"
    shutil.copy(path / "best.cfg.db", copy)
    words = [BASE, folder / "space.toml", "--output", tmp_path / "best.cfg"]
    words += ["--seed", 3, "--sampler", "random", *override_words(folder)]
    again = run(*words, "--trials", 3)
    assert again.stdout.splitlines()[0].startswith("Best of 3: trial ")
    assert (tmp_path / "best.cfg").read_text() == (path / "best.cfg").read_text()
    more = run(*words, "--trials", 4)
    assert more.stdout.splitlines()[0].startswith("trial 3: ")


@pytest.mark.parametrize("words", [["--jobs", 2], ["--engine", "ray", "--jobs", 2]], ids=str)
def test_several_trainings_at_a_time_find_what_one_finds(whole, folder, tmp_path, words, request):
    if "ray" in words:
        request.getfixturevalue("on_ray")
    alone, path = whole
    words = ["--output", tmp_path / "best.cfg", "--sampler", "random", "--seed", 3, *words]
    result = succeed(
        run(BASE, folder / "space.toml", "--trials", 3, *words, *override_words(folder))
    )
    lines, expected = result.stdout.splitlines(), alone.stdout.splitlines()
    assert sorted(lines[:3]) == sorted(expected[:3])
    assert lines[3:] == [expected[3], f"Written: {tmp_path / 'best.cfg'}"]
    assert (tmp_path / "best.cfg").read_text() == (path / "best.cfg").read_text()
    printed = [file.read_text() for file in tmp_path.glob("best.cfg.jobs/*/output.txt")]
    assert len(printed) == 2 and all("Best of" in text for text in printed)
    if "ray" not in words:  # which takes time to start
        again = run(BASE, folder / "space.toml", "--trials", 3, *words, *override_words(folder))
        assert again.stdout.splitlines() == lines[3:]  # nothing is left to train


def test_what_killed_processes_leave_is_trained_by_the_command(
    whole, folder, tmp_path, monkeypatch
):
    """The starter has run no process: it is as if all had been killed at once."""
    monkeypatch.setattr(
        "spacy_psa.laboratory.experiments.processes.run_locally", lambda *_, **__: (i for i in [[]])
    )
    words = ["--output", tmp_path / "best.cfg", "--sampler", "random", "--seed", 3, "--jobs", 2]
    result = run(BASE, folder / "space.toml", "--trials", 3, *words, *override_words(folder))
    assert result.stdout.splitlines()[:4] == whole[0].stdout.splitlines()[:4]


def test_a_first_combination_that_cannot_be_trained_is_the_error(folder, tmp_path):
    words = ["--output", tmp_path / "best.cfg", *override_words(folder)]
    words[words.index("--paths.train") + 1] = "none.spacy"
    result = run(BASE, folder / "space.toml", *words)
    assert_one_error(result, "none.spacy")
    assert not (tmp_path / "best.cfg").exists()


def test_a_value_of_the_wrong_kind_is_an_error_without_the_whole_config(folder, tmp_path):
    space = tmp_path / "words.toml"
    space.write_text('[training.dropout]\ntype = "categorical"\nchoices = ["a", "b"]\n')
    result = run(BASE, space, "--output", tmp_path / "best.cfg", *override_words(folder))
    assert_one_error(result, "training.dropout = ")
    assert "logger" not in result.stderr


def test_the_file_of_another_search_is_an_error(whole, folder, tmp_path):
    _, path = whole
    shutil.copy(path / "best.cfg.db", tmp_path / "a.db")
    (tmp_path / "space.toml").write_text(SPACE.replace("0.5", "0.6"))
    words = ["--storage", tmp_path / "a.db", *override_words(folder)]
    result = run(BASE, tmp_path / "space.toml", *words)
    assert result.exit_code == 2 and "another config, space or overrides" in result.stderr


def test_a_file_that_is_no_search_is_an_error(folder, tmp_path):
    (tmp_path / "a.db").write_text("no database" * 100)
    words = ["--storage", tmp_path / "a.db", *override_words(folder)]
    result = run(BASE, folder / "space.toml", *words)
    assert_one_error(result, "a.db: cannot be opened")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["none.cfg", "space.toml"], "none.cfg: there is no such config"),
        (["base.cfg", "none.toml"], "none.toml: there is no such search space"),
        (["base.cfg", "space.toml", "more.toml"], "more.toml: is an unexpected argument"),
        (
            ["base.cfg", "space.toml", "--none.size", "3"],
            "an override names a setting that it does not have",
        ),
        (["base.cfg", "space.toml", "--gpu-id", "99"], "--gpu-id 99"),
        (["base.cfg", "space.toml", "--jobs", "0"], "--jobs 0: set a number of trainings"),
        (["base.cfg", "space.toml", "--address", "auto"], "--address auto: needs --engine ray"),
        (["base.cfg", "space.toml", "--output", "."], "--output .: is a folder; use the name"),
        (
            ["base.cfg", "space.toml", "--engine", "ray", "--storage", "best.db"],
            "--storage best.db: machines cannot share it; use NAME.journal",
        ),
    ],
)
def test_bad_arguments_give_one_line_and_code_2(folder, tmp_path, monkeypatch, words, reason):
    monkeypatch.chdir(tmp_path)
    shutil.copy(folder / "space.toml", "space.toml")
    shutil.copy(BASE, "base.cfg")
    result = run(*words)
    assert_one_error(result, reason)
    assert not list(tmp_path.glob("*.db"))


@pytest.mark.parametrize("address", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "localhost:99999"])
def test_an_address_at_which_nothing_answers_is_an_error_at_once(
    folder, tmp_path, monkeypatch, address
):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'spacy-psa[ray]'")
    monkeypatch.chdir(tmp_path)
    with socket.socket() as closed:  # bound, but it does not listen
        closed.bind(("127.0.0.1", 0))
        address = address.format(closed.getsockname()[1])
        words = ["--engine", "ray", "--address", address, *override_words(folder)]
        result = run(BASE, folder / "space.toml", *words)
    assert_one_error(result, f"--address {address}: there is no Ray cluster (")
    assert not list(tmp_path.iterdir())


def test_without_optuna_there_is_one_line(folder, tmp_path):
    code = (
        "import sys, json; sys.modules['optuna'] = None\n"
        "from typer.testing import CliRunner\n"
        "from spacy_psa.app import app\n"
        "result = CliRunner().invoke(app, ['search', *sys.argv[1:]])\n"
        "print(json.dumps([result.exit_code, result.stderr]))"
    )
    code, stderr = run_elsewhere(code, BASE, folder / "space.toml")
    assert code == 2 and "spacy-psa[search]" in stderr and stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("training.optimiser.momentum", "no 'optimiser' in [training]; did you mean 'optimizer'?"),
        ("training.optimizer.momentum.more", "no 'more' in [training.optimizer.momentum]"),
        ("word.width", "the config has no 'word' in its sections"),
        ("training.optimizer", "is a section"),
    ],
)
def test_a_setting_that_the_config_lacks_is_an_error(folder, tmp_path, name, reason):
    path = tmp_path / "space.toml"
    path.write_text(RANGE.format(name=name))
    result = run(BASE, path, *override_words(folder))
    assert_one_error(result, name, reason)
