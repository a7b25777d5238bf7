"""Optimizers, schedules and batchers, found by spaCy through entry points."""
