"""A lint for plain English: `python scripts/words.py [PATH …]`, exit code 1 if it finds something.

It reads docstrings, comments and longer strings of Python files, their names, the text of Markdown
files outside code, and the comments of configs. `ALLOWED` has the phrases that stay.
"""

import ast
import io
import re
import sys
import tokenize
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PLACES = [
    *("spacy_psa", "benchmarks", "docs", "scripts", "examples", "configs"),
    *("project.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
]

WORDS = {
    r"\bgives?\b(?! up\b)": "returns, yields, produces, provides, has",
    r"\btakes?\b": "accepts, needs, uses, reads, expects",
    r"(?<!there )\b(is|are|was|were) no\b(?! longer| more)": "is not a, has no",
    r"(?:^|(?<=[.;:] ))what (?![^.]*\?)": "name the thing: the settings that, everything that",
    r"\bsays?\b": "means, describes, states, reports, shows",
    r"\bstands?\b": "is, is written, is stored",
    r"\balone\b": "only",
    r"\btold\b": "stated, described, distinguished",
    r"\bbeside\b": "next to, compared with, in addition to",
    r", too[.;:)]": "also",
}
"""Patterns of sentences, and words that are usually right in their place."""
NAMES = {"told", "another", "one", "found", "of_spans", "known_of"}
"""Names of variables and functions that could be the name of anything."""
ALLOWED = re.compile(
    r"takes? place|stands? (?:for|in for)\b|stand-?alone|(?:leaves?|left) alone|what it is for"
    r"|that is to say|takes? (?:[^\s.;]+ ){0,4}?(?:seconds?|minutes?|hours?|time|long|longer)\b",
    re.IGNORECASE,
)
"""Phrases in which a pattern is right."""
STARTS = re.compile(r"(?:[-*|#>]|\d+\.) ")
"""How an item of a list, a row of a table or a heading begins."""

Lines = Iterator[tuple[int, str]]
"""Lines of text with their numbers. An empty line ends a paragraph."""


class Finding(NamedTuple):
    """A word that reads badly."""

    path: Path
    line: int
    word: str
    advice: str
    text: str


def lines_of_python(source: str) -> Lines:
    """Yield the lines of comments and of strings with several words."""
    end = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        strings = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
        comment = token.type == tokenize.COMMENT
        if comment or (token.type in strings and len(token.string.split()) > 3):
            if token.start[0] > end + 1:
                yield token.start[0], ""
            for number, line in enumerate(token.string.splitlines(), start=token.start[0]):
                text = line.strip().strip("\"'#").strip()
                yield number, "" if text.startswith((">>>", "...")) else text
            end = token.end[0]


def lines_of_markdown(source: str) -> Lines:
    """Yield the lines outside blocks of code, without inline code and comments on a line."""
    code = False
    for number, line in enumerate(source.splitlines(), start=1):
        fence = line.lstrip().startswith("```")
        code ^= fence
        yield number, "" if code or fence else re.sub(r"`[^`]*`|<!--.*?-->", "`code`", line.strip())


def lines_of_config(source: str) -> Lines:
    """Yield the comments."""
    for number, line in enumerate(source.splitlines(), start=1):
        yield number, line.partition("#")[2].strip()


READERS = {
    ".py": lines_of_python,
    ".md": lines_of_markdown,
    ".cfg": lines_of_config,
    ".toml": lines_of_config,
    ".yml": lambda source: enumerate(map(str.strip, source.splitlines()), start=1),
}


def paragraphs(lines: Lines) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines of each paragraph."""
    paragraph: list[tuple[int, str]] = []
    for number, text in lines:
        if paragraph and (not text or STARTS.match(text)):
            yield paragraph
            paragraph = []
        if text:
            paragraph.append((number, text))
    if paragraph:
        yield paragraph


def names_of_python(source: str) -> Iterator[tuple[int, str]]:
    """Yield the names that a file assigns, defines or uses for arguments."""
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
    for paragraph in paragraphs(READERS[path.suffix](source)):
        text = " ".join(line for _, line in paragraph)
        starts = list(accumulate((len(line) + 1 for _, line in paragraph[:-1]), initial=0))
        text = ALLOWED.sub(lambda allowed: "_" * len(allowed[0]), text)
        for pattern, advice in WORDS.items():
            for match in re.finditer(pattern, text, re.IGNORECASE):
                number, line = paragraph[bisect(starts, match.start()) - 1]
                yield Finding(path, number, match[0].strip(), advice, line)
    if path.suffix == ".py":
        for number, name in names_of_python(source):
            if name in NAMES:
                yield Finding(path, number, name, "a name of its own", f"the name {name}")


def files(places: Sequence[str | Path]) -> Iterator[Path]:
    """Yield the files in some places, without this lint."""
    for place in map(Path, places):
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix in READERS and path.resolve() != Path(__file__).resolve():
                yield path


def main() -> int:
    """Print the findings in the places that the command line names."""
    count = 0
    for path in files(sys.argv[1:] or [ROOT / place for place in PLACES]):
        for each in findings(path):
            print(f"{path}:{each.line}: {each.word!r} ({each.advice}): {each.text}")
            count += 1
    print(f"{count} findings")
    return bool(count)


if __name__ == "__main__":
    sys.exit(main())
