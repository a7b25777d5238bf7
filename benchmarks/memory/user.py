"""A user's program, which counts the names in each line of stdin, within memory zones."""

import sys
from itertools import islice

import spacy

from spacy_psa.memory import memory_zone

BATCH = 256


def main(model: str) -> None:
    nlp = spacy.load(model)
    while lines := [line.rstrip("\n") for line in islice(sys.stdin, BATCH)]:
        with memory_zone(nlp):
            for doc in nlp.pipe(lines):
                print(len(doc.ents))


if __name__ == "__main__":
    main(sys.argv[1])
