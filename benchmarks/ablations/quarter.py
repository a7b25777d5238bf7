"""Write a quarter of CoNLL-2003's training sentences: those of each fourth document.

Reads corpus/conll2003/train.spacy, which the project's `convert` makes, and writes
corpus/conll2003/quarter.spacy.
"""

from pathlib import Path

import spacy

from benchmarks.script import script_parser
from spacy_psa.corpora.docbin import read_docbin, write_docbin

CORPUS = Path("corpus/conll2003")
EVERY = 4


def write_quarter(train: Path, quarter: Path) -> None:
    """Write the sentences of the documents 4, 8, 12 and so on."""
    docs = read_docbin(train, spacy.blank("en").vocab)
    write_docbin((doc for doc in docs if doc.user_data["document"] % EVERY == 0), quarter)


def main() -> None:
    script_parser("benchmarks.ablations.quarter", __doc__).parse_args()
    write_quarter(CORPUS / "train.spacy", CORPUS / "quarter.spacy")


if __name__ == "__main__":
    main()
