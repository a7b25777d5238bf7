"""Write CoNLL-2003 with its entities as spans too, as corpus/conll2003_spans.

`benchmarks/spans/flat.toml` trains `crf_spans` and `crf_ner` on it.
"""

from pathlib import Path

import spacy

from benchmarks.script import script_parser
from benchmarks.spans.systems import KEY
from spacy_psa.corpora.docbin import read_docbin, write_docbin


def main() -> None:
    script_parser(globals()).parse_args()
    source, target = Path("corpus/conll2003"), Path("corpus/conll2003_spans")
    target.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        docs = list(read_docbin(source / f"{part}.spacy", spacy.blank("en").vocab))
        for doc in docs:
            doc.spans[KEY] = list(doc.ents)
        write_docbin(docs, target / f"{part}.spacy")


if __name__ == "__main__":
    main()
