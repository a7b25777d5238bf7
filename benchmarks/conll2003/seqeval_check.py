"""Score a pipeline's entities by seqeval (strict, IOBES) and by spaCy, side by side.

usage: python benchmarks/seqeval_check.py MODEL DATA.spacy
"""

import sys
from pathlib import Path

import spacy
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.scheme import IOBES
from spacy.scorer import Scorer
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_psa.pipeline.chain.span_tags import SpanScheme


def tags(doc: Doc, scheme: SpanScheme) -> list[str]:
    spans = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    return [scheme.tags[i] for i in scheme.encode(len(doc), spans)]


def main(model: str, data: Path) -> None:
    nlp = spacy.load(model)
    gold = list(DocBin().from_disk(data).get_docs(nlp.vocab))
    found = list(nlp.pipe(Doc(nlp.vocab, words=[t.text for t in doc]) for doc in gold))
    scheme = SpanScheme(sorted({ent.label_ for doc in [*gold, *found] for ent in doc.ents}))
    pair = [[tags(doc, scheme) for doc in docs] for docs in (gold, found)]
    for score in (precision_score, recall_score, f1_score):
        print("seqeval", score.__name__, score(*pair, mode="strict", scheme=IOBES))
    examples = [Example(*docs) for docs in zip(found, gold, strict=True)]
    scores = Scorer.score_spans(examples, "ents")
    print("spaCy", {key: scores[key] for key in ("ents_p", "ents_r", "ents_f")})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]))
