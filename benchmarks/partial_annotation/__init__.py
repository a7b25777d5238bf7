"""Training with half of the entities hidden."""
