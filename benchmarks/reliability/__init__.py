"""Trainings that are killed, odd text and damaged files."""
