"""Reads a folder of files in any of several formats as training, development and test data."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from spacy_psa.corpora import any_columns, brat, doccano, label_studio, prodigy, spacy_jsonl
from spacy_psa.corpora.atomic import unwritable_as_input_error, write_json
from spacy_psa.corpora.columns import Schemes
from spacy_psa.corpora.corpus_check import check_corpus
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.corpora.json_records import read_records
from spacy_psa.corpora.lines import describe_repairs
from spacy_psa.corpora.marked_text import MarkedText, Misfits, mark_doc
from spacy_psa.corpora.split_parts import Source, split_off
from spacy_psa.corpora.tag_schemes import TagForm
from spacy_psa.errors import InputError
from spacy_psa.sentences import cut_out, name_of_document

PARTS = {
    "train": ("train", "training", "trn", "trainset"),
    "dev": ("dev", "devel", "development", "devset", "valid", "validation", "val", "testa"),
    "test": ("test", "testing", "testset", "testb"),
}
"""Each part and the words in names of files and folders that mean it."""
COLUMNS = {".conll", ".iob", ".iob2", ".bio", ".bioes", ".bmes", ".tsv", ".col", ".conllu"}
NOT_CORPORA = {".md", ".rst", ".cfg", ".yml", ".yaml", ".toml", ".py", ".pdf", ".html", ".ann"}
JSON = {".json": "JSON", ".jsonl": "JSONL", ".ndjson": "JSONL", ".jl": "JSONL"}
READERS: dict[str, Any] = {
    "Label Studio": label_studio,
    "Prodigy": prodigy,
    "doccano": doccano,
    "spaCy": spacy_jsonl,
}
"""Readers of records, in the order in which they are asked whether they accept one."""
NAMES = "spaCy JSONL or DocBin, Prodigy, Label Studio, doccano, brat or columns"
FORM = TagForm().name
KEPT_WHOLE = "sentence bound(s) inside an entity, left out"


@dataclass
class OwnCorpus:
    """The sentences of a folder, and the messages about them."""

    parts: dict[str, list[Doc]] = field(default_factory=dict)
    """Docs of train, dev and, if there are any, test; each is one sentence.

    `doc.user_data["document"]` names the document: as the source names it, or else by the file and
    the number of the text in it. Sentences of columns without -DOCSTART- lines have no document.
    """
    messages: list[str] = field(default_factory=list)
    """One for each file: its format and the number of its sentences."""
    warnings: list[str] = field(default_factory=list)
    misfits: Misfits = field(default_factory=Misfits)
    """Marks that no entity could be made of."""
    seen: dict[str, tuple[str, list[tuple[int, int, str]]]] = field(default_factory=dict)
    """The place and the entities of each marked text."""
    cut: bool = False
    """Whether sentences were found by rules, as the files do not mark them."""


def read_own_corpus(
    folder: Path,
    nlp: Language,
    dev: float = 0.1,
    test: float = 0.0,
    seed: int = 0,
    label: str = "",
) -> OwnCorpus:
    """Read all files of a folder.

    A file or folder with `train`, `dev` or `test` in its name is that part. All others are training
    data. Where there is no development data, some is drawn from the training data, by document.

    Args:
        folder: the folder.
        nlp: the pipeline that makes tokens.
        dev, test: the shares of the training sentences to draw where there is no such data; 0
            draws none.
        seed: the seed of the draws.
        label: the type of entities in columns whose tags have none, such as B and I.

    Raises:
        InputError: if a file cannot be read, or there is no training data or nothing in it to learn
            from.
    """
    corpus = OwnCorpus()
    files, others = own_files(folder)
    sources: dict[str, list[Source]] = {"train": [], "dev": [], "test": []}
    for file in files:
        read = list(_read(file, file.path.relative_to(folder).as_posix(), nlp, corpus, label))
        sources[file.part or "train"] += read
        what = "training data, as its name names no part" if file.part is None else file.part
        corpus.messages[-1] += f", {len(read):,} sentences: {what}"
    corpus.warnings += [f"{path}: is not a file of a corpus, left out" for path in others]
    if not sources["train"]:
        raise InputError(
            f"{folder}: there is no training data; add a file without `dev` or `test` in its name"
        )
    corpus.warnings += _similar_labels(doc for each in sources.values() for _, doc in each)
    _check_learnable(folder, [source.doc for source in sources["train"]], corpus.misfits)
    for part, share in (("test", test), ("dev", dev)):
        if not sources[part] and share:
            split = split_off(sources["train"], share, seed)
            sources["train"], sources[part] = split.rest, split.drawn
            corpus.messages.append(
                f"{part}: {len(split.drawn):,} sentences of the training data, drawn by "
                f"{split.unit} with seed {seed}"
            )
    corpus.parts = {part: [s.doc for s in drawn] for part, drawn in sources.items() if drawn}
    return corpus


CHECK = "check.json"
"""The file with the figures of a corpus."""


def make_own_corpus(
    folder: Path,
    output: Path,
    nlp: Language,
    dev: float = 0.1,
    test: float = 0.0,
    seed: int = 0,
    label: str = "",
    has_vector: Callable[[str], bool] | None = None,
) -> tuple[OwnCorpus, dict[str, Any]]:
    """Write the parts of a folder as `.spacy` files, and the figures of a check.

    Args:
        folder, nlp, dev, test, seed, label: as in `read_own_corpus`.
        output: the folder to write.
        has_vector: as in `check_corpus`.

    Returns:
        The corpus, and the figures.

    Raises:
        InputError: as `read_own_corpus`, and if the output cannot be written.
    """
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; choose the name of a folder")
    corpus = read_own_corpus(folder, nlp, dev, test, seed, label)
    figures = check_corpus(corpus.parts, has_vector)
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
    for part, docs in corpus.parts.items():
        write_docbin(docs, output / f"{part}.spacy")
    write_json(output / CHECK, figures)
    for part in PARTS.keys() - corpus.parts.keys():  # those of an earlier corpus
        with unwritable_as_input_error(output):
            (output / f"{part}.spacy").unlink(missing_ok=True)
    return corpus, figures


def was_cut(check: Path) -> bool:
    """Tell from the figures of a corpus whether its sentences were found by rules."""
    try:
        figures = json.loads(check.read_text(encoding="utf8"))
        return bool(figures["source"]["sentences found by rules"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


@dataclass(frozen=True)
class OwnFile:
    """A file of a corpus."""

    path: Path
    part: str | None
    """train, dev, test, or None if its name has none of them."""
    format: str
    """The name of its format: `columns`, `DocBin`, or a source of marked text."""
    read: Callable[[Path, Counter[str]], Iterator[MarkedText]] | None = None
    """Reads a file with marked text."""


def own_files(folder: Path) -> tuple[list[OwnFile], list[Path]]:
    """Find the files of a corpus in a folder and the folders in it; hidden ones are left out.

    Returns:
        The files of the corpus, and those that are not of it, both by name.

    Raises:
        InputError: if there is no such folder, or no file in it can be read as a corpus.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; check the path")
    files, others = [], []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):
            continue
        file = _recognise(path, part_of(inside))
        if file:
            files.append(file)
        elif path.suffix != ".ann":
            others.append(path)
    if not files:
        raise InputError(f"{folder}: has no file that is {NAMES}; add one or convert your files")
    return files, others


