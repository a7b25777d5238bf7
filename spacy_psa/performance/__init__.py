"""How fast pipelines are, measured side by side; `spacy-psa benchmark`."""
