"""Published corpora and word vectors as the files that spaCy trains from, and whole projects.

The functions that read a format have the name of the command below `spacy-psa convert`, and its
options as their arguments.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import spacy
from spacy.tokens import Doc
from spacy.training.initialize import convert_vectors
from spacy.vocab import Vocab

from spacy_psa.corpora import (
    any_columns,
    bmes,
    cleanconll,
    conll,
    conll2000,
    conllu,
    gum,
    jsonl,
    negra_export,
    ontonotes,
    treebanks,
)
from spacy_psa.corpora.archives import is_collection
from spacy_psa.corpora.bracketing import AS_IS, Labels, TreeStyle
from spacy_psa.corpora.docbin import check_docbin_path, write_docbin
from spacy_psa.corpora.documents import join_documents
from spacy_psa.corpora.glove import prepare_vectors
from spacy_psa.corpora.layouts import Layout
from spacy_psa.corpora.lines import describe, describe_repairs
from spacy_psa.corpora.quotes import Quotes, as_text
from spacy_psa.corpora.readers import blank
from spacy_psa.corpora.split_parts import drawn_part
from spacy_psa.corpora.tag_schemes import TagScheme
from spacy_psa.errors import InputError
from spacy_psa.sentences import sentence_bounds

Scheme: TypeAlias = "TagScheme | Literal['auto']"
Watch = Callable[[Iterator[Any], str], Iterator[Any]]
"""Wraps a stream, to show how far it is; the string names its elements."""


@dataclass
class Conversion:
    """A file that is converted, and the messages about it."""

    source: Path
    vocab: Vocab
    messages: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    repairs: Counter[str] = field(default_factory=Counter)


def convert(
    form: str,
    source: Path,
    target: Path,
    lang: str = "en",
    watch: Watch = lambda items, what: items,
    documents: bool = False,
    **options: Any,
) -> Conversion:
    """Convert a corpus file, folder or archive to a `.spacy` file.

    The format is a key of `FORMATS`, and the further options are those of the format. `watch`
    follows the sentences. With `documents`, the sentences of each document are joined, with a
    warning if the source names none.
    """
    check_docbin_path(target)
    job = Conversion(source, blank(lang).vocab)
    counts: Counter[str] = Counter()

    def counted(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in docs:
            counts["sentences"] += len(sentence_bounds(doc))
            counts["tokens"] += len(doc)
            if doc.has_annotation("ENT_IOB"):
                counts["entities"] += len(doc.ents)
            for name, spans in doc.spans.items():
                counts[name] += len(spans)
            yield doc
        if job.repairs and not counts["tokens"]:
            raise InputError(f"{source}: nothing is left to write: {describe(job.repairs)}")

    docs = FORMATS[form](job, **options)
    write_docbin(watch(counted(_joined(job, docs) if documents else docs), "sentences"), target)
    if job.repairs:
        job.warnings.append(describe_repairs(source, job.repairs))
    numbers = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    job.messages.append(f"{source} -> {target}: {numbers}")
    return job


def _conll2003(job: Conversion, scheme: Scheme = "auto") -> Iterable[Doc]:
    resolved = conll.resolve_scheme(job.source, scheme)
    _name_scheme(job, scheme, resolved)
    return conll.read_docs(job.source, job.vocab, resolved, job.repairs)


def _plain(read: Callable[..., Iterable[Doc]]) -> Callable[..., Iterable[Doc]]:
    """Make the function that reads a format whose options are those of `read`."""
    return lambda job, **options: read(job.source, job.vocab, repairs=job.repairs, **options)


def _columns(
    job: Conversion,
    word: int = 0,
    ner: int | None = None,
    tag: int | None = None,
    chunk: int | None = None,
    scheme: Scheme = "auto",
    label: str = "",
    draw: float = 0.0,
    seed: int = 0,
    part: Literal["train", "dev", "test"] = "train",
) -> Iterable[Doc]:
    columns = any_columns.Columns(word, ner, tag, chunk)
    schemes = any_columns.resolve_schemes(job.source, columns, scheme, label)
    if schemes.ner:
        _name_scheme(job, scheme, schemes.ner)
    docs = any_columns.read_docs(job.source, job.vocab, columns, schemes, job.repairs)
    if draw:
        return drawn_part(docs, draw, seed, part)
    if part != "train":
        raise InputError(f"--part {part} needs a share to draw: add --draw 0.1")
    return docs


def _ontonotes(
    job: Conversion,
    folder: str = "",
    sections: str = "",
    new_testament: bool = False,
    quotes: Quotes = "treebank",
    spaces: bool = False,
) -> Iterable[Doc]:
    numbers = treebanks.parse_sections(sections) if sections else None
    docs = ontonotes.read_docs(job.source, job.vocab, job.repairs, folder, numbers, new_testament)
    return as_text(docs, quotes, spaces)


def _bmes(job: Conversion, scheme: Scheme = "auto", join_types: bool = False) -> Iterable[Doc]:
    form = bmes.resolve_format(job.source, scheme)
    _name_scheme(job, scheme, form.scheme)
    return bmes.read_docs(job.source, job.vocab, form, job.repairs, join_types)


def _treebank(family: str, option: str = "", last: int = 0) -> Callable[..., Iterable[Doc]]:
    """Make the function that reads a family of treebanks; `option` chooses files by numbers."""

    def read(
        job: Conversion,
        numbers: str = "",
        labels: Labels = "bare",
        x_over_x: bool = False,
        quotes: Quotes = "treebank",
        spaces: bool = False,
        **parts: Any,
    ) -> Iterable[Doc]:
        chosen = treebanks.parse_numbers(numbers, option, last) if numbers else None
        style = _style(treebanks.TREEBANKS[family].style, labels, x_over_x, **parts)
        docs = treebanks.read_docs(family, job.source, job.vocab, job.repairs, chosen, style)
        return as_text(docs, quotes, spaces)

    return read


def _style(
    style: TreeStyle, labels: Labels, x_over_x: bool, separators: str = "", lemmas: bool = False
) -> TreeStyle:
    if separators and labels != "bare":
        raise InputError("--separators ends the categories of bare labels: add --labels bare")
    merge, ends = not x_over_x, separators or style.separators
    return replace(style, labels=labels, merge_same=merge, separators=ends, lemmas=lemmas)


def _brackets(
    job: Conversion,
    labels: Labels = "whole",
    x_over_x: bool = True,
    indented: bool = False,
    quotes: Quotes = "treebank",
    spaces: bool = False,
    separators: str = "",
) -> Iterable[Doc]:
    style = _style(AS_IS, labels, x_over_x, separators)
    if is_collection(job.source):
        docs = treebanks.read_docs(
            "brackets", job.source, job.vocab, job.repairs, style=style, one_a_line=not indented
        )
    else:
        docs = treebanks.read_bracket_docs(job.source, job.vocab, job.repairs, style, not indented)
    return as_text(docs, quotes, spaces)


def _export(job: Conversion, sentences: str = "", **options: Any) -> Iterable[Doc]:
    last = negra_export.LAST
    numbers = treebanks.parse_numbers(sentences, "--sentences", last) if sentences else None
    return negra_export.read_docs(job.source, job.vocab, job.repairs, numbers, **options)


FORMATS: dict[str, Callable[..., Iterable[Doc]]] = {
    "conll2003": _conll2003,
    "cleanconll": _plain(cleanconll.read_docs),
    "columns": _columns,
    "conll2000": _plain(conll2000.read_docs),
    "ontonotes": _ontonotes,
    "bmes": _bmes,
    "conllu": _plain(conllu.read_docs),
    "gum": _plain(gum.read_docs),
    "sample": _plain(jsonl.read_docs),
    "ptb": _treebank("ptb", "--sections", treebanks.LAST_SECTION),
    "brackets": _brackets,
    "spmrl": _treebank("spmrl"),
    "ctb": _treebank("ctb", "--files", treebanks.LAST_FILE),
    "psd": _treebank("psd"),
    "export": _export,
}
"""The function that reads each format."""


def _name_scheme(job: Conversion, asked: Scheme, scheme: TagScheme) -> None:
    if asked == "auto":
        job.messages.append(f"{job.source}: entity column is {scheme.upper()}")


def _joined(job: Conversion, docs: Iterable[Doc]) -> Iterator[Doc]:
    """Join the sentences of each document; warn of a file that names none."""
    named = False

    def seen() -> Iterator[Doc]:
        nonlocal named
        for doc in docs:
            named = named or "document" in doc.user_data
            yield doc

    yield from join_documents(seen())
    if not named:
        job.warnings.append(f"{job.source}: marks no documents, so each sentence is one")


def convert_project(
    layout: Layout, source: Path, target: Path, watch: Watch
) -> Iterator[Conversion]:
    """Convert all files of a corpus in a folder, and its word vectors to a pipeline, one by one.

    Of the parts that may be missing, those are converted whose files are there.
    """
    parts = {name: getattr(layout, name) for name in ("train", "dev", "test")}
    for name, sources in layout.more.items():
        there = (part for part in sources if all((source / f).is_file() for f in part.files()))
        if part := next(there, None):
            parts[name] = part
    for name, part in parts.items():
        output, form = target / f"{name}.spacy", part.form or layout.format
        options = part.options | {option: source / file for option, file in part.more_files.items()}
        yield convert(form, source / part.file, output, layout.lang, watch, **options)
    if layout.vectors:
        yield _convert_vectors(source / layout.vectors, target / "vectors", watch)


def _convert_vectors(source: Path, target: Path, watch: Watch) -> Conversion:
    nlp = spacy.blank("en")
    job = Conversion(source, nlp.vocab)
    with TemporaryDirectory() as folder:
        text = Path(folder) / "vectors.txt"
        job.messages.append(convert_glove(source, text, watch=watch))
        convert_vectors(nlp, text, truncate=0, prune=-1, name="glove")
    nlp.to_disk(target)
    job.messages.append(f"{target}: {len(nlp.vocab.vectors):,} vectors")
    return job


def convert_glove(
    source: Path, target: Path, dim: int = 100, member: str | None = None, *, watch: Watch
) -> str:
    """Convert word vectors as `prepare_vectors` does, and return a message."""
    rows = prepare_vectors(source, target, dim, member, watch)
    return f"{source} -> {target}: {rows:,} vectors of {dim} numbers"
