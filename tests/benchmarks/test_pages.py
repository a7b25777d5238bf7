"""The pages of benchmarks/ have their sections, name every file, and link to files that exist."""

import re

from benchmarks.record import FOLDER

INDEX = FOLDER / "README.md"
EXPERIMENTS = sorted(FOLDER.glob("*/README.md"))
SECTIONS = ["Question", "How to run", "Results", "Files"]


def text(path):
    return path.read_text(encoding="utf8")


def test_each_folder_with_records_is_an_experiment_in_the_index():
    folders = {path.parents[1].name for path in FOLDER.rglob("*.json")}
    assert folders == {page.parent.name for page in EXPERIMENTS} and len(folders) >= 10
    assert [name for name in folders if f"]({name}/README.md)" not in text(INDEX)] == []


def test_pages_have_their_sections_in_order():
    wrong = {}
    for page in EXPERIMENTS:
        headings = re.findall(r"^## (.+)$", text(page), re.MULTILINE)
        end = ["Not reached", "Files"] if "Not reached" in headings else ["Results", "Files"]
        if [name for name in headings if name != "Not reached"] != SECTIONS or headings[-2:] != end:
            wrong[page.parent.name] = headings
    assert wrong == {}


def test_every_file_is_named_on_the_page_of_its_folder():
    files = (path for path in FOLDER.rglob("*") if path.is_file() and path != INDEX)
    unnamed = []
    for path in files:
        place = path.relative_to(FOLDER)
        if "__pycache__" in place.parts or path.name in ("__init__.py", "README.md"):
            continue
        page = INDEX if len(place.parts) == 1 else FOLDER / place.parts[0] / "README.md"
        # As a whole name: "psa.json" is not named by "half-psa.json".
        if not re.search(rf"(?<![\w.-]){re.escape(path.name)}(?![\w-])", text(page)):
            unnamed.append(place.as_posix())
    assert unnamed == []


def test_links_lead_to_files():
    pages = [INDEX, *EXPERIMENTS]
    links = [
        (page.parent, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text(page))
    ]
    assert len(links) > 300
    assert [link for folder, link in links if not (folder / link).exists()] == []
