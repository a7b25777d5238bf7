"""Annotation that is probably wrong, compared with known corrections."""
