"""Hyper-parameter search: settings drawn from a space, trained by `spacy train`, judged on dev."""
