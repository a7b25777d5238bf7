"""A corpus whose parts of speech are those that a tagger predicts, and all else as it was.

usage: python benchmarks/predicted_tags.py MODEL IN.spacy OUT.spacy

For parsers that learn from tags. Prints the share of tags that are as they were.
"""

import sys
from pathlib import Path

import spacy
from spacy.tokens import Doc, DocBin

from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin


def main(model: str, source: Path, target: Path) -> None:
    nlp = spacy.load(model)
    docs = list(read_docbin(source, nlp.vocab))
    bare = [Doc(nlp.vocab, words=[token.text for token in doc]) for doc in docs]
    same = 0
    for doc, predicted in zip(docs, nlp.pipe(bare), strict=True):
        for token, other in zip(doc, predicted, strict=True):
            same += token.tag_ == other.tag_
            token.tag_ = other.tag_
    with atomic_path(target) as temporary:
        DocBin(docs=docs, store_user_data=True).to_disk(temporary)
    print(f"{target}: {same / sum(map(len, docs)):.4f} of the tags are as they were")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
