"""Text in, rows of annotation out: in batches, by one process or on many machines."""
