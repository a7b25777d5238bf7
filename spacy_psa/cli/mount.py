"""`python -m spacy psa …`.

spaCy imports what the entry point group `spacy_cli` names before it reads its
command line, and calls nothing: a command adds itself when its module is
imported. So this module, which nothing else imports, does.
"""

from spacy.cli._util import app as spacy_app

from spacy_psa.cli.app import app

spacy_app.add_typer(app, name="psa")
