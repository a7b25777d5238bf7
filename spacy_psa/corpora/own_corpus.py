"""Reads a folder of files in any of several formats as training, development and test data."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal

from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from spacy_psa.corpora import any_columns, conllu
from spacy_psa.corpora.atomic import unwritable_as_input_error, write_json, write_text
from spacy_psa.corpora.columns import Schemes, Sentence
from spacy_psa.corpora.corpus_check import check_corpus
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.corpora.lines import describe_repairs
from spacy_psa.corpora.marked_text import KEPT, MISSING, NESTED, Misfits, mark_doc, marked_spans
from spacy_psa.corpora.own_files import NAMES, PARTS, OwnFile, own_files, recognise
from spacy_psa.corpora.own_labels import OwnLabels
from spacy_psa.corpora.split_parts import Source, split_off
from spacy_psa.corpora.tag_schemes import TagForm, TagScheme
from spacy_psa.errors import InputError
from spacy_psa.sentences import cut_out, name_of_document, set_sentence_starts

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
    faults: list[str] = field(default_factory=list)
    """Lines and records that cannot be read, whose sentences are left out."""
    contradictions: list[str] = field(default_factory=list)
    """Texts that occur with different entities."""
    seen: dict[str, tuple[str, list[tuple[int, int, str]]]] = field(default_factory=dict)
    """The place and the entities of each text."""
    labels: set[str] = field(default_factory=set)
    """The labels of entities in the files."""
    cut: bool = False
    """Whether sentences were found by rules, as the files do not mark them."""

    def take(self, place: str, text: str, doc: Doc, labels: OwnLabels) -> Doc:
        """Rename the labels of a document, and note a text that has occurred with others."""
        self.labels.update(span.label_ for span in marked_spans(doc))
        doc = labels.changed(doc)
        nested = NESTED in doc.spans
        if MISSING in doc.spans or (not nested and any(token.ent_iob == 0 for token in doc)):
            return doc
        ents = [(span.start, span.end, span.label_) for span in marked_spans(doc)]
        first, others = self.seen.setdefault(text, (place, ents))
        if ents != others:
            self.contradictions.append(
                f"{place}: has the text of {first} with other entities; keep one of them"
            )
        return doc


@dataclass(frozen=True)
class Reading:
    """How to read a folder of files.

    Where a folder has no development or test data, a share of the training data is drawn.
    """

    dev: float = 0.1
    """The share of the training sentences to draw for development; 0 draws none."""
    test: float = 0.0
    """The same for test data."""
    seed: int = 0
    """The seed of the draws."""
    labels: OwnLabels = field(default_factory=OwnLabels)
    scheme: TagScheme | Literal["auto"] = "auto"
    """The scheme of tags of entities; "auto" also reads a mixture of schemes."""
    nested: bool = False
    """Whether marks that overlap are all kept, in `doc.spans["sc"]`, see `mark_doc`."""
    skip_bad: bool = False
    """Whether to leave out sentences with lines or records that cannot be read."""


def read_own_corpus(folder: Path, nlp: Language, how: Reading = Reading()) -> OwnCorpus:
    """Read all files of a folder.

    A file or folder with `train`, `dev` or `test` in its name is that part. All others are training
    data. Where there is no development data, some is drawn from the training data, by document.
    `nlp` makes the tokens.
    """
    corpus = OwnCorpus()
    files, others = own_files(folder, how.labels.numbers)
    sources: dict[str, list[Source]] = {"train": [], "dev": [], "test": []}
    for file in files:
        read = list(_read(file, file.path.relative_to(folder).as_posix(), nlp, corpus, how))
        sources[file.part or "train"] += read
        what = "training data, as its name names no part" if file.part is None else file.part
        corpus.messages[-1] += f", {len(read):,} sentences: {what}"
    corpus.warnings += others
    if corpus.faults and not how.skip_bad:
        more = len(corpus.faults) - 1
        raise InputError(
            f"{corpus.faults[0]}{f' (and {more:,} more such line(s))' if more else ''}; --skip-bad "
            "leaves their sentences out"
        )
    if not sources["train"]:
        raise InputError(
            f"{folder}: there is no training data; add a file without `dev` or `test` in its name"
        )
    how.labels.check(corpus.labels)
    corpus.warnings += _similar_labels(doc for each in sources.values() for _, doc in each)
    _check_learnable(folder, [source.doc for source in sources["train"]], corpus.misfits)
    for part, share in (("test", how.test), ("dev", how.dev)):
        if not sources[part] and share:
            split = split_off(sources["train"], share, how.seed)
            sources["train"], sources[part] = split.rest, split.drawn
            corpus.messages.append(
                f"{part}: {len(split.drawn):,} sentences of the training data, drawn by "
                f"{split.unit} with seed {how.seed}"
            )
    corpus.parts = {part: [s.doc for s in drawn] for part, drawn in sources.items() if drawn}
    return corpus


def examples(docs: Iterable[Doc], count: int = 3) -> list[str]:
    """Show sentences with their entities as `[Ada PER] left`, those with the rarest labels first.

    Each shows a label that those before it lack, as long as there is one. Sentences without
    entities come last, and are shown with their parts of speech or chunks.
    """
    labelled = [(doc, {span.label_ for span in marked_spans(doc)}) for doc in docs]
    counts = Counter(span.label_ for doc, _ in labelled for span in marked_spans(doc))
    labelled.sort(key=lambda pair: min((counts[label] for label in pair[1]), default=10**9))
    first: list[Doc] = []
    known: set[str] = set()
    for doc, own in labelled:
        if own - known:
            first.append(doc)
        known |= own
    shown: dict[str, None] = {}
    for doc in chain(first, (doc for doc, _ in labelled)):
        if len(shown) == count:
            break
        shown[_with_marks(doc)] = None
    return list(shown)


def _with_marks(doc: Doc) -> str:
    spans = marked_spans(doc) or list(doc.spans.get("chunks", ()))
    starts = Counter(span.start for span in spans)
    ends: dict[int, str] = {}
    for span in sorted(spans, key=len):  # the inner ones first
        ends[span.end - 1] = f"{ends.get(span.end - 1, '')} {span.label_}]"
    tags = not spans and doc.has_annotation("TAG")
    return " ".join(
        f"{'[' * starts[t.i]}{t.text}{f'/{t.tag_}' * tags}{ends.get(t.i, '')}" for t in doc[:60]
    )


def read_own_file(path: Path, nlp: Language) -> tuple[list[Doc], list[str]]:
    """Read the sentences of one file, in any format of a corpus, and the warnings about them.

    There is a warning for each mark that is left out.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; check the path")
    file, corpus = recognise(path), OwnCorpus()
    if file is None:
        raise InputError(f"{path}: is not {NAMES}; convert the file")
    docs = [source.doc for source in _read(file, path.name, nlp, corpus, Reading())]
    if corpus.faults:
        raise InputError(corpus.faults[0])
    return docs, [*corpus.warnings, *corpus.misfits.moves, *corpus.misfits.lines]


