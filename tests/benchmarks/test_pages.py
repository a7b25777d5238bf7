"""The pages of benchmarks/: their tables and numbers are those of the records, they name every
file, and their links lead somewhere."""

import re
import shutil

import pytest

from benchmarks.index import PAGE, main, render_index
from benchmarks.record import FOLDER
from benchmarks.tables import PLACE, experiments, plain, render, write_pages
from spacy_psa.errors import InputError

EXPERIMENTS = {each.name: each for each in experiments()}
SECTIONS = ("Question", "How to run", "Results", "Files")


def text(experiment):
    return experiment.page.read_text(encoding="utf8")


def test_each_folder_with_results_is_an_experiment():
    folders = {path.parents[1].name for path in FOLDER.rglob("*.json")}
    assert folders == set(EXPERIMENTS) and len(folders) >= 10


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_the_tables_of_a_page_are_those_of_its_records(experiment):
    made = render(text(experiment), experiment.tables, experiment.records)
    assert made == text(experiment), "run `python -m benchmarks.tables`"


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_the_numbers_in_the_text_of_a_page_are_those_of_its_records(experiment):
    # Without the tables, so that a phrase cannot be found in one of them.
    prose = plain(PLACE.sub("", text(experiment)))
    claims = experiment.claims(experiment.records)
    assert claims
    assert [claim for claim in claims if claim not in prose] == []


def test_the_index_is_up_to_date():
    assert PAGE.read_text(encoding="utf8") == render_index(), "run `python -m benchmarks.index`"


def test_a_changed_record_makes_its_page_stale(tmp_path, monkeypatch):
    psa = EXPERIMENTS["conll2003"].records["psa"]
    scores = {**psa["results"]["scores"], "ents_f": 0.5}
    changed = {**psa, "results": {**psa["results"], "scores": scores}}
    experiment = EXPERIMENTS["conll2003"]
    records = {**experiment.records, "psa": changed}
    made = render(text(experiment), experiment.tables, records)
    assert made != text(experiment) and "| 90.92 | 50.00 |" in made
    assert experiment.headline(records) != experiment.headline(experiment.records)
    assert experiment.claims(records) != experiment.claims(experiment.records)


def test_the_table_of_seeds_has_their_mean_and_standard_deviation():
    experiment = EXPERIMENTS["conll2003"]
    psa = experiment.records["psa"]
    scores = {**psa["results"]["scores"], "ents_f": psa["results"]["scores"]["ents_f"] + 0.002}
    other = {**psa, "seed": 3, "results": {**psa["results"], "scores": scores}}
    baseline = experiment.records["bilstm_crf"]
    records = {"bilstm_crf": baseline, "psa": psa, "psa-seed3": other}
    rows = experiment.tables["seeds"](records).splitlines()
    assert (
        "| psa | 3 | 94.85 (36 of 40) | 90.93 | [psa-seed3.json](results/psa-seed3.json) |" in rows
    )
    assert rows[-1] == ("| psa | mean ± standard deviation of 2 | 94.85 ± 0.00 | 90.83 ± 0.14 |  |")


def test_a_page_must_have_a_place_for_each_table_and_no_other():
    experiment = EXPERIMENTS["parseval"]
    with pytest.raises(InputError, match="the page has places for"):
        render("no table here", experiment.tables, experiment.records)
    with pytest.raises(InputError, match="the page has places for"):
        render(text(experiment), {}, experiment.records)


def test_checking_reports_stale_pages_and_changes_none(tmp_path, monkeypatch):
    for name in ("benchmarks", "docs"):
        shutil.copytree(FOLDER.parent / name, tmp_path / name)
    shutil.copy(FOLDER.parent / "README.md", tmp_path)
    monkeypatch.setattr("benchmarks.tables.FOLDER", tmp_path / "benchmarks")
    page = tmp_path / "benchmarks" / "parseval" / "README.md"
    stale = page.read_text(encoding="utf8").replace("87.77", "88.77")
    page.write_text(stale, encoding="utf8")
    assert write_pages(check=True) == ["benchmarks/parseval/README.md"]
    assert page.read_text(encoding="utf8") == stale
    assert write_pages(check=False) == ["benchmarks/parseval/README.md"]
    assert page.read_text(encoding="utf8") == text(EXPERIMENTS["parseval"])
    assert write_pages(check=True) == []


def test_checking_the_index_fails_where_it_is_stale(tmp_path, monkeypatch):
    page = tmp_path / "README.md"
    page.write_text("# Benchmarks\n", encoding="utf8")
    monkeypatch.setattr("benchmarks.index.PAGE", page)
    monkeypatch.setattr("sys.argv", ["index", "--check"])
    with pytest.raises(SystemExit, match="not up to date"):
        main()
    assert page.read_text(encoding="utf8") == "# Benchmarks\n"
    monkeypatch.setattr("sys.argv", ["index"])
    main()
    assert page.read_text(encoding="utf8") == render_index()


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_a_page_has_its_sections_in_order(experiment):
    headings = re.findall(r"^## (.+)$", text(experiment), re.MULTILINE)
    assert [name for name in headings if name != "Not reached"] == list(SECTIONS)
    if "Not reached" in headings:
        assert headings[-2:] == ["Not reached", "Files"]


def files():
    found = (path for path in FOLDER.rglob("*") if path.is_file())
    return sorted(path for path in found if "__pycache__" not in path.parts and path != PAGE)


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_every_file_is_named_on_the_page_of_its_folder(path):
    place = path.relative_to(FOLDER)
    if len(place.parts) == 1 or path.name in ("__init__.py", "README.md"):
        page = PAGE.read_text(encoding="utf8")
        name = place.as_posix() if path.name == "README.md" else path.name
    else:
        page = (FOLDER / place.parts[0] / "README.md").read_text(encoding="utf8")
        name = path.name
    # As a whole name: "psa.json" is not named by "half-psa.json".
    assert re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", page), f"{name} is on no page"


@pytest.mark.parametrize("page", sorted(FOLDER.rglob("README.md")), ids=lambda p: p.parent.name)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf8"))
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []
