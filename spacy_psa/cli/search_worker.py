"""One process of `spacy-psa search --jobs`: python -m spacy_psa.cli.search_worker FOLDER WORD…

FOLDER is that of the process. The words are those of a `spacy-psa search` with one training at a
time.
"""

import sys

import torch

from spacy_psa.cli.app import app
from spacy_psa.laboratory.experiments.processes import end_with_starter


def main(words: list[str]) -> None:
    """Search, until there are as many trials as asked for or the starter has ended."""
    end_with_starter()
    torch.set_num_threads(1)
    app(["search", *words])


if __name__ == "__main__":
    main(sys.argv[2:])
