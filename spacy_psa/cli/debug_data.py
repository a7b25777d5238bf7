"""`spacy-psa debug data`: what is in `.spacy` files that the components learn from."""

import json
from pathlib import Path
from typing import Annotated

import typer

from spacy_psa.cli.init_corpus import vector_lookup


def debug_data(
    train: Annotated[Path, typer.Argument(metavar="TRAIN.spacy", help="Training data.")],
    dev: Annotated[Path, typer.Argument(metavar="DEV.spacy", help="Development data.")],
    test: Annotated[Path | None, typer.Option(help="Test data.")] = None,
    vectors: Annotated[
        str | None, typer.Option(help="Pipeline with word vectors, to count words without one.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON file for the figures.")
    ] = None,
) -> None:
    """Check training and development data.

    Shows labels, lengths of spans, spans over sentence bounds, rare labels, sentences that are in
    two parts, and words without a vector. `spacy debug data` shows the same for spaCy's own
    components alone, since it asks for the names of their factories.

    \b
    Example:
      spacy-psa debug data corpus/train.spacy corpus/dev.spacy --vectors vectors
    """
    from spacy.vocab import Vocab

    from spacy_psa.cli.corpus_table import print_check
    from spacy_psa.corpora.atomic import atomic_path
    from spacy_psa.corpora.corpus_check import check_corpus
    from spacy_psa.corpora.docbin import read_docbin

    known = vector_lookup(vectors)
    files = {"train": train, "dev": dev, **({"test": test} if test else {})}
    vocab = Vocab()
    figures = check_corpus({part: read_docbin(path, vocab) for part, path in files.items()}, known)
    print_check(figures)
    if output:
        with atomic_path(output) as temporary:
            text = json.dumps(figures, indent=2, ensure_ascii=False) + "\n"
            temporary.write_text(text, encoding="utf8")
        typer.echo(f"Written: {output}")
