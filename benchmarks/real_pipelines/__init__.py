"""The other systems of the papers."""
