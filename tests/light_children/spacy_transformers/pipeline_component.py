"""Stands for spacy-transformers in the processes that tests start.

spaCy imports the packages of all factories that are installed, and this one takes longer than spaCy
itself. A test whose processes need the true package takes this folder from PYTHONPATH.
"""

make_transformer = None
