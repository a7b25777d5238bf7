"""Search for settings: draws them from a space, trains with `spacy train`, compares dev scores."""
