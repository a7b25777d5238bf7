"""Code blocks of Markdown pages, with what a comment before them says of the test.

A page can hold these comments, which readers do not see:

    <!-- test: given KIND:PATH ... -->            put stand-ins there before the page begins
    <!-- test: slow [makes KIND:PATH ...] -->     run the next block only with the marker "slow";
                                                  else check it and put stand-ins in its place
    <!-- test: run [makes KIND:PATH ...] -->      run the next block, as without a comment, and put
                                                  stand-ins in the place of its results
    <!-- test: check -->                          only check the next block, which is Python: needs
                                                  a GPU, or a model that the page does not have

Of blocks for the shell, `shell.NOT_RUN` lists the commands that are only checked.
"""

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"

COMMENT = re.compile(r"^\s*<!-- test: (.+) -->$")
FENCE = re.compile(r"^(\s*)```(\w*)(.*)$")
TITLE = re.compile(r'title="([^"]+)"')
MODES = ("run", "slow", "check")


@dataclass(frozen=True)
class StandIn:
    """Something that a page takes for granted: what it is, and where."""

    kind: str
    path: str


@dataclass(frozen=True)
class Block:
    """A code block.

    Attributes:
        place: page and line, for messages.
        language: as the fence says.
        text: the code.
        title: the file that it is, if the page says so.
        mode: "run", "slow" or "check".
        makes: what takes the place of its results, unless all of it was run.
    """

    place: str
    language: str
    text: str
    title: str
    mode: str
    makes: tuple[StandIn, ...]


@dataclass(frozen=True)
class Page:
    """A page: what it takes for granted, and its blocks in order."""

    path: Path
    given: tuple[StandIn, ...]
    blocks: tuple[Block, ...]


def read_page(path: Path) -> Page:
    """Read a Markdown page. ValueError for a comment that says something else."""
    lines = path.read_text(encoding="utf8").splitlines()
    given: list[StandIn] = []
    blocks: list[Block] = []
    mode: str = "run"
    makes: tuple[StandIn, ...] = ()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        place = f"{path.name}:{number}"
        comment = COMMENT.match(line)
        if comment:
            what, found = _directive(comment[1], place)
            if what == "given":
                given += found
            else:
                mode, makes = what, tuple(found)
            continue
        fence = FENCE.match(line)
        if not fence:
            continue
        indent, language, rest = fence.groups()
        body: list[str] = []
        while lines[number].strip() != "```":
            body.append(lines[number][len(indent) :])
            number += 1
        number += 1
        title = TITLE.search(rest)
        text = "\n".join(body) + "\n"
        blocks.append(Block(place, language, text, title[1] if title else "", mode, makes))
        mode, makes = "run", ()
    return Page(path, tuple(given), tuple(blocks))


def _directive(text: str, place: str) -> tuple[str, list[StandIn]]:
    what, *rest = text.split()
    if rest[:1] == ["makes"]:
        rest = rest[1:]
    if what not in (*MODES, "given") or not all(":" in item for item in rest):
        raise ValueError(f"{place}: a test comment says {text!r}")
    return what, [StandIn(*item.split(":", 1)) for item in rest]


def logical_lines(text: str) -> list[str]:
    """The commands of a shell block: comments left out, continued lines joined."""
    joined = text.replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]
