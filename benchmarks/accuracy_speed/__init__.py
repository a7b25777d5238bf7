"""F1 against words a second, beside spaCy's `ner`."""
