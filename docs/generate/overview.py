"""The first page of the reference: all registered names at a glance."""

from docs.generate import architectures, components, training
from docs.generate.commands import commands
from docs.generate.markdown import NOTE, table
from docs.generate.registry import anchor, names, short

PAGES = {
    "embed": "embedders.md",
    "encode": "encoders.md",
    "tok2vec": "documents.md",
    "model": "models.md",
}


def page() -> str:
    """The overview."""
    rows = [
        ("factory", _links(names(components.GROUP), "components.md", plain=True)),
        *(
            (
                architectures.TITLES[slot][0].lower(),
                _links(
                    [n for n in names(architectures.GROUP) if architectures.entry(n).slot == slot],
                    name,
                ),
            )
            for slot, name in PAGES.items()
        ),
        *(
            (title.lower(), _links(names(group), "training.md"))
            for group, title, _ in training.SECTIONS
        ),
        (
            "commands",
            ", ".join(
                f"[`{c.name}`](commands.md#{c.name.replace(' ', '-')})"
                for c in sorted(commands(), key=lambda c: c.name)
            ),
        ),
    ]
    parts = [
        NOTE,
        "# Reference",
        "These pages are written from the code. In a config, `spacy-psa.` stands before each "
        "name but those of the factories.",
        table(("kind", "names"), rows),
        "[Python](python.md) has the classes and functions that programs use.",
    ]
    return "\n\n".join(parts) + "\n"


def _links(found: object, page: str, plain: bool = False) -> str:
    assert isinstance(found, (dict, list))
    return ", ".join(
        f"[`{short(name)}`]({page}#{name if plain else anchor(name)})" for name in found
    )
