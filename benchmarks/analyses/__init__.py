"""The analyses of the papers, on models that are trained shortly."""
