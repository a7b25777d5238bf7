"""Optimizers, schedules, batchers and callbacks, which spaCy finds by their registered names."""
