"""Experiments: plans of trainings, one record for each, and the tables and pictures of records."""