def part_of(path: Path) -> str | None:
    """Return the part of a corpus that the name of a file, or else of its folder, means."""
    for name in reversed(path.parts):
        words = re.findall("[a-z]+", name.lower())
        for part, known in PARTS.items():
            if any(word in known for word in words):
                return part
    return None


def _recognise(path: Path, part: str | None) -> OwnFile | None:
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix in NOT_CORPORA:
        return None
    if suffix == ".spacy":
        return OwnFile(path, part, "DocBin")
    if suffix in JSON:
        name = _json_format(path)
        return OwnFile(path, part, f"{name} {JSON[suffix]}", READERS[name].read_texts)
    if brat.annotation_of(path).is_file():
        return OwnFile(path, part, "brat", brat.read_texts)
    if suffix in COLUMNS or part or _may_be_columns(path):
        return OwnFile(path, part, "columns")
    return None


def _json_format(path: Path) -> str:
    """Return the name of the format that most records of a file have."""
    counts: Counter[str] = Counter()
    start = ""
    for _, record in read_records(path, Counter()):
        start = start or json.dumps(record)[:60]
        counts.update(name for name, reader in READERS.items() if reader.accepts(record))
    if not counts:
        raise InputError(
            f"{path}:1: {start or 'the file'} is not a record of {', '.join(READERS)}; convert the "
            "file"
        )
    return max(READERS, key=lambda name: counts[name])


def _may_be_columns(path: Path) -> bool:
    """Look at the columns of a file whose name does not show the format."""
    try:
        any_columns.find_columns(path)
    except InputError:
        return False
    return True


def _similar_labels(docs: Iterable[Doc]) -> list[str]:
    """Warn of labels of entities that differ only in upper and lower case."""
    counts = Counter(ent.label_ for doc in docs for ent in doc.ents)
    groups: dict[str, list[str]] = {}
    for label in sorted(counts):
        groups.setdefault(label.casefold(), []).append(f"{label} ({counts[label]:,})")
    return [
        f"the labels {', '.join(labels)} differ only in upper and lower case; use one of them"
        for labels in groups.values()
        if len(labels) > 1
    ]


