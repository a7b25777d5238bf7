"""The sentences of the package and its pages have no words that the lint finds."""

import pytest

from scripts import words
from tests.helpers.paths import ROOT

CLEAN = [
    *("spacy_psa", "benchmarks", "scripts", "examples"),
    *("docs/explanation", "docs/figures", "docs/generate", "docs/how-to", "docs/tutorial"),
    *("docs/index.md", "docs/papers.md", "docs/pictures"),
    *("configs", "project.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
]


@pytest.mark.parametrize("place", CLEAN)
def test_sentences_are_plain(place):
    found = [finding for path in words.files([ROOT / place]) for finding in words.findings(path)]
    assert not found, "run `python scripts/words.py`"


def test_findings_have_their_line_and_word(tmp_path):
    page, module, config = (tmp_path / name for name in ("page.md", "module.py", "config.cfg"))
    page.write_text("# Title\n\nA model\ngives a score.\n\n```text\ngives\n```\n\n- `gives`\n")
    module.write_text(
        '"""It takes time to stand for a name.\n\n    >>> gives(1)\n    """\n\n'
        "told = 'gives'  # What it\n# says is this.\n"
    )
    config.write_text("# Beside another.\ngives = 1\n")
    found = [
        (finding.path.name, finding.line, finding.word)
        for path in words.files([tmp_path])
        for finding in words.findings(path)
    ]
    assert found == [
        ("config.cfg", 1, "Beside"),
        ("module.py", 6, "What"),
        ("module.py", 7, "says"),
        ("module.py", 6, "told"),
        ("page.md", 4, "gives"),
    ]


def test_good_english_stays(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("What is it? Ask what it is for: it gives up, and there is no way back.\n")
    assert list(words.findings(page)) == []
