"""Replace the parts of speech in a corpus by those that a tagger predicts.

It is for scoring parsers that read tags. Prints the share of tags that did not change.
"""

from pathlib import Path

import spacy
from spacy.tokens import Doc, DocBin

from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin


def tag(model: str, source: Path, target: Path) -> float:
    """Replace the tags of a corpus, and return the share of tags that did not change."""
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
    return same / sum(map(len, docs))


def main() -> None:
    options = script_parser(globals(), "MODEL", "SOURCE.spacy", "TARGET.spacy")
    given = options.parse_args()
    share = tag(given.model, given.source, given.target)
    print(f"{given.target}: {share:.4f} of the tags did not change")


if __name__ == "__main__":
    main()
