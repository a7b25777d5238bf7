"""The analyses of the papers: ablations, convergence, gates, lengths and position encodings."""
