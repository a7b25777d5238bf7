"""All generated pages, by their path below docs/reference."""

from functools import cache

from docs.generate import architectures, commands, components, overview, python_api, training


@cache
def pages() -> dict[str, str]:
    """The text of each page."""
    return {
        "index.md": overview.page(),
        "components.md": components.page(),
        "embedders.md": architectures.page("embed"),
        "encoders.md": architectures.page("encode"),
        "documents.md": architectures.page("tok2vec"),
        "models.md": architectures.page("model"),
        "training.md": training.page(),
        "commands.md": commands.page(),
        "python.md": python_api.page(),
    }
