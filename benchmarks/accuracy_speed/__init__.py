"""F1 and words per second of our systems and spaCy's `ner`."""
