"""F1 on the original test set of CoNLL-2003, its corrections and later news."""
