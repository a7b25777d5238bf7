"""Entity scores by what the model knows of an entity's words.

usage: python benchmarks/by_vocabulary.py MODEL TRAIN.spacy DATA.spacy OUT.json

An entity, gold or predicted, belongs to the first of these that one of its words is:
unknown (no pretrained vector, not in the training data), without_vector (in the training
data only), untrained (a vector only), else known. Case and digits do not count.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.tokens import Doc, DocBin, Token

from spacy_psa.architectures.embed import DIGITS
from spacy_psa.scoring.provenance import checksums, commit, machine, versions

CLASSES = ["unknown", "without_vector", "untrained", "known"]


def form(token: Token) -> str:
    return token.lower_.translate(DIGITS)


def word_class(token: Token, trained: set[str]) -> str:
    find = token.vocab.vectors.find
    vector = find(key=token.text) >= 0 or find(key=token.lower_) >= 0
    return CLASSES[2 * vector + (form(token) in trained)]


def scores(model: str, train: Path, data: Path) -> dict[str, Any]:
    nlp = spacy.load(model)
    trained = {form(t) for doc in DocBin().from_disk(train).get_docs(nlp.vocab) for t in doc}
    gold = list(DocBin().from_disk(data).get_docs(nlp.vocab))
    found = nlp.pipe(Doc(nlp.vocab, words=[token.text for token in doc]) for doc in gold)
    counts: Counter[tuple[str, str]] = Counter()
    for reference, predicted in zip(gold, found, strict=True):
        right = {(e.start, e.end, e.label_) for e in reference.ents}
        said = {(e.start, e.end, e.label_) for e in predicted.ents}
        for span in right | said:
            kinds = {word_class(token, trained) for token in reference[span[0] : span[1]]}
            outcome = "both" if span in right & said else "gold" if span in right else "predicted"
            counts[min(kinds, key=CLASSES.index), outcome] += 1
    result = {}
    for name in CLASSES:
        hit, missed, wrong = (counts[name, key] for key in ("both", "gold", "predicted"))
        result[name] = {"gold": hit + missed, "f": 2 * hit / max(1, 2 * hit + missed + wrong)}
    return result


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    model, train, data, target = sys.argv[1], *map(Path, sys.argv[2:])
    record = {
        "model": model,
        "scores": scores(model, train, data),
        "data": checksums([train, data]),
        "versions": versions(),
        "machine": machine(),
        "commit": commit()[0],
    }
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf8")
    print(json.dumps(record["scores"], indent=2))
