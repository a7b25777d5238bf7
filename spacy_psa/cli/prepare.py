"""`spacy-psa prepare`: a corpus' files to what `spacy train` reads."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from spacy_psa.cli.convert import conll2003, glove, sample

CONVERTERS: dict[str, Callable[[Path, Path], None]] = {"sample": sample, "conll2003": conll2003}


def prepare(
    corpus: Annotated[str, typer.Argument(help="The corpus, as in --vars.corpus.")],
    source: Annotated[Path, typer.Argument(metavar="ASSETS", help="Folder of the assets.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.")],
) -> None:
    """Convert a whole corpus: train, dev and test to .spacy, and its word vectors if it has any.

    The same as `spacy-psa convert` for each file, then `spacy init vectors`.
    """
    from spacy_psa.corpora.layouts import layout

    files = layout(corpus)
    for name in ("train", "dev", "test"):
        CONVERTERS[corpus](source / getattr(files, name), target / f"{name}.spacy")
    if files.vectors:
        with TemporaryDirectory() as folder:
            text = Path(folder) / "vectors.txt"
            glove(source / files.vectors, text)
            _init_vectors(text, target / "vectors")


def _init_vectors(text: Path, target: Path) -> None:
    import spacy
    from spacy.training.initialize import convert_vectors

    nlp = spacy.blank("en")
    convert_vectors(nlp, text, truncate=0, prune=-1, name="glove")
    nlp.to_disk(target)
    typer.echo(f"{target}: {len(nlp.vocab.vectors):,} vectors")
