"""How well confidences fit the truth."""
