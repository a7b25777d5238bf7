"""How fast the page Annotate answers, with many texts."""
