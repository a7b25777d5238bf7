"""The pages of the documentation that cite figures: each figure is that of a record."""

import re

import pytest

from benchmarks.cited import PAGES
from benchmarks.record import FOLDER
from benchmarks.tables import PLACE, experiments, plain, render

ROOT = FOLDER.parent
EVERYTHING = {each.name: each.records for each in experiments()}
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SCORE = re.compile(r"(?<![\d.:])\d\d\.\d\d(?![\d.])")
OF_PAPERS = {"93.55"}
WRITTEN = [
    ROOT / "README.md",
    *sorted(
        path
        for path in (ROOT / "docs").rglob("*.md")
        if "reference" not in path.parts and path.name != "papers.md"
    ),
]


def text(page):
    return (ROOT / page).read_text(encoding="utf8")


def prose(page):
    return plain(PLACE.sub("", CODE.sub("", text(page))))


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_of_a_page_are_those_of_the_records(page):
    made = render(text(page), PAGES[page].tables, EVERYTHING)
    assert made == text(page), "run `python -m benchmarks.tables`"


@pytest.mark.parametrize("page", PAGES)
def test_the_figures_in_the_text_of_a_page_are_those_of_the_records(page):
    claims = PAGES[page].claims(EVERYTHING)
    assert claims
    assert [claim for claim in claims if claim not in prose(page)] == []


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_score_in_the_text_of_a_page_is_in_a_phrase_that_is_checked(path):
    page = path.relative_to(ROOT).as_posix()
    claims = PAGES[page].claims(EVERYTHING) if page in PAGES else []
    checked = {score for claim in claims for score in SCORE.findall(claim)}
    assert set(SCORE.findall(prose(page))) - checked - OF_PAPERS == set()


def test_a_changed_record_makes_the_pages_stale():
    psa = EVERYTHING["conll2003"]["psa"]
    results = {**psa["results"], "scores": {**psa["results"]["scores"], "ents_f": 0.5}}
    conll2003 = {**EVERYTHING["conll2003"], "psa": {**psa, "results": results}}
    changed = {**EVERYTHING, "conll2003": conll2003}
    page = PAGES["docs/how-to/choose.md"]
    made = render(text("docs/how-to/choose.md"), page.tables, changed)
    assert "| `psa.cfg`, 3 seeds | PSA-BiLSTM-CRF | 94.77 ± 0.06 | 77.14 ± 23.51 |" in made
    assert page.claims(changed) != page.claims(EVERYTHING)
