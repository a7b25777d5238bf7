"""Stands for spacy-transformers in the processes that tests start.

spaCy loads each factory that is installed, and to import the true package takes six seconds. A test
whose processes need it takes this folder from PYTHONPATH.
"""

make_transformer = None
