"""Hyper-parameter search: spaces, trials, pruning, and going on after an interruption."""

import shutil
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.tokens import DocBin
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_psa.cli.app import app
from spacy_psa.errors import InputError
from spacy_psa.search.space import check_names, read_space

optuna = pytest.importorskip("optuna", reason="needs the extra `search`")
from optuna.trial import TrialState  # noqa: E402

from spacy_psa.search.study import Search  # noqa: E402
from tests.helpers.pipelines import make_examples
from tests.helpers.processes import run_elsewhere

ROOT = Path(__file__).parents[2]
NER = ROOT / "configs" / "ner"
SPACES = sorted((ROOT / "configs" / "search").glob("*.toml"))
CONFIG_OF = {
    "bilstm": ["grid"],
    "idcnn": ["grid"],
    "transformer_en": ["tener", "transformer"],
    "transformer_zh": ["tener_zh", "transformer_zh"],
}
TOK2VEC = "components.ner.model.tok2vec"
TINY = {
    f"{TOK2VEC}.embed.*.words.width": 8,
    f"{TOK2VEC}.embed.*.characters.width": 4,
    f"{TOK2VEC}.embed.*.characters.hidden": 4,
    f"{TOK2VEC}.encode.hidden": 8,
    "training.max_steps": 12,
    "training.eval_frequency": 4,
}
RATE = "training.optimizer.learn_rate.initial_rate"
SPACE = f"""
[{RATE}]
type = "float"
low = 0.001
high = 0.5
log = true

[{TOK2VEC}.encode.hidden]
type = "int"
low = 4
high = 8
step = 4

["{TOK2VEC}.embed.*.words"]
lower = {{type = "categorical", choices = [true, false]}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with `space.toml` and `train.spacy`, for train and dev."""
    path = tmp_path_factory.mktemp("search")
    docs = [example.reference for example in make_examples(spacy.blank("en"))]
    DocBin(docs=docs * 2).to_disk(path / "train.spacy")
    (path / "space.toml").write_text(SPACE)
    return path


def overrides(folder):
    data = str(folder / "train.spacy")
    return {**TINY, "paths.train": data, "paths.dev": data}


def arguments(folder):
    return [word for name, value in overrides(folder).items() for word in (f"--{name}", str(value))]


def config(folder):
    return load_config(NER / "bilstm_crf.cfg", overrides=overrides(folder), interpolate=False)


def run(*words):
    return CliRunner().invoke(app, ["search", *map(str, words)])


def searched(folder, storage, **settings):
    return Search(config(folder), read_space(folder / "space.toml"), storage, **settings)


# Searching


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory):
    """An uninterrupted search: its output, and the files that it wrote."""
    path = tmp_path_factory.mktemp("whole")
    words = ["--output", path / "best.cfg", "--trials", 3, "--seed", 3, "--sampler", "random"]
    result = run(NER / "bilstm_crf.cfg", folder / "space.toml", *words, *arguments(folder))
    assert result.exit_code == 0, result.output
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
    from spacy.cli.train import train

    result, path = whole
    best = load_config(path / "best.cfg", interpolate=False)
    base = config(folder)
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
    words = [NER / "bilstm_crf.cfg", folder / "space.toml", "--output", tmp_path / "best.cfg"]
    words += ["--seed", 3, "--sampler", "random", *arguments(folder)]
    again = run(*words, "--trials", 3)
    assert again.stdout.splitlines()[0].startswith("Best of 3: trial ")
    assert (tmp_path / "best.cfg").read_text() == (path / "best.cfg").read_text()
    more = run(*words, "--trials", 4)
    assert more.stdout.splitlines()[0].startswith("trial 3: ")


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
    search = searched(folder, tmp_path / "a.db", startup=100)
    values = {RATE: 0.2, f"{TOK2VEC}.encode.hidden": 8, f"{TOK2VEC}.embed.*.words.lower": True}
    search.study.enqueue_trial(values)
    search.study.enqueue_trial(values)
    first, second = search.step(), search.step()
    assert first.params == second.params == values
    assert first.intermediate_values == second.intermediate_values


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


