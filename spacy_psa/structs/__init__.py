"""Exact distributions over the structures of a sentence: tag sequences and constituency trees."""
