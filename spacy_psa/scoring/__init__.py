"""How good a pipeline is, how fast, and where the figures come from."""
