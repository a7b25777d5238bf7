"""Sentences per second of the constituency parser."""
