"""A list of names with few annotated sentences."""
