"""Trainings that are killed and resumed."""
