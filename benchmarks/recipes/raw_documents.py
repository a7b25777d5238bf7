"""Write the news of OntoNotes 5 as documents without annotation, for `spacy-psa distill`.

Reads corpus/ontonotes/train.spacy, which the project's `convert` makes, and writes
corpus/ontonotes/raw.spacy: newswire and broadcast news, documents in pieces of at most 500 tokens
(but for longer sentences), with sentence boundaries and nothing else.
"""

from collections.abc import Iterator
from pathlib import Path

import spacy
from spacy.tokens import Doc

from benchmarks.script import script_parser
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.corpora.documents import join_documents
from spacy_psa.sentences import sentence_starts

NEWS = ("nw", "bn")
MAX_TOKENS = 500


def pieces(path: Path) -> Iterator[Doc]:
    """Give the documents of the news of a file, in pieces."""
    vocab = spacy.blank("en").vocab
    docs = (doc for doc in read_docbin(path, vocab) if doc.user_data["document"][:2] in NEWS)
    for doc in join_documents(docs, MAX_TOKENS):
        starts = sentence_starts(doc)
        yield Doc(vocab, words=[token.text for token in doc], sent_starts=starts)  # type: ignore[arg-type]


def main() -> None:
    script_parser("benchmarks.recipes.raw_documents", __doc__).parse_args()
    folder = Path("corpus/ontonotes")
    docs = list(pieces(folder / "train.spacy"))
    write_docbin(docs, folder / "raw.spacy")
    print(f"{folder / 'raw.spacy'}: {len(docs):,} docs, {sum(map(len, docs)):,} words")


if __name__ == "__main__":
    main()