def test_a_combination_that_cannot_be_trained_is_left_out_once_another_could(folder, tmp_path):
    space = {"training.batcher.size": {"type": "categorical", "choices": [8, "eight"]}}
    search = Search(config(folder), space, tmp_path / "a.db", sampler="random")
    for size in (8, "eight"):
        search.study.enqueue_trial({"training.batcher.size": size})
    assert search.step().state == TrialState.COMPLETE
    failed = search.step()
    assert failed.state == TrialState.FAIL and "eight" in failed.user_attrs["error"]
    assert search.done == 2 and search.best.number == 0


# Bad input


def test_a_first_combination_that_cannot_be_trained_is_the_error(folder, tmp_path):
    words = ["--output", tmp_path / "best.cfg", *arguments(folder)]
    words[words.index("--paths.train") + 1] = "none.spacy"
    result = run(NER / "bilstm_crf.cfg", folder / "space.toml", *words)
    assert result.exit_code == 2
    assert "none.spacy" in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "best.cfg").exists()


def test_the_file_of_another_search_is_an_error(whole, folder, tmp_path):
    _, path = whole
    shutil.copy(path / "best.cfg.db", tmp_path / "a.db")
    (tmp_path / "space.toml").write_text(SPACE.replace("0.5", "0.6"))
    words = ["--storage", tmp_path / "a.db", *arguments(folder)]
    result = run(NER / "bilstm_crf.cfg", tmp_path / "space.toml", *words)
    assert result.exit_code == 2 and "another config, space or overrides" in result.stderr


def test_a_file_that_is_no_search_is_an_error(folder, tmp_path):
    (tmp_path / "a.db").write_text("no database" * 100)
    words = ["--storage", tmp_path / "a.db", *arguments(folder)]
    result = run(NER / "bilstm_crf.cfg", folder / "space.toml", *words)
    assert result.exit_code == 2 and "a.db: cannot be opened" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["none.cfg", "space.toml"], "none.cfg: there is no such config"),
        (["base.cfg", "none.toml"], "none.toml: there is no such search space"),
        (["base.cfg", "space.toml", "more.toml"], "more.toml: an argument too many"),
        (["base.cfg", "space.toml", "--none.size", "3"], "an override of what it lacks"),
        (["base.cfg", "space.toml", "--gpu-id", "99"], "--gpu-id 99"),
    ],
)
def test_bad_arguments_give_one_line_and_code_2(folder, tmp_path, monkeypatch, words, reason):
    monkeypatch.chdir(tmp_path)
    shutil.copy(folder / "space.toml", "space.toml")
    shutil.copy(NER / "bilstm_crf.cfg", "base.cfg")
    result = run(*words)
    assert result.exit_code == 2
    assert reason in result.stderr and result.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*.db"))


def test_without_optuna_there_is_one_line(folder, tmp_path):
    code = (
        "import sys, json; sys.modules['optuna'] = None\n"
        "from typer.testing import CliRunner\n"
        "from spacy_psa.cli.app import app\n"
        "result = CliRunner().invoke(app, ['search', *sys.argv[1:]])\n"
        "print(json.dumps([result.exit_code, result.stderr]))"
    )
    code, stderr = run_elsewhere(code, NER / "psa.cfg", folder / "space.toml")
    assert code == 2 and "spacy-psa[search]" in stderr and stderr.count("\n") == 1


