"""How a page is looked at in a browser, and labels to show on it."""

MANY = [f"{kind}_{i}" for kind in ("PERSON", "PLACE", "ORG", "WORK", "EVENT") for i in range(12)]
RTL = "ذهب Ada Lovelace إلى London . شلום Evans"
VIEWS = {
    "wide": (1280, "light"),
    "narrow": (360, "light"),
    "dark": (1280, "dark"),
    "narrow-dark-rtl": (360, "dark"),
}
"""The width and the colours of each."""


def some_labels(count):
    """A number of labels that divides 60."""
    return tuple(MANY[:: 60 // count])
