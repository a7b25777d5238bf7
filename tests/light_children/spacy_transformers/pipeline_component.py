"""Stands for spacy-transformers in the processes that tests start.

spaCy loads each factory that is installed, and importing the true package takes longer than importing
spaCy. A test whose processes need it takes this folder from PYTHONPATH.
"""

make_transformer = None
