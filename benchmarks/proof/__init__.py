"""From raw text to a model: how many clicks it takes."""
