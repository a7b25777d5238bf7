"""All figures that need a GPU."""
