"""Every command and every block of code of the documentation works as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens.underscore import Underscore

from docs.generate.registry import PACKAGE, groups, names
from tests.docs.blocks import DOCS, Block, StandIn, logical_lines, read_page
from tests.docs.shell import NOT_RUN, BadCommand, check, reason_not_to_run, run

GENERATED = "reference"
TUTORIAL = [DOCS / "tutorial" / name for name in ("index.md", "corpus.md", "train.md", "use.md")]
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != GENERATED)
SCENARIOS = [TUTORIAL, *([path] for path in PAGES if path not in TUTORIAL)]


README = DOCS.parent / "README.md"
SCENARIOS.append([README])


def _name(scenario: list[Path]) -> str:
    return str(scenario[0].relative_to(DOCS.parent).with_suffix(""))


def _play(scenario: list[Path], stand_ins: Any, folder: Path, slow: bool) -> None:
    """Run the blocks of pages in order, in one folder and with one set of Python names."""
    variables: dict[str, Any] = {"__name__": "__main__"}
    pages = [read_page(path) for path in scenario]
    _link(folder, "\n".join(block.text for page in pages for block in page.blocks))
    for page in pages:
        for item in page.given:
            stand_ins.put(item.kind, folder / item.path)
        for block in page.blocks:
            try:
                _do(block, variables, slow)
            except Exception as error:
                raise AssertionError(f"{block.place}: {error}\n{block.text}") from error
            if not (slow and block.mode == "slow"):
                for item in block.makes:
                    stand_ins.put(item.kind, folder / item.path)


def _link(folder: Path, text: str) -> None:
    """Link the files of the repository that commands name; the folder is empty otherwise."""
    for name in ("configs", "assets", "benchmarks", "project.yml", "constraints.txt"):
        if name in text or "spacy project" in text:
            (folder / name).symlink_to(DOCS.parent / name)


def _runs(block: Block, slow: bool) -> bool:
    return block.mode == "run" or (block.mode == "slow" and slow)


def _do(block: Block, variables: dict[str, Any], slow: bool) -> None:
    if block.title:
        path = Path(block.title)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf8")
        if block.language == "python":
            compile(block.text, block.place, "exec")
    if block.language == "bash":
        for line in logical_lines(block.text):
            if block.mode == "slow" and slow:
                run(line, steps="")
            elif block.mode == "run" and not reason_not_to_run(line):
                run(line)
            else:
                check(line)
    elif block.title:
        pass
    elif block.language == "python":
        code = compile(block.text, block.place, "exec")
        if _runs(block, slow):
            exec(code, variables)
    elif block.language == "ini":
        from thinc.api import Config

        Config().from_str(block.text, interpolate=False)


@pytest.fixture(autouse=True)
def attributes_as_before() -> Any:
    """Custom attributes that a page adds are taken away again."""
    places = [f"{kind}_extensions" for kind in ("doc", "span", "token")]
    kept = {name: dict(getattr(Underscore, name)) for name in places}
    yield
    for name, before in kept.items():
        setattr(Underscore, name, before)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_name)
def test_blocks_run(scenario: list[Path], stand_ins: Any, workplace: Path) -> None:
    _play(scenario, stand_ins, workplace, slow=False)


def test_commands_for_the_shell_are_only_checked_for_a_reason_of_the_list() -> None:
    blocks = [block for path in [*PAGES, README] for block in read_page(path).blocks]
    shell = [block for block in blocks if block.language == "bash"]
    assert [block.place for block in shell if block.mode == "check"] == []
    lines = [line for block in shell for line in logical_lines(block.text)]
    assert {reason_not_to_run(line) for line in lines} - {None} == {*NOT_RUN}


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [s for s in SCENARIOS if any(b.mode == "slow" for page in s for b in read_page(page).blocks)],
    ids=_name,
)
def test_slow_blocks_run(scenario: list[Path], stand_ins: Any, workplace: Path) -> None:
    _play(scenario, stand_ins, workplace, slow=True)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_names_and_files_of_a_page_exist(path: Path) -> None:
    text = path.read_text(encoding="utf8")
    known = {name for group in groups() for name in names(group) if name.startswith(PACKAGE)}
    unknown = set(re.findall(r"spacy-psa\.\w+\.v\d", text)) - known
    root = DOCS.parent
    files = set(re.findall(r"\b(?:configs|benchmarks|assets)/[\w./-]*\w", text))
    assert not unknown
    assert not {name for name in files if not (root / name).exists() and not _is_yours(name)}


def _is_yours(name: str) -> bool:
    """Whether a file is the reader's: another asset than the sample, or a PLACEHOLDER."""
    asset = name.startswith("assets/") and not name.startswith("assets/sample/")
    return asset or bool(re.search(r"/[A-Z]{4,}", name))


def test_a_command_that_cannot_work_is_found(workplace: Path) -> None:
    _link(workplace, "configs/ner/psa.cfg project.yml")
    for line in (
        "spacy-psa anotate model texts.txt out.jsonl",
        "spacy-psa annotate model texts.txt",
        "spacy-psa annotate model texts.txt out.jsonl --fromat conll",
        "python -m spacy trian configs/ner/psa.cfg",
        "python -m spacy train configs/ner/psa.cfg --components.ner.shceme BIO",
        "python -m spacy project run all . --vars.corpsu sample",
        'pip install "spacy-psa[everything]"',
        "python no_such_file.py",
        "rm -r .",
    ):
        with pytest.raises(BadCommand):
            check(line)


def test_a_comment_with_another_word_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("<!-- test: sometimes -->\n", encoding="utf8")
    with pytest.raises(ValueError, match="sometimes"):
        read_page(path)


def test_blocks_are_read_with_their_comments(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    text = """<!-- test: given texts:texts.txt -->
=== "tab"

    <!-- test: slow makes ner:model -->
    ```bash
    spacy-psa --help
    ```

```ini title="my.cfg"
[a]
```
"""
    path.write_text(text, encoding="utf8")
    page = read_page(path)
    assert page.given == (StandIn("texts", "texts.txt"),)
    first, second = page.blocks
    assert (first.language, first.text, first.mode) == ("bash", "spacy-psa --help\n", "slow")
    assert first.makes == (StandIn("ner", "model"),)
    assert (second.title, second.mode, second.makes) == ("my.cfg", "run", ())