def _check_learnable(folder: Path, docs: list[Doc], misfits: Misfits) -> None:
    """Raise an InputError if no marked entity is left, or nothing is annotated."""
    entities = sum(len(doc.ents) for doc in docs)
    if misfits.labels and not entities:
        faults = ", ".join(f"{count:,} {kind}" for kind, count in misfits.counts.items())
        raise InputError(
            f"{folder}: no entity of the training data is left: {faults}; correct the files, "
            f"beginning with {misfits.lines[0] if misfits.lines else 'the training data'}"
        )
    if not entities and not any(
        doc.has_annotation("TAG") or any(doc.spans.values()) for doc in docs
    ):
        raise InputError(
            f"{folder}: nothing to learn from in the training data, which has no entities, parts "
            "of speech, chunks or trees; check that the annotation was exported"
        )


def _read(
    file: OwnFile, name: str, nlp: Language, corpus: OwnCorpus, label: str
) -> Iterator[Source]:
    repairs: Counter[str] = Counter()
    if file.format == "columns":
        columns = any_columns.find_columns(file.path)
        schemes = any_columns.resolve_schemes(file.path, columns, label=label)
        corpus.messages.append(f"{file.path}: columns: {columns}{_named(schemes)}")
        for doc in any_columns.read_docs(
            file.path, nlp.vocab, columns, schemes, repairs, corpus.misfits
        ):
            number = doc.user_data.get("document", 0)
            if number:
                doc.user_data["document"] = f"{name} {number}"
            yield Source((name, number), doc)
    else:
        corpus.messages.append(f"{file.path}: {file.format}")
        for number, doc in enumerate(_docs(file, nlp, corpus, repairs), start=1):
            corpus.cut |= not doc.has_annotation("SENT_START")
            given = name_of_document(doc) or {"document": f"{name} {number}"}
            for sentence in cut_sentences(doc, repairs):
                sentence.user_data.update(given)
                yield Source((name, given.get("document", number)), sentence)
    if repairs:
        corpus.warnings.append(describe_repairs(file.path, repairs))


def _docs(file: OwnFile, nlp: Language, corpus: OwnCorpus, repairs: Counter[str]) -> Iterator[Doc]:
    if file.read is None:
        yield from read_docbin(file.path, nlp.vocab)
        return
    for marked in file.read(file.path, repairs):
        doc = mark_doc(nlp, marked, corpus.misfits)
        ents = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
        place, others = corpus.seen.setdefault(marked.text, (marked.place, ents))
        if ents != others and marked.complete:
            corpus.warnings.append(
                f"{marked.place}: has the text of {place} with other entities; keep one of them"
            )
        yield doc


def _named(schemes: Schemes) -> str:
    names = [scheme.upper() for scheme in (schemes.ner, schemes.chunk) if scheme]
    if schemes.form and schemes.form.name != FORM:
        names.append(f"written as {schemes.form.name}")
    return f" ({', '.join(names)})" if names else ""


def cut_sentences(doc: Doc, counts: dict[str, int]) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence of a document.

    Bounds that the doc has are kept. A doc without bounds is cut at punctuation, as spaCy's
    `sentencizer` does, and at line ends; tokens of blanks are left out there. A bound inside
    an entity or a span of `doc.spans` is left out, and counted.

    Args:
        doc: the document, which does not change.
        counts: counts the bounds that are left out.
    """
    if not len(doc):
        return
    if len(doc) > 1 and doc.has_annotation("SENT_START"):
        starts = [i for i in range(1, len(doc)) if doc[i].is_sent_start]
        blanks: set[int] = set()
    else:
        starts, blanks = _by_rules(doc)
    spans = [*doc.ents, *(span for group in doc.spans.values() for span in group)]
    inner = {i for span in spans for i in range(span.start + 1, span.end)}
    cut = [i for i in starts if i in inner]
    if cut:
        counts[KEPT_WHOLE] = counts.get(KEPT_WHOLE, 0) + len(cut)
    bounds = [0, *(i for i in starts if i not in inner), len(doc)]
    if len(bounds) == 2 and not blanks:
        yield doc if doc.has_annotation("SENT_START") else _whole(doc)
        return
    for start, end in pairwise(bounds):
        while start < end and start in blanks - inner:
            start += 1
        while start < end and end - 1 in blanks - inner:
            end -= 1
        if start < end:
            yield _whole(cut_out(doc, start, end))


def _by_rules(doc: Doc) -> tuple[list[int], set[int]]:
    (guesses,) = Sentencizer().predict([doc])
    blanks = {token.i for token in doc if token.is_space}
    after_line = {i + 1 for i in blanks if "\n" in doc[i].text}
    starts = [i for i in range(1, len(doc)) if guesses[i] or i in after_line]
    return starts, blanks


def _whole(doc: Doc) -> Doc:
    """Make a doc one sentence."""
    for token in doc:
        token.is_sent_start = token.i == 0
    return doc
