"""`spacy-psa merge-config`: values of the command line that are wrong."""

import pytest

from tests.helpers.commands import assert_one_error, command
from tests.helpers.paths import CONFIGS

run = command("merge-config")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("foo", "foo: has no '='; give a setting and its value"),
        ("training.max_epochs", "training.max_epochs: has no '='"),
        ("training.none=3", "has no setting 'training.none'"),
        ("training.optimizer=3", "training.optimizer is a section"),
    ],
)
def test_a_wrong_value_is_one_error_and_nothing_is_written(tmp_path, value, reason):
    (tmp_path / "settings.cfg").write_text("")
    base, out = CONFIGS / "ner" / "psa.cfg", tmp_path / "out.cfg"
    assert_one_error(run(base, tmp_path / "settings.cfg", out, value), reason)
    assert not out.exists()
