"""Trained pipelines: joined, with weights in int8, described and published."""
