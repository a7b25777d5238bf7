"""The F1 of recognisers trained on few sentences."""
