"""`python -m spacy psa …`.

Before it reads its command line, spaCy imports the modules that the entry point group `spacy_cli`
names. It calls nothing, so a command must add itself when its module is imported. This module
does so; no other module imports it.
"""

from spacy.cli._util import app as spacy_app

from spacy_psa.app import app

spacy_app.add_typer(app, name="psa")
