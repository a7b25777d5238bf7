"""Torch modules as layers of thinc models.

Sentences pass between them as the flat ragged batches of `spacy_psa.ragged`.
"""
