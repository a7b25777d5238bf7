"""Scores of a pipeline, its speed, and the provenance of these figures."""
