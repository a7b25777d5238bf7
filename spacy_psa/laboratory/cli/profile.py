"""`spacy-psa benchmark profile`: where the time of a pipeline goes."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer


def profile(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Folder or package of a pipeline, or a training config (.cfg)."
        ),
    ],
    data: Annotated[
        Path, typer.Argument(metavar="DATA.spacy", help="Documents with the words to annotate.")
    ],
    train: Annotated[
        Path | None, typer.Option(help="Training data, a .spacy file; profiles training too.")
    ] = None,
    vectors: Annotated[
        str | None, typer.Option(help="Pipeline with the word vectors of a config.")
    ] = None,
    words: Annotated[
        int, typer.Option(min=1, help="Number of words to annotate in each run.")
    ] = 20_000,
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps in each run.")] = 20,
    batch: Annotated[int, typer.Option(min=1, help="Number of documents in a training step.")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="Number of runs.")] = 3,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads and processors.")] = 1,
    output: Annotated[
        Path, typer.Option(help="Path of the output files, without the ending.")
    ] = Path("profile"),
) -> None:
    """Show where the time of a pipeline goes, by parts and by functions.

    The parts are the embedding, the encoder, the potentials, inference, reading and writing docs,
    the optimizer and spaCy. The annotation of DATA.spacy is profiled and, with --train, training. A
    first run does not count. MODEL is a trained pipeline, or a training config (.cfg) for one with
    random weights, which needs --train.

    Writes OUTPUT.json and tables in OUTPUT.md; and OUTPUT-annotation and OUTPUT-training, each as a
    flame graph (.svg) and as stacks with microseconds (.folded), which speedscope reads.

    \b
    Example:
      spacy-psa benchmark profile training/psa/model-best test.spacy --train train.spacy
    """
    from spacy_psa.corpora.atomic import atomic_path
    from spacy_psa.laboratory.performance import sections
    from spacy_psa.laboratory.performance.flame import flame_graph, folded
    from spacy_psa.laboratory.performance.pipelines import open_pipeline, read_words
    from spacy_psa.laboratory.performance.profile import (
        markdown,
        profile_annotation,
        profile_training,
    )
    from spacy_psa.laboratory.performance.timing import pin_threads

    pin_threads(threads)
    sentences = read_words(data, words)
    nlp = open_pipeline(model, train, vectors)
    profiles = {"Annotation": profile_annotation(nlp, sentences, repeats)}
    if train is not None:
        profiles["Training"] = profile_training(nlp, train, steps, batch, repeats)
    settings = {"threads": threads, "repeats": repeats, "batch": batch}
    files = [data, *([train] if train else [])]
    command = shlex.join(["spacy-psa", *sys.argv[1:]])
    found = {title.lower(): profile.to_dict() for title, profile in profiles.items()}
    record = sections.record(command, settings, {model: model}, files, found)
    tables = markdown(profiles)
    content = {".json": json.dumps(record, indent=1, ensure_ascii=False) + "\n", ".md": tables}
    for title, one in profiles.items():
        content[f"-{title.lower()}.svg"] = flame_graph(title, one)
        content[f"-{title.lower()}.folded"] = folded(one)
    for ending, text in content.items():
        with atomic_path(output.with_name(output.name + ending)) as temporary:
            temporary.write_text(text, encoding="utf8")
    _show(tables)
    typer.echo("Written: " + ", ".join(f"{output}{ending}" for ending in content))


def _show(tables: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(tables))
