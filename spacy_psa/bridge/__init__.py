"""Where torch meets thinc: torch modules as layers of thinc models.

Sentences cross as the flat ragged batches of `spacy_psa.ragged`.
"""
