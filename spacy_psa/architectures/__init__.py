"""Registered builders of models, thin: arguments in, thinc model out."""
