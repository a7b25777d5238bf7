"""Components: Docs in, annotated Docs out; models, distributions and spaCy meet here."""