CHECK = "check.json"
"""The file with the figures of a corpus."""

LEFT_OUT = "left_out.txt"
"""The file with the lines, records and marks that are left out."""


def corpus_figures(
    corpus: OwnCorpus, folder: Path, seed: int = 0, has_vector: Callable[[str], bool] | None = None
) -> dict[str, Any]:
    """Compute the figures of a corpus that was read from a folder, as `check_corpus` does."""
    figures = check_corpus(corpus.parts, has_vector)
    figures["misfits"] = {
        "count": dict(corpus.misfits.counts),
        "each": corpus.misfits.lines,
        "by label": {label: dict(each) for label, each in corpus.misfits.labels.items()},
    }
    figures["left out"] = corpus.faults
    figures["contradictions"] = corpus.contradictions
    figures["source"] = {
        "folder": str(folder),
        "seed": seed,
        "sentences found by rules": corpus.cut,
    }
    return figures


def check_output(output: Path) -> None:
    """Raise an InputError if a folder cannot be written."""
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; choose the name of a folder")


def write_own_corpus(corpus: OwnCorpus, figures: dict[str, Any], output: Path) -> None:
    """Write the parts of a corpus as `.spacy` files, its figures, and what is left out."""
    check_output(output)
    for part, docs in corpus.parts.items():
        write_docbin(docs, output / f"{part}.spacy")
    write_json(output / CHECK, figures)
    left_out = [*corpus.faults, *corpus.misfits.lines]
    if left_out:
        write_text(output / LEFT_OUT, "".join(f"{line}\n" for line in left_out))
    stale = [f"{part}.spacy" for part in PARTS.keys() - corpus.parts.keys()]
    for name in stale + [LEFT_OUT] * (not left_out):  # those of an earlier corpus
        with unwritable_as_input_error(output):
            (output / name).unlink(missing_ok=True)


