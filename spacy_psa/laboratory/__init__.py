"""The laboratory: experiments, searches for settings, measurements and analyses of models."""
