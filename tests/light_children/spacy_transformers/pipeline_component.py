"""Stands for spacy-transformers in the processes that tests start.

spaCy loads each factory that is installed, and the true package takes longer to import than spaCy. A
test whose processes need it takes this folder from PYTHONPATH.
"""

make_transformer = None
