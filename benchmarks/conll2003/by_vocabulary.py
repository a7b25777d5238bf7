"""Score entities by how much the model knows about their words.

A gold or predicted entity belongs to the first of these classes that one of its words belongs to;
case and digits do not count:

  unknown         the word has no pretrained vector and is not in the training data
  without_vector  the word is in the training data only
  untrained       the word has a vector only
  known           the word has both

Results (kind "figures"): `model`, its path; `scores`, {class: {`gold`: number of gold entities,
`f`: F1}}.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.tokens import Doc, DocBin, Token

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.architectures.distinct_words import DIGITS

CLASSES = ["unknown", "without_vector", "untrained", "known"]


def form(token: Token) -> str:
    return token.lower_.translate(DIGITS)


def word_class(token: Token, trained: set[str]) -> str:
    find = token.vocab.vectors.find
    vector = find(key=token.text) >= 0 or find(key=token.lower_) >= 0
    return CLASSES[2 * vector + (form(token) in trained)]


def scores(model: str, train: Path, data: Path) -> dict[str, Any]:
    """The scores of a pipeline by class."""
    nlp = spacy.load(model)
    trained = {form(t) for doc in DocBin().from_disk(train).get_docs(nlp.vocab) for t in doc}
    gold = list(DocBin().from_disk(data).get_docs(nlp.vocab))
    parsed = nlp.pipe(Doc(nlp.vocab, words=[token.text for token in doc]) for doc in gold)
    counts: Counter[tuple[str, str]] = Counter()
    for reference, predicted in zip(gold, parsed, strict=True):
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


def main() -> None:
    files = ("MODEL", "TRAIN.spacy", "DATA.spacy", "OUT.json")
    given = script_parser(globals(), *files).parse_args()
    torch.set_num_threads(1)
    results = {"model": given.model, "scores": scores(given.model, given.train, given.data)}
    print(json.dumps(results["scores"], indent=2))
    write_record(given.out, "conll2003", results, data=[given.train, given.data])


if __name__ == "__main__":
    main()
