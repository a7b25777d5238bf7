"""The command line: `spacy-psa`, `python -m spacy_psa` and `python -m spacy psa`.

Each command has a file of its own, and `app` puts them together. A command imports everything
except Typer when it runs, so that `--help` is fast.
"""
