"""Structured neural models for spaCy: CRF taggers and chart parsers from a config.

Nothing is imported here: spaCy finds every component, architecture and
reader through the package's entry points.
"""

__version__ = "0.1.0"
