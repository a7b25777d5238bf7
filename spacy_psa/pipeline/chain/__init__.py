"""Taggers over a linear chain: entities, chunks and tags, and what can be asked of them."""
