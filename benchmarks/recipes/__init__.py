"""Which settings `best.cfg` of chunks and of parts of speech should take."""