RANGE = '[{name}]\ntype = "float"\nlow = 0.1\nhigh = 0.5\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a", "not a TOML file"),
        ("", "no setting to search"),
        ("a.b = 3", "a.b: 3 is no range"),
        ('[a.b]\ntype = "real"', "a.b: type is 'real': take one of float, int, categorical"),
        ("[a.b]\nlow = 1", "a.b: type is None"),
        ('[a.b]\ntype = "float"\nlow = 1', "a.b: high is None"),
        ('[a.b]\ntype = "int"\nlow = 1\nhigh = 2.5', "a.b: high is 2.5"),
        ('[a.b]\ntype = "int"\nlow = true\nhigh = 2', "a.b: low is True"),
        ('[a.b]\ntype = "float"\nlow = 2\nhigh = 1', "a.b: low is 2 and high 1"),
        ('[a.b]\ntype = "float"\nlow = 0\nhigh = 1\nlog = true', "log needs a low above 0"),
        ('[a.b]\ntype = "int"\nlow = 1\nhigh = 3\nstep = 0', "step is 0"),
        ('[a.b]\ntype = "int"\nlow = 1\nhigh = 3\nlog = "yes"', "log is 'yes'"),
        ('[a.b]\ntype = "int"\nlow = 1\nhigh = 3\nchoices = [1]', "'choices' is no option"),
        ('[a.b]\ntype = "categorical"', "choices: give a list"),
        ('[a.b]\ntype = "categorical"\nchoices = [[1, 2]]', "choices: give numbers"),
    ],
)
def test_a_bad_space_is_an_error_that_names_the_setting(tmp_path, text, reason):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_space(path)
    assert str(error.value).startswith(f"{path}: ") and reason in str(error.value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("training.optimiser.momentum", "no 'optimiser' in [training]; did you mean 'optimizer'?"),
        ("training.optimizer.momentum.more", "no 'more' in [training.optimizer.momentum]"),
        ("training.optimizer", "is a section"),
    ],
)
def test_a_setting_that_the_config_lacks_is_an_error(folder, tmp_path, name, reason):
    path = tmp_path / "space.toml"
    path.write_text(RANGE.format(name=name))
    result = run(NER / "bilstm_crf.cfg", path, *arguments(folder))
    assert result.exit_code == 2
    assert name in result.stderr and reason in result.stderr and result.stderr.count("\n") == 1


def test_the_logger_of_a_search_is_for_searches_only():
    from spacy_psa.search.trial_logger import trial_logger

    with pytest.raises(InputError, match="ConsoleLogger"):
        trial_logger(None)(None, None, None)


def test_the_logger_of_the_config_goes_on(folder, tmp_path):
    settings = config(folder)
    settings["training"]["logger"]["output_file"] = str(tmp_path / "log.jsonl")
    search = Search(settings, read_space(folder / "space.toml"), tmp_path / "a.db")
    trial = search.step()
    logged = [line["score"] for line in srsly.read_jsonl(tmp_path / "log.jsonl")]
    assert logged == pytest.approx(list(trial.intermediate_values.values()), abs=1e-4)


# The spaces of the TENER paper, T-14


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_the_spaces_of_the_paper_fit_their_configs(path):
    space = read_space(path)
    for name in CONFIG_OF[path.stem]:
        check_names(space, load_config(NER / f"{name}.cfg", interpolate=False), path)


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("bilstm", [{1, 2}, {100, 200, 300, 400, 600}, {0.01, 0.007, 0.005}]),
        ("idcnn", [{2, 3, 4, 5, 6}, {200, 400, 600, 800}, {2e-3, 1.5e-3, 1e-3, 7e-4}]),
        (
            "transformer_en",
            [{1, 2}, {8, 10, 12, 14}, {64, 80, 96, 112, 128}, {9e-4, 7e-4, 5e-4}],
        ),
        ("transformer_zh", [{1, 2}, {4, 6, 8, 10}, {32, 48, 64, 80, 96}, {1e-3, 5e-4, 7e-4}]),
    ],
)
def test_the_spaces_are_those_of_the_paper(name, choices):
    space = read_space(ROOT / "configs" / "search" / f"{name}.toml")
    found = [
        set(entry["choices"]) if "choices" in entry else {*range(entry["low"], entry["high"] + 1)}
        for entry in space.values()
    ]
    assert found == choices
