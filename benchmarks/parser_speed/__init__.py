"""Sentences a second of the constituency parser."""
