"""The site builds strictly, its links lead somewhere, and it needs nothing from elsewhere."""

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import srsly

from tests.helpers.patience import PATIENCE
from tests.helpers.quick_python import PYTHON

pytest.importorskip("zensical")  # needs Python 3.11

ROOT = Path(__file__).parents[2]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
NAMED_ONLY = {"canonical", "next", "prev", "alternate"}


class Document(HTMLParser):
    """What a page links to, loads and names."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = {""}
        self.text: list[str] = []
        self.code = 0
        self.feed(path.read_text(encoding="utf8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {found.get("id") or "", found.get("name") or ""}
        self.code += tag in ("code", "pre", "script", "style")
        if tag == "a" and found.get("href"):
            self.links.append(found["href"] or "")
        if tag in LOADED and found.get("rel") not in NAMED_ONLY:
            self.loaded.append(found.get(LOADED[tag]) or "")

    def handle_endtag(self, tag: str) -> None:
        self.code -= tag in ("code", "pre", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self.code:
            self.text.append(data)


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a folder that holds mkdocs.yml and docs."""
    return subprocess.run(
        [PYTHON, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from the pages as they are."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copyfile(ROOT / "mkdocs.yml", folder / "mkdocs.yml")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    os.symlink(ROOT / "spacy_psa", folder / "spacy_psa")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def documents(site: Path) -> dict[Path, Document]:
    """All pages but the one for what is not found, whose links are of the root."""
    return {path: Document(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_links_lead_somewhere(site: Path, documents: dict[Path, Document]) -> None:
    broken = []
    count = 0
    for path, document in documents.items():
        for link in (*document.links, *document.loaded):
            parts = urlsplit(link)
            if parts.scheme or not link:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            known = documents[target].anchors if target in documents else {""}
            fragment = unquote(parts.fragment)
            picture = target.suffix in (".svg", ".png")
            if not target.is_file() or not (picture or fragment in known):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert count > 500
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site: Path, documents: dict[Path, Document]) -> None:
    foreign = [
        (path.name, address)
        for path, document in documents.items()
        for address in document.loaded
        if urlsplit(address).netloc
    ]
    for path in site.rglob("*.css"):
        addresses = re.findall(
            r"url\(['\"]?((?:https?:)?//[^)]+)\)", path.read_text(encoding="utf8")
        )
        foreign += [(path.name, address) for address in addresses]
    assert foreign == []


def test_references_are_resolved(documents: dict[Path, Document]) -> None:
    left = {
        path.name: found
        for path, document in documents.items()
        if (found := re.findall(r"\]\[[\w.]*\]", "".join(document.text)))
    }
    assert left == {}


def test_no_file_of_ours_is_published(site: Path) -> None:
    assert [path.name for path in site.rglob("*.py")] == []


def test_each_page_is_in_the_navigation() -> None:
    config = srsly.read_yaml(ROOT / "mkdocs.yml")

    def pages(items: object) -> list[str]:
        if isinstance(items, str):
            return [items]
        inside = items.values() if isinstance(items, dict) else items
        return [page for item in inside for page in pages(item)]  # type: ignore[union-attr]

    docs = ROOT / "docs"
    found = {str(path.relative_to(docs)) for path in docs.rglob("*.md")}
    assert sorted(pages(config["nav"])) == sorted(found)


def test_search_knows_each_page_without_a_server(
    site: Path, documents: dict[Path, Document]
) -> None:
    script = (site / "search.js").read_text(encoding="utf8")
    index = json.loads(script[script.index("{") :].rstrip().rstrip(";"))
    found = {item["location"].partition("#")[0] for item in index["items"]}
    assert {str(path.relative_to(site)) for path in documents} <= found
    shim = "iframe-worker.js"
    assert all(any(shim in src for src in d.loaded) for d in documents.values())


@pytest.mark.parametrize(
    ("line", "builds"),
    [
        ("[this page](index.md#home)", True),
        ("[a page](missing.md)", False),
        ("[an anchor](index.md#missing)", False),
        ("::: spacy_psa.missing", False),
    ],
)
def test_a_mistake_fails_the_build(line: str, builds: bool, tmp_path: Path) -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf8")
    text = f"{config[: config.index('nav:')]}nav:\n  - index.md\n"
    (tmp_path / "mkdocs.yml").write_text(text, encoding="utf8")
    os.symlink(ROOT / "spacy_psa", tmp_path / "spacy_psa")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Home\n\n{line}\n", encoding="utf8")
    done = build(tmp_path)
    assert (done.returncode == 0) == builds, done.stdout + done.stderr
