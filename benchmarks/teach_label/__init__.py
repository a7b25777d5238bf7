"""A label that is taught to a trained model, which keeps its other labels."""
