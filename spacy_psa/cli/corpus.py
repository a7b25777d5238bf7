"""Commands on whole corpora: `init corpus`, `debug data`, `assets` and `prepare`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spacy_psa.cli.console import is_right, print_table, tell, watched
from spacy_psa.cli.options import Labels, Lang, Task, Vectors

TEST = 0.1
"""The share of own files that `prepare` draws for test data, if there are none."""

Corpus = Annotated[
    str, typer.Argument(metavar="CORPUS", help="Name of a corpus, or folder with own files.")
]

OwnTask = Annotated[
    Task | None,
    typer.Option(help="The annotation to learn from own files; spans keeps those that overlap."),
]


def init_corpus(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with your files.")],
    output: Annotated[Path, typer.Argument(metavar="[OUT]", help="Folder to write.")] = Path(
        "corpus"
    ),
    lang: Lang = "en",
    dev: Annotated[
        float, typer.Option(min=0.01, max=0.5, help="Share to draw if there is no dev file.")
    ] = 0.1,
    test: Annotated[
        float, typer.Option(min=0.0, max=0.5, help="Share to draw if there is no test file.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    label: Labels = None,
    scheme: Annotated[
        Literal["auto", "iob1", "iob2", "bioes"],
        typer.Option(help="Scheme of tags; auto also reads a mixture of schemes."),
    ] = "auto",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out sentences with malformed lines.")
    ] = False,
    vectors: Vectors = None,
    task: OwnTask = None,
) -> None:
    """Create a corpus from your own files.

    FOLDER has columns in any order, CSV, CoNLL-U, JSON of tokens with tags or spans, spaCy's JSONL
    or DocBin, or exports of Prodigy, Label Studio, doccano, Dataturks, brat, WebAnno or INCEpTION.
    Files and folders with train, dev or test in their names are these parts. OUT gets train.spacy,
    dev.spacy and, if there is test data, test.spacy, one sentence in each document.

    Three sentences are shown with their entities; on a terminal, nothing is written before you have
    said that they are right. Entities that do not match the tokens are counted, and listed in
    OUT/left_out.txt. Of entities that overlap, the longest is kept; with --task spans, all are
    kept, in doc.spans["sc"]. Statistics of the data are printed and written to OUT/check.json. With
    --vectors, they include the words without a vector.

    \b
    Example:
      spacy-psa init corpus my_files corpus
      spacy-psa init config config.cfg --train corpus/train.spacy --dev corpus/dev.spacy
    """
    from spacy_psa.corpora.own_corpus import Reading
    from spacy_psa.corpora.own_labels import OwnLabels

    labels = OwnLabels.parse(label or [])
    how = Reading(dev, test, seed, labels, scheme, task == "spans", skip_bad)
    _make_corpus(folder, output, how, lang, vectors, task)


def _make_corpus(
    folder: Path,
    output: Path,
    how: Any,
    lang: str = "en",
    vectors: str | None = None,
    task: str | None = None,
    ask: bool = True,
) -> None:
    from spacy_psa.corpora import own_corpus
    from spacy_psa.corpora.corpus_check import task_of
    from spacy_psa.corpora.marked_text import OVERLAPS
    from spacy_psa.corpora.readers import blank
    from spacy_psa.loading import vocab_with_vectors

    own_corpus.check_output(output)
    has_vector = vocab_with_vectors(vectors).has_vector if vectors else None
    corpus = own_corpus.read_own_corpus(folder, blank(lang), how)
    figures = own_corpus.corpus_figures(corpus, folder, how.seed, has_vector)
    _tell_some("", corpus.messages, False)
    _tell_some("warning: ", corpus.warnings)
    _tell_some("left out: ", [*corpus.faults, *corpus.misfits.lines])
    _tell_some("warning: ", corpus.contradictions)
    bad = [f"{len(corpus.faults):,} malformed line(s), sentences left out"] * bool(corpus.faults)
    overlaps = ["--task spans keeps marks that overlap"] * bool(corpus.misfits.counts[OVERLAPS])
    tell([], [*bad, *corpus.misfits.warnings, *overlaps])
    _print_check(figures)
    tell(["Examples:", *(f"  {text}" for text in own_corpus.examples(corpus.parts["train"]))])
    if ask and not is_right("Is this right?"):
        typer.echo("Nothing was written. --scheme and --label change how tags are read.")
        raise typer.Exit(1)
    own_corpus.write_own_corpus(corpus, figures, output)
    files = ", ".join(f"{part}.spacy" for part in figures["parts"])
    typer.echo(f"Written to {output}: {files}, {own_corpus.CHECK}")
    typer.echo(
        f"Next: spacy-psa init config config.cfg --task {task or task_of(figures)} "
        f"--train {output / 'train.spacy'} --dev {output / 'dev.spacy'}"
        + " --sentencizer"
        * corpus.cut
    )


MOST = 20
"""The most lines of a kind to print; files have all."""


def _tell_some(begin: str, lines: list[str], err: bool = True) -> None:
    for line in lines[:MOST]:
        typer.echo(f"{begin}{line}", err=err)
    if len(lines) > MOST:
        typer.echo(f"{begin}{len(lines) - MOST:,} more", err=err)


def debug_data(
    train: Annotated[Path, typer.Argument(metavar="TRAIN.spacy", help="Training data.")],
    dev: Annotated[Path, typer.Argument(metavar="DEV.spacy", help="Development data.")],
    test: Annotated[Path | None, typer.Option(help="Test data.")] = None,
    vectors: Vectors = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON file for the figures.")
    ] = None,
) -> None:
    """Check training and development data.

    Shows labels, lengths of spans, spans over sentence bounds, rare labels, sentences that are in
    two parts and, with --vectors, words without a vector. `spacy debug data` only shows the same
    for spaCy's own components, since it asks for the names of their factories.

    \b
    Example:
      spacy-psa debug data corpus/train.spacy corpus/dev.spacy --vectors vectors
    """
    from spacy_psa.corpora.atomic import write_json
    from spacy_psa.corpora.corpus_check import check_files
    from spacy_psa.loading import vocab_with_vectors

    has_vector = vocab_with_vectors(vectors).has_vector if vectors else None
    figures = check_files({"train": train, "dev": dev, "test": test}, has_vector)
    _print_check(figures)
    if output:
        write_json(output, figures)
        typer.echo(f"Written: {output}")


def _print_check(figures: dict[str, Any]) -> None:
    from spacy_psa.corpora.corpus_check import check_tables, possible_mistakes

    for heads, rows in check_tables(figures):
        print_table(heads, rows, lines=False)
    tell(possible_mistakes(figures))


def assets(
    corpus: Corpus,
    mirror: Annotated[
        str, typer.Option(help="Folder, or folder of folders, from which files are copied.")
    ] = "",
    task: Annotated[str, typer.Option(help="Task to train for, as in --vars.task.")] = "",
    fetch: Annotated[
        bool, typer.Option("--download", help="Download missing and damaged files.")
    ] = False,
    project: Annotated[
        Path, typer.Option(help="Project file, which lists assets and checksums.")
    ] = Path("project.yml"),
    record: Annotated[
        Path | None, typer.Option(help="JSON file for the checksums of the files.")
    ] = None,
) -> None:
    """Check, copy or download the files that a corpus needs.

    The files are in `assets/` next to the project file. Missing and damaged files are copied from
    --mirror, or else downloaded with --download. A download that was cut continues where it was. A
    file is replaced when size and checksum are right.

    \b
    Examples:
      spacy-psa assets conll2003 --download
      spacy-psa assets conll2003 --mirror /path/to/files
    """
    from spacy_psa.corpora.assets import fetch_assets, record_files
    from spacy_psa.corpora.layouts import is_own

    paths = fetch_assets(corpus, project, mirror, task, fetch, typer.echo)
    if record is not None:
        record_files(paths, record)
    state = " of your own" if is_own(corpus) else ", all there and undamaged"
    typer.echo(f"{corpus}: {len(paths)} files{state}")


def prepare(
    corpus: Corpus,
    source: Annotated[
        Path, typer.Argument(metavar="ASSETS", help="Folder with the files of the corpus.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.")],
    task: OwnTask = None,
) -> None:
    """Convert a whole corpus and its word vectors.

    Reads the files of the corpus in ASSETS. Writes train.spacy, dev.spacy and test.spacy, and, if
    the corpus is trained with word vectors, the pipeline `vectors` in OUT. This is the same as
    `spacy-psa convert` for each file, and then `spacy init vectors`. For CoNLL-2003, it also writes
    those of the corrected and new test sets whose files are there: dev_clean, test_clean, test_pp
    and test_2020. A folder with own files is read as `spacy-psa init corpus` does, and a tenth of
    it is drawn for each part that it lacks.

    \b
    Example:
      spacy-psa prepare conll2003 assets corpus/conll2003
    """
    from spacy_psa.corpora.layouts import is_own, layout

    if is_own(corpus):
        from spacy_psa.corpora.own_corpus import Reading

        how = Reading(test=TEST, nested=task == "spans")
        _make_corpus(Path(corpus), target, how, task=task, ask=False)
        return
    from spacy_psa.corpora.conversion import convert_project

    for done in convert_project(layout(corpus), source, target, watched):
        tell(done.messages, done.warnings)
