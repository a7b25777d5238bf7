"""Score a trained `crf_spans` with and without the gold trees as a filter of its spans.

    python -m benchmarks.spans.with_trees sentences-2 corpus/gum \\
        training/spans/sentences-2/model-best

NAME is that of the model. The record benchmarks/spans/results/trees-NAME.json (kind "figures") has,
for each of `dev`, `test` and `test2`: `plain` and `filtered`, the precision, recall and F1 of all
spans without and with the trees; and `constituents`, the share of gold spans that are constituents.
"""

from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.spans.score import Counts, depths, read_spans
from spacy_psa.scoring.result import read_examples

TREES = "constituents"
PARTS = ("dev", "test", "test2")


def measure(nlp: Language, data: Path) -> dict[str, Any]:
    """Score a part of the corpus without and with its trees."""
    pipe: Any = nlp.get_pipe("spans")
    examples = read_examples(nlp, data)
    result: dict[str, Any] = {}
    for name, key in (("plain", None), ("filtered", TREES)):
        pipe.constituents_key = key
        counts = Counts()
        docs = [example.predicted.copy() for example in examples]
        for doc, example in zip(docs, examples):
            trees = example.reference.spans[TREES]
            doc.spans[TREES] = [doc[node.start : node.end] for node in trees]
        for doc, example in zip(nlp.pipe(docs), examples, strict=True):
            counts.add(depths(read_spans(example.reference)), depths(read_spans(doc)), "")
        result[name] = counts.prf("all")
    inside, gold = 0, 0
    for example in examples:
        nodes = {(node.start_char, node.end_char) for node in example.reference.spans[TREES]}
        spans = read_spans(example.reference)
        inside += sum((start, end) in nodes for start, end, _ in spans)
        gold += len(spans)
    return {**result, "constituents": inside / gold}


def main() -> None:
    options = script_parser(globals(), "NAME", "CORPUS", "MODEL")
    given = options.parse_args()
    nlp = spacy.load(given.model)
    results = {part: measure(nlp, given.corpus / f"{part}.spacy") for part in PARTS}
    data = [given.corpus / f"{part}.spacy" for part in PARTS]
    seed = nlp.config.interpolate()["training"]["seed"]
    write_record(f"trees-{given.name}", "spans", results, data=data, seed=seed)


if __name__ == "__main__":
    main()
