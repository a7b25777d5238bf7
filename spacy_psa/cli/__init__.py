"""The command line: `spacy-psa`, `python -m spacy_psa` and `python -m spacy psa`.

One command a file; `app` puts them together. What a command needs beyond Typer
is imported inside it, so that `--help` is quick.
"""
