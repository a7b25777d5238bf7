"""All figures that need a GPU, by one command."""
