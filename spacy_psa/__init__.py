"""Neural models of structured outputs for spaCy: CRF taggers and a constituency parser.

The models are built and trained from spaCy configs. Importing this package loads nothing else:
spaCy finds every component, architecture and corpus reader through the package's entry points.
"""

__version__ = "0.2.0"
