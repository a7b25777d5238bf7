"""PARSEVAL figures against those of EVALB."""
