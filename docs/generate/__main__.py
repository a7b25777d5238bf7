"""`python -m docs.generate [FOLDER]`: write the pages of docs/reference."""

import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from docs.generate import architectures, commands, components, python_api, training
from docs.generate.markdown import NOTE, table
from docs.generate.registry import anchor, names, short

REFERENCE = Path(__file__).parents[1] / "reference"
SLOTS = {
    "embed": "embedders.md",
    "encode": "encoders.md",
    "tok2vec": "documents.md",
    "model": "models.md",
}


@cache
def pages() -> dict[str, str]:
    """The text of each page, by its path below docs/reference."""
    return {
        "index.md": overview(),
        "components.md": components.page(),
        **{name: architectures.page(slot) for slot, name in SLOTS.items()},
        "training.md": training.page(),
        "commands.md": commands.page(),
        "python.md": python_api.page(),
    }


def overview() -> str:
    """The first page: links to all registered names and commands."""
    rows = [
        ("factory", _links((name, f"components.md#{name}") for name in names(components.GROUP)))
    ]
    for slot, page in SLOTS.items():
        inside = [n for n in names(architectures.GROUP) if architectures.entry(n).slot == slot]
        rows.append((architectures.TITLES[slot][0].lower(), _registered(inside, page)))
    for group, title, _ in training.SECTIONS:
        rows.append((title.lower(), _registered(names(group), "training.md")))
    typed = sorted(command.name for command in commands.commands())
    rows.append(
        ("commands", _links((name, f"commands.md#{name.replace(' ', '-')}") for name in typed))
    )
    parts = [
        NOTE,
        "# Reference",
        "These pages are generated from the code. In a config, write `spacy-psa.` before each "
        "name, except before the factories.",
        table(("kind", "names"), rows),
        "[Python](python.md) has the classes and functions that programs use.",
    ]
    return "\n\n".join(parts) + "\n"


def _registered(registered: Iterable[str], page: str) -> str:
    return _links((short(name), f"{page}#{anchor(name)}") for name in registered)


def _links(links: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"[`{text}`]({target})" for text, target in links)


def main(folder: Path) -> None:
    """Write the pages to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf8")
    print(f"{len(pages())} pages written to {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else REFERENCE)
