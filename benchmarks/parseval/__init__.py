"""PARSEVAL figures compared with those of EVALB."""
