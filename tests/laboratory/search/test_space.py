"""Search spaces: their errors, and those that come with the package."""

import pytest
from spacy.util import load_config

from spacy_psa.errors import InputError
from spacy_psa.laboratory.search.space import check_names, read_space
from tests.helpers.paths import CONFIGS

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
