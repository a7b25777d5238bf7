"""Document memory: the other occurrences of a word in its document."""
