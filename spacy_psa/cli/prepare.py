"""`spacy-psa prepare`: converts the files of a corpus for `spacy train`."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from spacy_psa.cli.convert import convert_app, glove
from spacy_psa.cli.init_corpus import init_corpus

TEST = 0.1
"""The share of own files that is drawn for test data, if there are none."""


def prepare(
    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help="Name of the corpus, or folder with own files.")
    ],
    source: Annotated[
        Path, typer.Argument(metavar="ASSETS", help="Folder with the files of the corpus.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.")],
) -> None:
    """Convert a whole corpus and its word vectors.

    Reads the files of the corpus in ASSETS. Writes train.spacy, dev.spacy and test.spacy, and, if
    the corpus is trained with word vectors, the pipeline `vectors` in OUT. This is the same as
    `spacy-psa convert` for each file, and then `spacy init vectors`. A folder with own files is
    read as `spacy-psa init corpus` does, and a tenth of it is drawn for each part that it lacks.

    \b
    Example:
      spacy-psa prepare conll2003 assets corpus/conll2003
    """
    from spacy_psa.corpora.layouts import is_own, layout

    if is_own(corpus):
        init_corpus(Path(corpus), target, test=TEST)
        return
    files = layout(corpus)
    convert = typer.main.get_command(convert_app)
    for name in ("train", "dev", "test"):
        part = getattr(files, name)
        output = target / f"{name}.spacy"
        arguments = [files.format, *part.options, str(source / part.file), str(output)]
        convert.main(arguments, standalone_mode=False)  # errors are raised, not printed
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
