"""The constituency parser on trees of the Wall Street Journal."""
