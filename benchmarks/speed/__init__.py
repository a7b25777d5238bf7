"""Pipelines timed side by side."""
