"""The neural modules, over ragged batches. They need torch only, not spaCy or thinc."""
