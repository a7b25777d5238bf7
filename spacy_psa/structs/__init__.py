"""Exact distributions over structures: every sequence (chain) of a sentence at once."""
