"""The spaCy components, which join models, distributions and docs."""
