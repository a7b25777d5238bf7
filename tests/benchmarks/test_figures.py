"""The figures on the pages are those of the records."""

import copy
import re

import pytest

from benchmarks import figures, lookup
from benchmarks.figures import fill, pages, stale_pages, written
from benchmarks.lookup import Lookup, records_of
from benchmarks.record import FOLDER
from spacy_psa.errors import InputError

ROOT = FOLDER.parent
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SCORE = re.compile(r"(?<![\d.:])\d\d\.\d\d(?: ± \d+\.\d+)?(?![\d.]| ±|<!-- )")
OF_PAPERS = {"93.55"}
PSA = 'test("conll2003/psa")'


def test_the_figures_on_all_pages_are_those_of_the_records():
    stale = [path.relative_to(ROOT).as_posix() for path in stale_pages(change=False)]
    assert stale == [], "run `python -m benchmarks.figures`"


def test_each_score_in_the_text_of_the_documentation_names_its_figure():
    unnamed = {}
    for path in pages():
        if FOLDER in path.parents or path.name == "papers.md":
            continue  # these also have scores of papers
        lines = CODE.sub("", path.read_text(encoding="utf8")).splitlines()
        found = [s for line in lines if line[:1] != "|" for s in SCORE.findall(line)]
        if set(found) - OF_PAPERS:
            unnamed[path.relative_to(ROOT).as_posix()] = found
    assert unnamed == {}


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("0.00", 90.734, "90.73"),
        ("9", 15612.4, "15,612"),
        ("1,000", 999.4, "999"),
        ("+0.1", 1.26, "+1.3"),
        ("-0.1", 1.26, "1.3"),
        ("7e-06", 9.5367e-06, "1e-05"),
        ("7.9e-06", 9.5367e-06, "9.5e-06"),
        ("0.00 ± 0.00", [25.0, 75.0], "50.00 ± 35.36"),
        ("0.00 ±\n0.00", [25.0, 75.0], "50.00 ± 35.36"),
        ("0.0", lookup.gap([0.25], [0.1]), "0.2"),
        ("no", True, "yes"),
    ],
)
def test_a_value_is_written_in_the_form_of_the_number(form, value, expected):
    assert written(form, value) == expected


def test_one_value_has_no_standard_deviation():
    with pytest.raises(InputError, match="no standard deviation"):
        written("0.00 ± 0.00", [90.7])


def test_the_number_before_a_comment_is_filled_in():
    text = f"an F1 of 0.00<!-- {PSA} -->, and 1.5 in\n0.00 ±\n0.10<!-- test(psa) -->%.\n"
    assert fill(text, "conll2003", "page") == (
        f"an F1 of 90.73<!-- {PSA} -->, and 1.5 in\n90.72 ± 0.02<!-- test(psa) -->%.\n"
    )


TABLE = """<!-- columns
dev F1 (best epoch) = best(record)
test F1 = test(record)
better = test(record) > 90.7
name = len(row)
-->
| system | name | dev F1 (best epoch) | test F1 | better | record |
| --- | --- | --- | --- | --- | --- |
| `psa` | 0 | 0.00 (1 of `5` or 1) | 0.00 | yes | [psa.json](results/psa.json) |
| mean of 3<!-- row: psa, psa-seed* --> | 0 | 0.00 ± 0.00 | not known |  |  |
"""


def test_the_numbers_of_a_row_are_those_of_its_record_or_comment():
    *_, first, second = fill(TABLE, "conll2003", "page").splitlines()
    start = "| `psa` | 3 | 94.85 (36 of `5` or 40) | 90.73 | yes |"
    assert first == f"{start} [psa.json](results/psa.json) |"
    row = "| mean of 3<!-- row: psa, psa-seed* --> | 14 | 94.77 ± 0.06 | not known |  |  |"
    assert second == row


def test_a_large_spread_can_be_filled_again():
    text = "| a | clicks |\n| --- | --- |\n| b | 0 ± 0 |\n"
    head = "<!-- columns\nclicks = [1000.0, 5000.0]\n-->\n"
    once = fill(head + text, "conll2003", "page")
    assert "| 3,000 ± 2,828 |" in once
    assert fill(once, "conll2003", "page") == once


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('1<!-- test("nothing") -->', "page: test.*no record is named 'nothing'"),
        ('1<!-- get("psa:scores:nothing") -->', "there is no 'nothing'"),
        ("1<!-- open('file') -->", "'open' is not defined"),
        (f"It is high.<!-- holds: {PSA} > 95 -->", "page: this does not hold any more"),
        (TABLE.replace("test F1 =", "test ="), r"no columns \['test'\]"),
        (TABLE.replace(" (1 of `5` or 1) | 0.00", " (1 of 5 or 1) | 0.00"), "more numbers"),
        (TABLE.replace("| not known |  |  |", "| not known |"), "4 cells for 6 columns"),
    ],
)
def test_a_page_that_cannot_be_filled_in_is_one_error(text, message):
    with pytest.raises(InputError, match=message):
        fill(text, "conll2003", "page")


def test_a_changed_record_makes_pages_stale(monkeypatch):
    changed = copy.deepcopy(records_of("conll2003"))
    changed["psa"]["results"]["scores"]["ents_f"] = 0.5
    of = {"conll2003": changed}
    monkeypatch.setattr(lookup, "records_of", lambda name: of.get(name) or records_of(name))
    page = ROOT / "benchmarks" / "conll2003" / "README.md"
    text = page.read_text(encoding="utf8")
    made = fill(text, "conll2003", "page")
    assert "| mean ± standard deviation of 3 | 94.77 ± 0.06 | 77.14 ± 23.51 |" in made


def test_checking_names_stale_pages_and_changes_none(tmp_path, monkeypatch, capsys):
    page = tmp_path / "README.md"
    page.write_text(f"1.00<!-- {PSA} -->\n", encoding="utf8")
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "pages", lambda: [page])
    monkeypatch.setattr("sys.argv", ["figures", "--check"])
    with pytest.raises(SystemExit, match=r"run `python -m benchmarks\.figures`"):
        figures.main()
    assert "README.md: not up to date" in capsys.readouterr().out
    assert page.read_text(encoding="utf8").startswith("1.00")
    monkeypatch.setattr("sys.argv", ["figures"])
    figures.main()
    assert page.read_text(encoding="utf8").startswith("90.73") and stale_pages(change=False) == []


def test_names_select_records_in_the_order_of_the_patterns():
    records = Lookup("conll2003")
    found = [record["name"] for record in records.records("psa-seed*, psa")]
    assert found == ["psa-seed1", "psa-seed2", "psa"]
    others = records.records("psa, systems/wsj-psa, resume-tener")
    assert [record["experiment"] for record in others] == ["conll2003", "systems", "systems"]


def test_epochs_without_an_evaluation_before_the_first_step():
    records = Lookup("conll2003")
    assert len(records.dev_between("psa", 0, 3)) == 3
    assert records.dev_at("psa", 3) == (pytest.approx(91.08, abs=0.005),)
    assert records.loss_at("bilstm_crf-half-stopped", 7) == pytest.approx(866, abs=0.5)
