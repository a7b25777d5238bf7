"""Whole files annotated, parsed and drawn: a source in, an output and a summary of the run out."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy_psa.annotation.annotator import Annotator, Failed, Malformed, annotated
from spacy_psa.annotation.input import Reading, Source, check_source, open_source
from spacy_psa.annotation.questions import MakeQuestion, Question, find_labeler
from spacy_psa.annotation.run import Run, Summary
from spacy_psa.annotation.tree_writers import (
    GAP,
    TreeFormat,
    check_picture,
    open_pictures,
    open_tree_writer,
    resolve_tree_format,
)
from spacy_psa.annotation.writers import (
    USUAL_KEYS,
    OutputFormat,
    Scheme,
    SpanKeys,
    Writer,
    open_confidence_page,
    open_writer,
    resolve_format,
)
from spacy_psa.errors import InputError
from spacy_psa.loading import find_pipe, load_pipeline

if TYPE_CHECKING:
    from spacy.language import Language


def annotate_file(
    open_pipeline: "Callable[[], Language]",
    reading: AbstractContextManager[Source],
    writing: AbstractContextManager[Writer],
    run: Run,
    gap: Any = None,
    empty: str | None = None,
    question: "Question | None" = None,
) -> Summary:
    """Annotate all documents of a source.

    Args:
        open_pipeline: returns the pipeline; with several processes it is pickled.
        writing: opens the writer; it is entered after the source.
        gap: the row of a document that cannot be read or annotated; None for none.
        empty: the error of a source without documents; None if it may have none.
        question: a question about the annotated documents.

    Raises:
        NothingAnnotated: if no document was annotated; then the writer does not finish.
    """
    summary, watch = Summary(), run.watch
    with reading as opened, writing as writer:
        ask = question.ask if question else None
        annotator = Annotator(open_pipeline, opened.make_doc, writer.encode, ask)
        outcomes = annotated(annotator, opened.records, run.batch_size, run.n_process)
        started = time.perf_counter()  # the pipeline is open
        watch.advance(0, opened.total, 0)
        with closing(outcomes):
            for record, outcome in outcomes:
                if isinstance(outcome, Malformed):
                    if not run.skip_bad:
                        raise InputError(
                            f"{record.where}: {outcome.reason}; correct the line or use --skip-bad"
                        )
                    summary.bad += 1
                    watch.say(f"{record.where}: skipped: {outcome.reason}")
                elif isinstance(outcome, Failed):
                    summary.failed += 1
                    watch.say(f"{record.where}: not annotated: {outcome.reason}")
                else:
                    writer.write(outcome.row)
                    if question:
                        question.take(record, outcome.answer)
                    summary.docs += 1
                    summary.words += outcome.words
                    watch.advance(record.position, opened.total, summary.words)
                    continue
                if gap is not None:
                    writer.write(gap)
        summary.check()
        if empty is not None and not summary.docs:
            raise InputError(empty)
        if question:
            question.finish(watch)
    summary.seconds = time.perf_counter() - started
    summary.replaced = writer.replaced
    return summary


def annotate(
    model: str,
    source: Path,
    target: Path,
    reading: Reading,
    form: OutputFormat,
    run: Run,
    scheme: Scheme = "bio",
    tokens: bool = False,
    make_question: MakeQuestion | None = None,
) -> Summary:
    """Annotate a file; "-" means stdin and stdout.

    `model` is the folder of a pipeline, or the name of an installed package. `scheme` is that of
    the tags in CoNLL columns, and `tokens` are written to JSON lines.

    Raises:
        NothingAnnotated: if no document was annotated.
    """
    # First the checks that need no time.
    run.check(reading.text_key)
    check_source(source, reading.format)
    form = resolve_format(target, form)
    load = open_confident if form == "label-studio" else load_pipeline
    opening: Callable[[], Language] = partial(load, model, run.gpu_id)
    keys, question, encode = USUAL_KEYS, None, None
    if form in ("conll", "html", "label-studio") or make_question:
        nlp = opening()
        keys = SpanKeys.of(nlp)
        opening = opening if run.n_process != 1 else lambda: nlp
        if make_question:
            question = make_question(nlp)
            encode = question.encode
    writing = open_writer(target, form, scheme, tokens, reading.text_key, keys, encode)
    return annotate_file(opening, open_source(source, reading), writing, run, question=question)


def annotate_on_ray(
    model: str,
    source: str,
    target: str,
    reading: Reading,
    form: OutputFormat,
    run: Run,
    tokens: bool = False,
    address: str | None = None,
) -> Summary:
    """Annotate the files of a folder on Ray; see `annotate_folder`."""
    try:
        from spacy_psa.annotation.ray_engine import annotate_folder
    except ModuleNotFoundError as error:
        if error.name not in ("ray", "pyarrow", "pandas"):
            raise
        raise InputError("--engine ray needs Ray: pip install 'spacy-psa[ray]'") from error
    return annotate_folder(model, source, target, reading, form, run, tokens, address)


def parse(
    model: str,
    source: Path,
    target: Path,
    reading: Reading,
    form: TreeFormat,
    run: Run,
    pipe: str | None = None,
    sentencizer: bool = False,
    confidence: bool = False,
) -> Summary:
    """Parse a file to trees; the settings are those of `open_parser`, the errors of `annotate`."""
    run.check(reading.text_key)
    if reading.text_key == "trees":
        raise InputError("--text-key trees: the trees have this key; rename it in the input")
    gaps = check_source(source, reading.format) != "text"
    form = resolve_tree_format(target, form)
    scores = form == "jsonl"
    opening = partial(open_parser, model, run.gpu_id, pipe, sentencizer, confidence, scores)
    nlp = opening()
    key = _parser_of(nlp, pipe).spans_key
    return annotate_file(
        opening if run.n_process != 1 else lambda: nlp,
        open_source(source, reading),
        open_tree_writer(target, form, key=key, gaps=gaps, text_key=reading.text_key),
        run,
        _gap(form, gaps),
        _no_sentence(source),
    )


def write_trees(source: Path, target: Path, form: TreeFormat, key: str, run: Run) -> Summary:
    """Write the trees of the span group `key` in a `.spacy` file, as `parse` does."""
    import spacy

    reading = Reading("spacy", keep=True)
    check_source(source, reading.format)
    form = resolve_tree_format(target, form)
    return annotate_file(
        partial(spacy.blank, "xx"),
        open_source(source, reading),
        open_tree_writer(target, form, key=key, gaps=True),
        run,
        _gap(form, True),
        _no_sentence(source),
    )


def _gap(form: TreeFormat, gaps: bool) -> list[str] | None:
    return [GAP] if gaps and form in ("brackets", "indented") else None


def _no_sentence(source: Path) -> str:
    return f"{source}:1: has no sentences; choose another file"


def draw_spans(
    model: str, source: Path, target: Path, reading: Reading, run: Run, pipe: str | None = None
) -> Summary:
    """Draw the spans of a component with their probabilities, as HTML; nested ones as lines."""
    check_source(source, reading.format)
    nlp = load_pipeline(model, run.gpu_id)
    drawn = find_labeler(nlp, pipe)
    drawn.confidence = True
    writing = open_confidence_page(target, drawn)
    return annotate_file(lambda: nlp, open_source(source, reading), writing, run)


def draw_trees(
    model: str,
    source: Path,
    target: Path,
    reading: Reading,
    run: Run,
    pipe: str | None = None,
    confidence: bool = False,
) -> Summary:
    """Draw constituency trees, as SVG or text; `confidence` draws their probabilities."""
    check_source(source, reading.format)
    check_picture(target)
    nlp = open_parser(model, run.gpu_id, pipe, confidence=confidence)
    writing = open_pictures(target, _parser_of(nlp, pipe).spans_key)
    return annotate_file(lambda: nlp, open_source(source, reading), writing, run)


def open_confident(model: str, gpu_id: int) -> "Language":
    """Open a pipeline whose `crf_ner`, `crf_spans` and `crf_chunker` write probabilities."""
    from spacy_psa.pipeline.chain.labeler import ChainLabeler
    from spacy_psa.pipeline.nested.spans import NestedSpanLabeler

    nlp = load_pipeline(model, gpu_id)
    for _, pipe in nlp.pipeline:
        if isinstance(pipe, ChainLabeler | NestedSpanLabeler):
            pipe.confidence = True
    return nlp


def open_parser(
    model: str,
    gpu_id: int,
    pipe: str | None,
    sentencizer: bool = False,
    confidence: bool = False,
    scores: bool = False,
) -> "Language":
    """Open a pipeline with a parser, which replaces the trees that documents have.

    Args:
        pipe: the name of the parser; None if there is only one.
        sentencizer: whether to put a sentencizer first, unless there is one before the parser.
        confidence: whether to write probabilities.
        scores: whether to write them if the parser was trained by likelihood.
    """
    from spacy.pipeline import Sentencizer

    from spacy_psa.pipeline.parser.parser import ConstituencyParser

    nlp = load_pipeline(model, gpu_id)
    parser = _parser_of(nlp, pipe)
    for _, each in nlp.pipeline:
        if isinstance(each, ConstituencyParser):
            each.overwrite = True
    parser.confidence = parser.confidence or confidence or (scores and not parser.ranks_only)
    before = nlp.pipeline[: nlp.pipe_names.index(parser.name)]
    if sentencizer and not any(isinstance(each, Sentencizer) for _, each in before):
        names = chain(["sentencizer"], (f"sentencizer_{number}" for number in count(2)))
        name = next(name for name in names if name not in nlp.component_names)
        nlp.add_pipe("sentencizer", name=name, first=True)
    return nlp


def _parser_of(nlp: "Language", name: str | None) -> Any:
    from spacy_psa.pipeline.parser.parser import ConstituencyParser

    return find_pipe(nlp, name, ConstituencyParser, "constituency_parser")
