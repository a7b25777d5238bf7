"""Whether annotation is cheaper if the model chooses the questions."""
