"""Plans: what they stand for, and one error for each that is wrong."""

import pytest

from spacy_psa.errors import InputError
from spacy_psa.laboratory.experiments.plan import read_plan

GOOD = 'seeds = [1, 2]\n[runs.a]\nconfig = "a.cfg"\n'


def read(folder, text):
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf8")
    return read_plan(path)


def test_a_run_has_what_it_says_and_what_the_plan_says(tmp_path):
    (tmp_path / "test.spacy").touch()
    text = f"""
        seeds = [1, 2]
        layers = ["corpus.cfg"]
        [paths]
        train = "train.spacy"
        dev = "dev.spacy"
        test = "{tmp_path / "test.spacy"}"
        [overrides]
        training.max_epochs = 3
        training.dropout = 0.1
        [runs.a]
        config = "a.cfg"
        [runs.b]
        config = "b.cfg"
        seeds = [7]
        final = true
        layers = ["small.cfg"]
        paths = {{dev = "other.spacy"}}
        overrides = {{"training.dropout" = 0.2}}
    """
    plan = read(tmp_path, text)
    a, b = plan.runs
    assert (plan.name, a.name, str(a.config), a.seeds, a.test) == (
        "plan",
        "a",
        "a.cfg",
        (1, 2),
        None,
    )
    assert [str(path) for path in b.layers] == ["corpus.cfg", "small.cfg"]
    assert b.seeds == (7,) and b.test == tmp_path / "test.spacy"
    assert a.settings == {
        "paths.train": "train.spacy",
        "paths.dev": "dev.spacy",
        "training.max_epochs": 3,
        "training.dropout": 0.1,
    }
    assert b.settings["training.dropout"] == 0.2 and b.settings["paths.dev"] == "other.spacy"


def test_settings_of_the_run_come_after_those_of_the_plan(tmp_path):
    rest = '[overrides]\nx.rate = 1\nx.optimizer = {"@optimizers" = "Adam.v1"}\n'
    own = "[runs.a.overrides]\nx.optimizer.rate = 2\nx.rate = 3\n"
    (run,) = read(tmp_path, "seeds = [1]\n" + rest + '[runs.a]\nconfig = "a.cfg"\n' + own).runs
    assert list(run.settings.items()) == [
        ("x.optimizer", {"@optimizers": "Adam.v1"}),
        ("x.optimizer.rate", 2),
        ("x.rate", 3),
    ]


def test_a_grid_stands_for_all_combinations(tmp_path):
    grid = '[runs.a.grid]\n"x.window" = [5, 10]\ny.word = ["${word.cnn}", "${word.tener}"]\n'
    plan = read(tmp_path, GOOD + grid)
    assert [run.name for run in plan.runs] == [
        "a-window=5-word=word.cnn",
        "a-window=5-word=word.tener",
        "a-window=10-word=word.cnn",
        "a-window=10-word=word.tener",
    ]
    assert plan.runs[2].settings == {"x.window": 10, "y.word": "${word.cnn}"}


def test_a_section_that_names_a_function_is_one_value(tmp_path):
    text = GOOD + '[runs.a.overrides.training.optimizer]\n"@optimizers" = "Adam.v1"\n'
    assert read(tmp_path, text).runs[0].settings == {
        "training.optimizer": {"@optimizers": "Adam.v1"}
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no run"),
        ("seeds = [1]\n[runs]\n", "has no run"),
        ("seeds = [1\n", "is not a TOML file"),
        (
            "sedes = [1]\n" + GOOD.partition("\n")[2],
            "'sedes' is not a key of it; did you mean 'seeds'",
        ),
        (GOOD + 'confg = "b.cfg"\n', "[runs.a]: 'confg' is not a key of it; did you mean 'config'"),
        (GOOD + "zzz = 1\n", "choose from config, paths"),
        ("seeds = [1]\n[runs.a]\n", "[runs.a]: has no config"),
        ('[runs.a]\nconfig = "a.cfg"\n', "[runs.a]: has no seeds"),
        ("seeds = [1, 2, 1]\n" + GOOD.partition("\n")[2], "seeds: 1 is there twice"),
        (GOOD + "seeds = [3, 3]\n", "[runs.a]: seeds: 3 is there twice"),
        ("seeds = [true]\n" + GOOD.partition("\n")[2], "seeds: True is not a whole"),
        ("seeds = [-1]\n" + GOOD.partition("\n")[2], "seeds: -1 is not a whole"),
        ("seeds = 1\n" + GOOD.partition("\n")[2], "seeds is 1: write a list"),
        (GOOD + 'final = "yes"\n', "final is 'yes': write true or false"),
        (GOOD + "final = true\n", "is final, but [paths] has no test"),
        (GOOD + "paths = {train = 3}\n", "paths: write strings"),
        (GOOD + "layers = [3]\n", "layers: write strings"),
        (GOOD + "overrides = {system.seed = 3}\n", "system.seed is set by seeds"),
        (GOOD + "grid = {training.seed = [3]}\n", "training.seed is set by seeds"),
        (GOOD + "grid = {training.dropout = 0.5}\n", "grid: training.dropout is 0.5: write a list"),
        (GOOD + "grid = {training.dropout = []}\n", "write a list of values"),
        (GOOD + "grid = {training.dropout = [0.1, 0.2, 0.10]}\n", "training.dropout has 0.1 twice"),
        (GOOD + "seeds = []\n", "[runs.a]: seeds: write at least one seed, or leave seeds out"),
        ("seeds = []\n" + GOOD.partition("\n")[2], "seeds: write at least one seed"),
        ("seeds = [4294967296]\n" + GOOD.partition("\n")[2], "from 0 on, below 2**32"),
        (GOOD + "overrides = {training.optimizer = {}}\n", "training.optimizer is an empty table"),
        (
            GOOD + 'overrides = {training.logger.output_file = "x"}\n',
            "training.logger.output_file is the log of each training",
        ),
        (
            GOOD + 'overrides = {training.logger.logger.output_file = "x"}\n',
            "training.logger.logger.output_file is the log",
        ),
        (GOOD + "overrides = {training.max_steps = nan}\n", "training.max_steps is nan: write"),
        (GOOD + "grid = {training.dropout = [0.1, -inf]}\n", "training.dropout is -inf: write"),
        (GOOD + 'overrides = {x = {"@y" = 1, z = [inf]}}\n', "write numbers that are finite"),
        (GOOD + '[runs."a/b"]\nconfig = "b.cfg"\n', "[runs.a/b]: a name has letters"),
        (GOOD + f'[runs.{"b" * 300}]\nconfig = "b.cfg"\n', "is too long for the name of a folder"),
        (GOOD + f'grid = {{x = ["{"y" * 300}"]}}\n', "is too long for the name of a folder"),
        (GOOD + '[runs.A]\nconfig = "b.cfg"\n', "two runs, 'a' and 'A', write one result"),
        (GOOD + 'grid = {x = ["$y", "y"]}\n', "write one result"),
        (GOOD + '[runs.a]\nconfig = "b.cfg"\n', "is not a TOML file"),
        (GOOD + "seeds = [0x" + "f" * 5000 + "]", "is not a TOML file"),
        (GOOD + "overrides." + ".".join("a" * 2000) + " = 1", "is nested too deeply"),
        (GOOD + "[[runs.b]]\n", "b is [{}]: write a table"),
    ],
)
def test_a_plan_that_is_wrong_is_one_error(tmp_path, text, reason):
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert reason in str(error.value) and "plan.toml" in str(error.value)


def test_a_plan_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(InputError, match="there is no such plan"):
        read_plan(tmp_path / "none.toml")
