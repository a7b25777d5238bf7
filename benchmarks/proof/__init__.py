"""From raw text to a model: how many clicks an annotator needs."""
