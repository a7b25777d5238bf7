"""The speed of pipelines, measured side by side; `spacy-psa benchmark`."""
