"""Write a part of a corpus, or several corpora, as one file for the experiments.

It reads the corpora in corpus/, which the project's `convert` makes. KIND is one of:

- `quarter`: the sentences of every fourth document of CoNLL-2003's training data, as
  corpus/conll2003/quarter.spacy
- `splits`: five random splits of the documents of CoNLL-2003's training data, each with a tenth of
  them held out, as corpus/conll2003/split_1_train.spacy, split_1_dev.spacy and so on
- `train_dev`: the training and the development data of CORPUS, as corpus/CORPUS/train_dev.spacy
- `raw`: the sentences of sections 0 to 18 of the Wall Street Journal that are not in CoNLL-2000,
  without annotation, as corpus/wsj/raw.spacy. Section 20 is the test data of CoNLL-2000, so it is
  not among them. OntoNotes splits words at hyphens, so sentences are compared without blanks
- `raw_documents`: newswire and broadcast news of OntoNotes as corpus/ontonotes/raw.spacy, in
  documents of at most 500 tokens (or one longer sentence) that only have sentence boundaries
- `half_raw_documents`: every second of these documents, as corpus/ontonotes/half_raw.spacy
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from random import Random

import spacy
from spacy.tokens import Doc

from benchmarks.script import script_parser
from spacy_psa.corpora.bracketing import unescape
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.corpora.documents import join_documents
from spacy_psa.sentences import sentence_starts

NEWS = ("nw", "bn")
MAX_TOKENS = 500
SPLITS = 5


def quarter(corpus: Path) -> list[Doc]:
    """The sentences of the documents 4, 8, 12 and so on."""
    docs = read_docbin(corpus / "train.spacy", spacy.blank("en").vocab)
    return [doc for doc in docs if doc.user_data["document"] % 4 == 0]


def splits(corpus: Path) -> dict[str, list[Doc]]:
    """The sentences of random splits of the documents, by file."""
    docs = read_docbin(corpus / "train.spacy", spacy.blank("en").vocab)
    documents: dict[int, list[Doc]] = {}
    for doc in docs:
        documents.setdefault(doc.user_data["document"], []).append(doc)
    parts: dict[str, list[Doc]] = {}
    for number in range(1, SPLITS + 1):
        held_out = set(Random(number).sample(sorted(documents), len(documents) // 10))
        for part, of_dev in (("train", False), ("dev", True)):
            kept = (own for key, own in documents.items() if (key in held_out) == of_dev)
            parts[f"split_{number}_{part}"] = list(chain.from_iterable(kept))
    return parts


def train_dev(corpus: Path) -> list[Doc]:
    """The training data, then the development data."""
    vocab = spacy.blank("en").vocab
    parts = (read_docbin(corpus / f"{part}.spacy", vocab) for part in ("train", "dev"))
    return list(chain.from_iterable(parts))


def raw(corpus: Path, chunks: Path) -> list[Doc]:
    """The training sentences of a corpus that are not in any part of the chunking corpus."""
    vocab = spacy.blank("en").vocab
    parts = (read_docbin(chunks / f"{part}.spacy", vocab) for part in ("train", "dev", "test"))
    known = {letters(doc) for docs in parts for doc in docs}
    docs = read_docbin(corpus / "train.spacy", vocab)
    return [Doc(vocab, [token.text for token in doc]) for doc in docs if letters(doc) not in known]


def letters(doc: Doc) -> str:
    """A sentence in a form that does not depend on its tokenization."""
    return "".join(unescape(token.text) for token in doc).lower()


def raw_documents(corpus: Path) -> Iterator[Doc]:
    """The documents of the news, in pieces."""
    vocab = spacy.blank("en").vocab
    docs = read_docbin(corpus / "train.spacy", vocab)
    news = (doc for doc in docs if doc.user_data["document"][:2] in NEWS)
    for doc in join_documents(news, MAX_TOKENS):
        starts = sentence_starts(doc)
        yield Doc(vocab, words=[token.text for token in doc], sent_starts=starts)  # type: ignore[arg-type]


def half_raw_documents(corpus: Path) -> Iterator[Doc]:
    """Every second of these pieces."""
    return islice(raw_documents(corpus), 0, None, 2)


def main() -> None:
    kinds: dict[str, tuple[str, Callable[[Path], Iterable[Doc] | dict[str, list[Doc]]]]] = {
        "quarter": ("conll2003", quarter),
        "splits": ("conll2003", splits),
        "train_dev": ("", train_dev),
        "raw": ("wsj", lambda corpus: raw(corpus, Path("corpus/conll2000"))),
        "raw_documents": ("ontonotes", raw_documents),
        "half_raw_documents": ("ontonotes", half_raw_documents),
    }
    options = script_parser(globals())
    options.add_argument("kind", choices=kinds, metavar="KIND", help=", ".join(kinds))
    options.add_argument("corpus", nargs="?", metavar="CORPUS", help="name, for train_dev")
    given = options.parse_args()
    name, make = kinds[given.kind]
    if not (name or given.corpus):
        options.error("train_dev needs the name of a corpus, such as conll2003")
    corpus = Path("corpus", name or given.corpus)
    made = make(corpus)
    parts = made if isinstance(made, dict) else {given.kind.removesuffix("_documents"): made}
    for part, docs in ((part, list(docs)) for part, docs in parts.items()):
        target = corpus / f"{part}.spacy"
        write_docbin(docs, target)
        print(f"{target}: {len(docs):,} docs, {sum(map(len, docs)):,} words")


if __name__ == "__main__":
    main()