def was_cut(check: Path) -> bool:
    """Tell from the figures of a corpus whether its sentences were found by rules."""
    try:
        figures = json.loads(check.read_text(encoding="utf8"))
        return bool(figures["source"]["sentences found by rules"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _similar_labels(docs: Iterable[Doc]) -> list[str]:
    """Warn of labels of entities that differ only in case or in signs such as "_"."""
    counts = Counter(span.label_ for doc in docs for span in marked_spans(doc))
    groups: dict[str, list[str]] = {}
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        letters = "".join(letter for letter in label.casefold() if letter.isalnum())
        groups.setdefault(letters or label, []).append(label)
    return [
        f"the labels {', '.join(f'{label} ({counts[label]:,})' for label in labels)} differ only "
        f"in case or signs; to join them: --label '{labels[1]}={labels[0]}'"
        for labels in groups.values()
        if len(labels) > 1
    ]


def _check_learnable(folder: Path, docs: list[Doc], misfits: Misfits) -> None:
    """Raise an InputError if no marked entity is left, or nothing is annotated."""
    entities = sum(len(marked_spans(doc)) for doc in docs)
    if misfits.labels and not entities:
        faults = ", ".join(f"{count:,} {kind}" for kind, count in misfits.counts.items())
        faults = faults or "only other files have entities"
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
    file: OwnFile, name: str, nlp: Language, corpus: OwnCorpus, how: Reading
) -> Iterator[Source]:
    repairs: Counter[str] = Counter()
    if file.rows is not None:
        for doc in _of_rows(file, nlp, corpus, how, repairs):
            number = doc.user_data.get("document", 0)
            if number:
                doc.user_data["document"] = f"{name} {number}"
            yield Source((name, number), doc)
    else:
        corpus.messages.append(f"{file.path}: {file.format}")
        for number, doc in enumerate(_docs(file, nlp, corpus, how, repairs), start=1):
            corpus.cut |= not doc.has_annotation("SENT_START")
            given = {"document": f"{name} {number}"} | name_of_document(doc)
            for sentence in cut_sentences(doc, repairs):
                sentence.user_data.update(given)
                yield Source((name, given["document"]), sentence)
    if repairs:
        corpus.warnings.append(describe_repairs(file.path, repairs))


def _of_rows(
    file: OwnFile, nlp: Language, corpus: OwnCorpus, how: Reading, repairs: Counter[str]
) -> Iterator[Doc]:
    """Yield the sentences of a file with a token in each row."""
    path, read = file.path, file.rows
    assert read is not None
    place, text = "", ""

    def look(path: Path, repairs: Counter[str]) -> Iterator[Sentence]:
        return read(path, repairs, [])

    def noted(path: Path, repairs: Counter[str]) -> Iterator[Sentence]:
        nonlocal place, text
        for sentence in read(path, repairs, corpus.faults):
            place = f"{path}:{sentence.rows[0].line}"
            text = " ".join(row.columns[columns.word] for row in sentence.rows)
            yield sentence

    columns = any_columns.find_columns(path, look)
    schemes = any_columns.resolve_schemes(path, columns, how.scheme, how.labels.only, look)
    corpus.messages.append(f"{path}: {file.format}: {columns}{_named(schemes)}")
    for doc in any_columns.read_docs(
        path, nlp.vocab, columns, schemes, repairs, corpus.misfits, noted, corpus.faults,
        mixed=how.scheme == "auto",
    ):  # fmt: skip
        yield corpus.take(place, text, doc, how.labels)


def _docs(
    file: OwnFile, nlp: Language, corpus: OwnCorpus, how: Reading, repairs: Counter[str]
) -> Iterator[Doc]:
    if file.reader is None:
        for number, doc in enumerate(read_docbin(file.path, nlp.vocab), start=1):
            for span in marked_spans(doc):
                corpus.misfits.count(span.label_, KEPT)
            yield corpus.take(f"{file.path}: document {number}", doc.text, doc, how.labels)
        return
    if file.reader is conllu:
        docs = conllu.read_docs(file.path, nlp.vocab, repairs, corpus.faults, corpus.misfits)
        for number, doc in enumerate(docs, start=1):
            yield corpus.take(f"{file.path}: sentence {number}", doc.text, doc, how.labels)
        return
    for marked in file.texts(repairs, corpus.faults):
        doc = mark_doc(nlp, marked, corpus.misfits, how.nested)
        yield corpus.take(marked.place, marked.text, doc, how.labels)


def _named(schemes: Schemes) -> str:
    names = [scheme.upper() for scheme in (schemes.ner, schemes.chunk) if scheme]
    if schemes.form and schemes.form.name != FORM:
        names.append(f"written as {schemes.form.name}")
    return f" ({', '.join(names)})" if names else ""


def cut_sentences(doc: Doc, counts: dict[str, int]) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence of a document, which does not change.

    Bounds that the doc has are kept. A doc without bounds is cut at punctuation, as spaCy's
    `sentencizer` does, and at line ends; tokens of blanks are left out there. A bound inside
    an entity or a span of `doc.spans` is left out, and counted in `counts`.
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
    set_sentence_starts(doc, [i == 0 for i in range(len(doc))])
    return doc
