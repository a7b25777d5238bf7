"""Write a corpus whose parts of speech are those that a tagger predicts; the rest stays.

Parsers that read tags are scored on it. Prints the share of tags that stay as they were.
"""

from pathlib import Path

import spacy
from spacy.tokens import Doc, DocBin

from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin


def tag(model: str, source: Path, target: Path) -> float:
    """Replace the tags of a corpus.

    Args:
        model: the path of a pipeline with a tagger.
        source: the corpus.
        target: the file to write.

    Returns:
        The share of tags that stay as they were.
    """
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
    options = script_parser("benchmarks.parser.predicted_tags", __doc__)
    options.add_argument("model", metavar="MODEL")
    options.add_argument("source", type=Path, metavar="IN.spacy")
    options.add_argument("target", type=Path, metavar="OUT.spacy")
    given = options.parse_args()
    share = tag(given.model, given.source, given.target)
    print(f"{given.target}: {share:.4f} of the tags are as they were")


if __name__ == "__main__":
    main()
