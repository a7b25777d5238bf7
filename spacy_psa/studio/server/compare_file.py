"""A comparison in files: one HTML file with the scripts of the page, and its figures as JSON."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from spacy_psa.corpora.atomic import atomic_path, write_json
from spacy_psa.errors import InputError
from spacy_psa.loading import load_pipeline, model_names
from spacy_psa.studio.comparison.comparison import Comparison, Step

STATIC = Path(__file__).parent / "static"
STYLES = ("style.css", "compare.css")
SCRIPTS = (
    "dom.js",
    "compare_figures.js",
    "compare_tables.js",
    "compare_errors.js",
    "compare_view.js",
)
"""Each after those that it imports."""
START = """
showComparison(document.getElementById("comparison"),
  JSON.parse(document.getElementById("data").textContent));
"""


def write_comparison(
    models: Sequence[str],
    gold: Path,
    output: Path,
    json_path: Path | None,
    component: str | None,
    train: Path | None,
    gpu_id: int,
    watch: Callable[[Iterator[Step], int], Iterable[Step]],
) -> dict[str, Any]:
    """Compare one or two pipelines with gold documents, and write the page.

    Args:
        models: the folders or packages of the pipelines.
        gold: the gold documents.
        output: the page to write.
        json_path: the JSON file for the figures; None for none.
        component, train: as in `Comparison`.
        gpu_id: the number of the GPU; -1 for the CPU.
        watch: follows the steps, of which there are as many as its second argument.

    Returns:
        The report; see `Comparison.report`.
    """
    paths = model_names(models)
    if len(paths) > 2:
        raise InputError(f"there are {len(paths)} models: name one or two")
    if json_path is not None and json_path.resolve() == output.resolve():
        raise InputError(f"{output}: is the page and the JSON file; use two names")
    pipelines = {name: load_pipeline(path, gpu_id) for name, path in paths.items()}
    comparison = Comparison(pipelines, gold, component, train)
    # The steps need time, so a file that cannot be written is found before.
    figures = nullcontext() if json_path is None else atomic_path(json_path)
    with atomic_path(output) as temporary, figures as other:
        for _, step in watch(comparison.steps(), len(comparison)):
            step()
        report = comparison.report()
        temporary.write_text(comparison_page(report), encoding="utf8")
        if other is not None:
            write_json(other, report, indent=None)
    return report


def comparison_page(report: dict[str, Any]) -> str:
    """Make the page of a `Comparison.report`.

    Its policy allows its own script and style and nothing else: it loads nothing, and text of the
    corpus cannot become a script.
    """
    style = "\n".join((STATIC / name).read_text(encoding="utf8") for name in STYLES)
    script = "\n".join(map(_without_modules, SCRIPTS)) + START
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    names = " and ".join(model["name"] for model in report["models"])
    title = html.escape(f"{names} on {report['gold']['path']}")
    # In JSON, "<" is in strings only; escaped, it cannot end the element.
    data = json.dumps(report, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta http-equiv="Content-Security-Policy" content="{policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>{title}</title>
  <style>{style}</style>
</head>
<body>
  <header><h1>{title}</h1></header>
  <main>
    <noscript><p>This report needs JavaScript, which is in the file itself.</p></noscript>
    <div id="comparison"></div>
  </main>
  <script type="application/json" id="data">{data}</script>
  <script type="module">{script}</script>
</body>
</html>
"""


def _without_modules(name: str) -> str:
    """Read a script, as a part of a larger one: without imports and exports."""
    text = (STATIC / name).read_text(encoding="utf8")
    return re.sub(r"^export ", "", re.sub(r"^import .*;\n", "", text, flags=re.M), flags=re.M)


def _hash(text: str) -> str:
    """Compute the source of a policy that allows an element with this text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
