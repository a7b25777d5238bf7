# ruff: noqa: E501
"""A lint for plain English: `python scripts/words.py [PATH …]`, exit code 1 if it finds something.

It reads docstrings, comments and longer strings of Python files, their names, and the text of
Markdown files outside code. `ALLOWED` has the phrases that stay.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDERS = ("spacy_psa", "benchmarks", "docs", "scripts", "README.md", "CONTRIBUTING.md")

WORDS = {
    r"\bgives?\b(?! up\b)": "returns, yields, produces, provides, has",
    r"\btakes?\b": "accepts, needs, uses, reads, expects",
    r"(?<!there )(?<!There )\b(is|are|was|were) no\b(?! longer| more)": "is not a, has no, there is no",
    r"(?:^|(?<=[.;:] ))[Ww]hat (?![^.]*\?)": "name the thing: the settings that, everything that, how",
    r"\bsays?\b": "means, describes, states, reports, shows",
    r"\bstands?\b": "is, is written, is stored",
    r"\balone\b": "only",
    r"\b[Tt]old\b": "stated, described, distinguished",
    r"\bbeside\b": "next to, compared with, in addition to",
    r", too[.;:)]": "also",
}
"""Patterns of sentences, and words that are usually right in their place."""
NAMES = {"told", "another", "one", "found", "of_spans", "known_of"}
"""Names of variables and functions that could be the name of anything."""
ALLOWED = (
    "takes place",
    "take place",
    "stands for",
    "stand for",
    "stand-alone",
    "standalone",
    "stands in",
    "leave alone",
    "left alone",
    "leaves alone",
    "what it is for",
    "that is to say",
    "standing",
)
"""Phrases in which a pattern is right."""


class Finding(NamedTuple):
    """A word that reads badly."""

    path: Path
    line: int
    word: str
    advice: str
    text: str


def texts_of_python(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of comments and of strings with several words, with their numbers."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string
        if token.type == tokenize.COMMENT or (
            token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
            and len(text.split()) > 3
        ):
            for number, line in enumerate(text.splitlines()):
                if not line.lstrip().startswith((">>>", "...")):
                    yield token.start[0] + number, line.strip(" \"'#")


def texts_of_markdown(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines outside blocks of code, without inline code."""
    code = False
    for number, line in enumerate(source.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            yield number, re.sub(r"`[^`]*`", "`code`", line)


def names_of_python(source: str) -> Iterator[tuple[int, str]]:
    """Yield the names that a file assigns, defines or takes as arguments."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.lineno, node.name


def findings(path: Path) -> Iterator[Finding]:
    """Yield all findings in a file."""
    source = path.read_text(encoding="utf8")
    python = path.suffix == ".py"
    for number, text in (texts_of_python if python else texts_of_markdown)(source):
        kept = text
        for phrase in ALLOWED:
            kept = kept.replace(phrase, "")
        for pattern, advice in WORDS.items():
            for match in re.finditer(pattern, kept):
                yield Finding(path, number, match[0].strip(), advice, text)
    if python:
        for number, name in names_of_python(source):
            if name in NAMES:
                yield Finding(path, number, name, "a name of its own", f"the name {name}")


def files(paths: list[str]) -> Iterator[Path]:
    """Yield the files to read, without records, generated pages and this lint."""
    for each in paths or FOLDERS:
        path = Path(each) if paths else ROOT / each
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            if file.suffix in (".py", ".md") and file.resolve() != Path(__file__).resolve():
                yield file


def main() -> int:
    """Print the findings in the files that the command line names."""
    count = 0
    for path in files(sys.argv[1:]):
        for each in findings(path):
            print(f"{path}:{each.line}: {each.word!r} ({each.advice}): {each.text}")
            count += 1
    print(f"{count} findings")
    return bool(count)


if __name__ == "__main__":
    sys.exit(main())
