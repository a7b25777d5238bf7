"""Data for commands to read, and a real browser for the pages that they write."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens import DocBin

from tests.helpers.patience import PATIENCE
from tests.helpers.pipelines import make_examples


class Browser:
    """Headless Chromium, a new profile each time."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program = program
        self.folder = folder

    def _run(self, page: Path, *options: str) -> str:
        done = subprocess.run(
            [
                self.program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                f"--user-data-dir={self.folder / 'profile'}",
                *options,
                page.resolve().as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def screenshot(self, page: Path, target: Path, width: int = 900, height: int = 600) -> None:
        """A PNG of the page as it is drawn."""
        self._run(page, f"--screenshot={target}", f"--window-size={width},{height}")

    def evaluate(self, page: Path, expression: str) -> Any:
        """The value of a JavaScript expression on the page, which stays as it is."""
        probe = self.folder / "probe.html"
        script = (
            "<pre id='probe'></pre><script>document.getElementById('probe').textContent = "
            f"JSON.stringify({expression});</script>"
        )
        text = page.read_text(encoding="utf8")
        assert text.count("</body>") == 1
        probe.write_text(text.replace("</body>", f"{script}</body>"), encoding="utf8")
        found = re.search(r'<pre id="probe">(.*?)</pre>', self._run(probe, "--dump-dom"), re.S)
        assert found is not None
        return json.loads(html.unescape(found[1]))


@pytest.fixture
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs a browser: no chromium on PATH (apt-get install chromium)")
    return Browser(program, tmp_path_factory.mktemp("browser"))


@pytest.fixture
def data(trained: Any, tmp_path: Path) -> Path:
    """The sentences that the trained pipeline knows, as a .spacy file."""
    path = tmp_path / "dev.spacy"
    DocBin(docs=[eg.reference for eg in make_examples(trained)]).to_disk(path)
    return path
