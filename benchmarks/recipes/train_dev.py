"""Write the training and the development data of a corpus as one file.

Reads corpus/CORPUS/train.spacy and dev.spacy, which the project's `convert` makes, and writes
corpus/CORPUS/train_dev.spacy.
"""

from itertools import chain
from pathlib import Path

import spacy

from benchmarks.script import script_parser
from spacy_psa.corpora.docbin import read_docbin, write_docbin


def write_train_dev(corpus: Path) -> None:
    """Write the training data of a folder, and its development data behind it."""
    vocab = spacy.blank("en").vocab
    parts = (read_docbin(corpus / f"{part}.spacy", vocab) for part in ("train", "dev"))
    write_docbin(chain.from_iterable(parts), corpus / "train_dev.spacy")


def main() -> None:
    options = script_parser("benchmarks.recipes.train_dev", __doc__)
    options.add_argument("corpus", type=Path, metavar="CORPUS", help="folder of a corpus")
    write_train_dev(options.parse_args().corpus)


if __name__ == "__main__":
    main()
