"""The reader `spacy-psa.TreeCorpus.v1`: trees to train a parser on, one sentence in each `Doc`.

spaCy's own corpus reader keeps docs of several sentences, or splits them and loses the
constituents, because `Span.as_doc` drops span groups.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_psa.corpora import ontonotes
from spacy_psa.corpora.docbin import read_docbins
from spacy_psa.corpora.lines import describe, describe_repairs
from spacy_psa.corpora.quotes import Quotes, as_text
from spacy_psa.corpora.readers import Augmenter, Reader, augmented
from spacy_psa.corpora.treebanks import read_bracket_docs, read_docs
from spacy_psa.errors import InputError, check_choice, naming
from spacy_psa.sentences import cut_out, sentence_bounds, unannotated

KEY = "constituents"


def read_tree_corpus(
    path: Path | None,
    max_length: int = 0,
    limit: int = 0,
    gold_tags: bool = False,
    quotes: Quotes = "treebank",
    spaces: bool = False,
    augmenter: Augmenter | None = None,
) -> Reader:
    """The reader `spacy-psa.TreeCorpus.v1`: trains a parser on the trees of a file.

    Each example is one sentence, and its prediction starts from the gold words.

    Docs of several sentences are split. A warning for each pass reports how many were split, and
    which sentences were left out.

    Args:
        path: the trees. A `.spacy` file, or a folder of them, has them in
            doc.spans["constituents"]. A folder may hold `.mrg` files of the Penn Treebank instead.
            Other files, plain or .gz, are read by their name: `*.mrg` is a file of the Penn
            Treebank, `*_conll` a file of CoNLL-2012, and any other name a file with one bracketed
            tree on each line.
        max_length: leaves out sentences with more tokens; 0 leaves out none.
        limit: the number of sentences to read; 0 means all.
        gold_tags: whether the docs to parse have the gold `token.tag_`. `TagEmbed.v1` then needs no
            tagger in the pipeline (Kitaev2018 Table 4 with gold tags).
        quotes: the quotation marks that the parser sees: "treebank" for those of the file, such as
            ``, "straight" or "curly" for those of text, or "mixed" for all three in turn.
        spaces: whether to find out the spaces of files that have none; an encoder that reads the
            text, such as a transformer, sees them.
        augmenter: makes the examples of each sentence, as in `spacy.Corpus.v1`.

    Raises:
        InputError: if `path` is None, or if there are no such `quotes`; and, when the reader is
            called, if a file is not in its format, a constituent crosses the end of its sentence,
            or no sentence has a tree.
    """
    with naming("TreeCorpus.v1"):
        check_choice("quotes", quotes, Quotes)
    if path is None:  # spaCy may fill in a config whose paths are not set yet
        raise InputError("TreeCorpus.v1: path is null: set [paths.train] and [paths.dev]")

    def make(doc: Doc) -> Example:
        return Example(_unannotated(doc, gold_tags), doc)

    def read(nlp: Language) -> Iterator[Example]:
        counts: Counter[str] = Counter()
        repairs: Counter[str] = Counter()
        docs = as_text(_split(path, _read(path, nlp.vocab, repairs), counts), quotes, spaces)
        empty = True
        for doc in islice((d for d in docs if _fits(d, max_length, counts)), limit or None):
            empty = False
            yield from augmented(nlp, make(doc), augmenter, make)
        if empty:
            raise InputError(
                f'{path}: there are no trees to learn from in doc.spans["{KEY}"]'
                + (f", in sentences of at most {max_length} tokens" if max_length else "")
                + "; use another file"
            )
        if repairs:
            warnings.warn(describe_repairs(path, repairs), stacklevel=2)
        if counts:
            warnings.warn(f"{path}: {describe(counts)}", stacklevel=2)

    return read


def _read(path: Path, vocab: Vocab, repairs: Counter[str]) -> Iterator[Doc]:
    path = Path(path)
    if path.is_dir() and any(_is_mrg(file) for file in path.rglob("*")):
        return read_docs("ptb", path, vocab, repairs)
    if path.is_dir() or path.suffix == ".spacy":
        return read_docbins(path, vocab)
    if _is_mrg(path):
        return read_docs("ptb", path, vocab, repairs)
    if path.name.lower().endswith(("_conll", "_conll.gz")):
        return ontonotes.read_docs(path, vocab, repairs)
    return read_bracket_docs(path, vocab, repairs)


def _is_mrg(path: Path) -> bool:
    return path.name.lower().endswith((".mrg", ".mrg.gz"))


def _split(path: Path, docs: Iterable[Doc], counts: Counter[str]) -> Iterator[Doc]:
    """Yield each sentence that has a tree as a `Doc`."""
    for number, doc in enumerate(docs, 1):
        if KEY not in doc.spans:
            counts["docs without trees left out"] += 1
            continue
        bounds = sentence_bounds(doc)
        if len(bounds) == 1:
            yield doc
            continue
        counts["docs of several sentences split, so that each is a Doc"] += 1
        for start, end in bounds:
            for span in doc.spans[KEY]:
                if start <= span.start < end < span.end:
                    raise InputError(
                        f"{path}: doc {number}: the constituent {span.label_!r} over "
                        f"{span.text!r} crosses the end of its sentence; correct the data"
                    )
            part = cut_out(doc, start, end)
            # Keys that are not strings belong to spans and tokens of the whole doc.
            kept = {k: v for k, v in doc.user_data.items() if isinstance(k, str)}
            part.user_data.update(kept)
            yield part


def _fits(doc: Doc, max_length: int, counts: Counter[str]) -> bool:
    """Tell whether a sentence is used for training; count it if not because of its length."""
    if max_length and len(doc) > max_length:
        counts[f"sentences of more than {max_length} tokens left out"] += 1
        return False
    return any(token.text.strip() for token in doc)


def _unannotated(doc: Doc, gold_tags: bool) -> Doc:
    """Copy the words, spaces and, with `gold_tags`, the tags of a doc."""
    copy = unannotated(doc, sentences=False)
    for token, gold in zip(copy, doc) if gold_tags else ():
        token.tag = gold.tag
    return copy
