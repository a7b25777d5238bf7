"""Reads a folder of files in any of several formats as training, development and test data."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc

from spacy_psa.corpora import any_columns
from spacy_psa.corpora.any_columns import find_columns
from spacy_psa.corpora.cut_sentences import cut_sentences
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.corpora.lines import describe_repairs
from spacy_psa.corpora.marked_text import Misfits, mark_doc
from spacy_psa.corpora.own_files import OwnFile, own_files
from spacy_psa.corpora.split_parts import Source, split_off
from spacy_psa.errors import InputError
from spacy_psa.sentences import name_of_document


@dataclass
class OwnCorpus:
    """The sentences of a folder, and what is to be said of them."""

    parts: dict[str, list[Doc]] = field(default_factory=dict)
    """Docs of train, dev and, if there are any, test; each is one sentence.

    `doc.user_data["document"]` names the document: as the source names it, or else by the file and
    the number of the text in it. Sentences of columns without -DOCSTART- lines have no document.
    """
    told: list[str] = field(default_factory=list)
    """What was found, a line for each file."""
    warnings: list[str] = field(default_factory=list)
    misfits: Misfits = field(default_factory=Misfits)
    """Marks that no entity could be made of."""
    cut: bool = False
    """Whether sentences were found by rules, as the files do not mark them."""


def read_own_corpus(
    folder: Path, nlp: Language, dev: float = 0.1, test: float = 0.0, seed: int = 0
) -> OwnCorpus:
    """Read all files of a folder.

    A file or folder with `train`, `dev` or `test` in its name is that part. All others are training
    data. Where there is no development data, some is drawn from the training data, by document.

    Args:
        folder: the folder.
        nlp: the pipeline that makes tokens.
        dev: the share of the training sentences to draw where there is no development data.
        test: the share to draw where there is no test data; 0 draws none.
        seed: the seed of the draws.

    Raises:
        InputError: if a file cannot be read, or there is no training data.
    """
    corpus = OwnCorpus()
    files, others = own_files(folder)
    sources: dict[str, list[Source]] = {"train": [], "dev": [], "test": []}
    for file in files:
        found = list(_read(file, file.path.relative_to(folder).as_posix(), nlp, corpus))
        sources[file.part or "train"] += found
        what = "training data, as its name names no part" if file.part is None else file.part
        corpus.told[-1] += f", {len(found):,} sentences: {what}"
    corpus.warnings += [f"{path}: is no file of a corpus, left out" for path in others]
    if not sources["train"]:
        raise InputError(
            f"{folder}: there is no training data; add a file without `dev` or `test` in its name"
        )
    for part, share in (("test", test), ("dev", dev)):
        if not sources[part] and share:
            split = split_off(sources["train"], share, seed)
            sources["train"], sources[part] = split.rest, split.drawn
            corpus.told.append(
                f"{part}: {len(split.drawn):,} sentences of the training data, drawn by "
                f"{split.unit} with seed {seed}"
            )
    corpus.parts = {part: [s.doc for s in found] for part, found in sources.items() if found}
    return corpus


def _read(file: OwnFile, name: str, nlp: Language, corpus: OwnCorpus) -> Iterator[Source]:
    repairs: Counter[str] = Counter()
    if file.format == "columns":
        columns = find_columns(file.path)
        schemes = any_columns.resolve_schemes(file.path, columns)
        corpus.told.append(f"{file.path}: columns: {columns}{_named(schemes)}")
        for doc in any_columns.read_docs(file.path, nlp.vocab, columns, schemes, repairs):
            number = doc.user_data.get("document", 0)
            if number:
                doc.user_data["document"] = f"{name} {number}"
            yield Source((name, number), doc)
    else:
        corpus.told.append(f"{file.path}: {file.format}")
        for number, doc in enumerate(_docs(file, nlp, corpus.misfits, repairs), start=1):
            corpus.cut |= not doc.has_annotation("SENT_START")
            given = name_of_document(doc) or {"document": f"{name} {number}"}
            for sentence in cut_sentences(doc, repairs):
                sentence.user_data.update(given)
                yield Source((name, given.get("document", number)), sentence)
    if repairs:
        corpus.warnings.append(describe_repairs(file.path, repairs))


def _docs(file: OwnFile, nlp: Language, misfits: Misfits, repairs: Counter[str]) -> Iterator[Doc]:
    if file.read is None:
        yield from read_docbin(file.path, nlp.vocab)
        return
    for marked in file.read(file.path, repairs):
        yield mark_doc(nlp, marked, misfits)


def _named(schemes: any_columns.Schemes) -> str:
    found = [scheme.upper() for scheme in schemes if scheme]
    return f" ({', '.join(found)})" if found else ""
