"""`crf_spans`: nested, labelled spans, by a tree CRF with latent nodes."""
