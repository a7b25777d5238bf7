"""`spacy-psa init corpus`: a folder of annotated files as the files that spaCy trains from."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from spacy_psa.corpora.own_corpus import OwnCorpus

PARTS = ("train", "dev", "test")
CHECK = "check.json"


def init_corpus(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with your files.")],
    output: Annotated[Path, typer.Argument(metavar="[OUT]", help="Folder to write.")] = Path(
        "corpus"
    ),
    lang: Annotated[str, typer.Option(help="Language code, as for spacy.blank.")] = "en",
    dev: Annotated[
        float, typer.Option(min=0.01, max=0.5, help="Share to draw if there is no dev file.")
    ] = 0.1,
    test: Annotated[
        float, typer.Option(min=0.0, max=0.5, help="Share to draw if there is no test file.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    label: Annotated[
        str, typer.Option(help="Label of entities whose tags have none, such as B and I.")
    ] = "",
    vectors: Annotated[
        str | None, typer.Option(help="Pipeline with word vectors, to count words without one.")
    ] = None,
) -> None:
    """Make a corpus of your own files.

    FOLDER has columns in any order, spaCy's JSONL or DocBin, or exports of Prodigy, Label Studio,
    doccano or brat. Files and folders with train, dev or test in their names are these parts. OUT
    gets train.spacy, dev.spacy and, if there is test data, test.spacy, one sentence in each
    document.

    Entities that do not meet the bounds of tokens are named one by one, and counted. A check of the
    data is printed, and written to OUT/check.json.

    \b
    Example:
      spacy-psa init corpus my_files corpus
      spacy-psa init config config.cfg --train corpus/train.spacy --dev corpus/dev.spacy
    """
    from spacy_psa.corpora.corpus_check import check_corpus
    from spacy_psa.corpora.own_corpus import read_own_corpus

    nlp = _blank(lang)
    known = vector_lookup(vectors)
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; give the name of a folder")
    corpus = read_own_corpus(folder, nlp, dev, test, seed, label)
    _tell(corpus)
    figures = check_corpus(corpus.parts, known)
    figures["misfits"] = {
        "count": dict(corpus.misfits.counts),
        "each": corpus.misfits.lines,
        "by label": {label: dict(each) for label, each in corpus.misfits.labels.items()},
    }
    figures["source"] = {
        "folder": str(folder),
        "seed": seed,
        "sentences found by rules": corpus.cut,
    }
    _write(corpus.parts, output, figures)
    _finish(output, figures)


def vector_lookup(vectors: str | None) -> Callable[[str], bool] | None:
    """Give a function that tells whether a word has a vector.

    Args:
        vectors: the folder or package of a pipeline; None for no vectors.

    Raises:
        InputError: if it is no pipeline, or has no vectors.
    """
    if vectors is None:
        return None
    from spacy_psa.loading import load_pipeline

    vocab = load_pipeline(vectors).vocab
    if not len(vocab.vectors):
        raise InputError(f"{vectors}: has no word vectors; give a pipeline of `spacy init vectors`")
    return lambda word: vocab.has_vector(word)


def _blank(lang: str) -> "Language":
    import spacy

    try:
        return spacy.blank(lang)
    except ImportError as error:
        raise InputError(
            f"--lang {lang}: spaCy has no such language, or it needs a package "
            "that is not installed"
        ) from error


def _tell(corpus: "OwnCorpus") -> None:
    from spacy_psa.corpora.marked_text import MOVED

    for line in corpus.messages:
        typer.echo(line)
    for line in corpus.warnings:
        typer.echo(f"warning: {line}", err=True)
    for line in corpus.misfits.lines:
        typer.echo(f"left out: {line}", err=True)
    if corpus.misfits.moved:
        typer.echo(f"warning: {corpus.misfits.moved:,} mark(s) {MOVED}", err=True)
    for kind, count in corpus.misfits.counts.items():
        typer.echo(f"warning: {count:,} mark(s) left out: {kind}", err=True)


def _write(parts: Mapping[str, Sequence["Doc"]], output: Path, figures: dict[str, Any]) -> None:
    """Write each file whole; parts of an earlier corpus do not stay beside this one."""
    from spacy_psa.corpora.atomic import atomic_path, unwritable_as_input_error
    from spacy_psa.corpora.docbin import write_docbin

    for part, docs in parts.items():
        write_docbin(docs, output / f"{part}.spacy")
    with atomic_path(output / CHECK) as temporary:
        text = json.dumps(figures, indent=2, ensure_ascii=False) + "\n"
        temporary.write_text(text, encoding="utf8")
    for part in PARTS:
        if part not in parts:
            with unwritable_as_input_error(output):
                (output / f"{part}.spacy").unlink(missing_ok=True)


def _finish(output: Path, figures: dict[str, Any]) -> None:
    from spacy_psa.cli.corpus_table import print_check

    print_check(figures)
    files = ", ".join(f"{part}.spacy" for part in figures["parts"])
    typer.echo(f"Written to {output}: {files}, {CHECK}")
    task = _task(figures)
    sentences = " --sentencizer" if figures["source"]["sentences found by rules"] else ""
    typer.echo(
        f"Next: spacy-psa init config config.cfg --task {task} --train {output / 'train.spacy'} "
        f"--dev {output / 'dev.spacy'}{sentences}"
    )


def _task(figures: dict[str, Any]) -> str:
    layers = figures["layers"]
    order = {"entities": "ner", "chunks": "chunker", "constituents": "parser"}
    for name, task in order.items():
        if name in layers and layers[name]["labels"]:
            return task
    return "tagger"
