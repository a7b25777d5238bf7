"""Write the sentences of sections 0 to 18 of the Wall Street Journal that CoNLL-2000 does not have.

Reads corpus/wsj/train.spacy and corpus/conll2000, which the project's `convert` makes, and writes
corpus/wsj/raw.spacy: sentences without annotation, for `spacy-psa distill`. Section 20 is the test
data of CoNLL-2000, so none of it is among them. OntoNotes splits words at hyphens, so sentences are
compared without blanks.
"""

from pathlib import Path

import spacy
from spacy.tokens import Doc

from benchmarks.script import script_parser
from spacy_psa.corpora.bracketing import unescape
from spacy_psa.corpora.docbin import read_docbin, write_docbin


def letters(doc: Doc) -> str:
    """What two tokenizations of a sentence have in common."""
    return "".join(unescape(token.text) for token in doc).lower()


def write_raw(wsj: Path, chunks: Path, raw: Path) -> None:
    """Write the sentences of a file that no part of the chunking corpus has."""
    vocab = spacy.blank("en").vocab
    parts = (read_docbin(chunks / f"{part}.spacy", vocab) for part in ("train", "dev", "test"))
    known = {letters(doc) for docs in parts for doc in docs}
    docs = [doc for doc in read_docbin(wsj, vocab) if letters(doc) not in known]
    write_docbin((Doc(vocab, words=[token.text for token in doc]) for doc in docs), raw)
    print(f"{raw}: {len(docs):,} sentences, {sum(map(len, docs)):,} words")


def main() -> None:
    script_parser("benchmarks.recipes.raw", __doc__).parse_args()
    corpus = Path("corpus")
    write_raw(corpus / "wsj/train.spacy", corpus / "conll2000", corpus / "wsj/raw.spacy")


if __name__ == "__main__":
    main()
