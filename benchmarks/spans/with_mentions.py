"""Score a trained parser with and without mentions as constituents that must be there.

    python -m benchmarks.spans.with_mentions sentences-2 corpus/gum \\
        training/gum-parser/model-best training/spans/sentences-2/model-best

NAME is that of SPANS, a pipeline with `crf_spans`. The record
benchmarks/spans/results/mentions-NAME.json (kind "figures") has, for each of `dev`, `test` and
`test2`, the labelled precision, recall and F1 of the parser's brackets: `plain` without mentions,
`gold` with all gold mentions, `agreeing` with those that are constituents of the gold tree, and
`predicted` with the mentions that SPANS predicts.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.spans.systems import KEY
from benchmarks.spans.with_trees import PARTS, TREES
from spacy_psa.scoring.parseval_scorer import score_constituents
from spacy_psa.scoring.result import read_examples

Place = tuple[int, int]


def gold(doc: Doc) -> list[Place]:
    """The places of all mentions of a doc, by tokens."""
    return [(span.start, span.end) for span in doc.spans.get(KEY, ())]


def agreeing(doc: Doc) -> list[Place]:
    """The places of the gold mentions that are constituents."""
    nodes = {(node.start, node.end) for node in doc.spans[TREES]}
    return [place for place in gold(doc) if place in nodes]


def measure(parser: Language, spans: Language, data: Path) -> dict[str, Any]:
    """Score the parser on a part of the corpus."""
    pipe: Any = parser.get_pipe("parser")
    examples = read_examples(parser, data)

    def predicted(doc: Doc) -> list[Place]:
        return gold(spans(Doc(spans.vocab, words=[token.text for token in doc])))

    given: dict[str, Callable[[Doc], list[Place]] | None] = {
        "plain": None,
        "gold": gold,
        "agreeing": agreeing,
        "predicted": predicted,
    }
    result: dict[str, Any] = {}
    for name, places in given.items():
        pipe.mentions_key = KEY if places else None
        for example in examples:
            doc = example.predicted = example.predicted.copy()
            doc.spans.clear()
            if places:
                doc.spans[KEY] = [doc[slice(*place)] for place in places(example.reference)]
        docs = list(parser.pipe([example.predicted for example in examples]))
        for doc, example in zip(docs, examples, strict=True):
            example.predicted = doc
        scores = score_constituents(examples)
        result[name] = {each: scores[f"tree_{each}"] for each in "prf"}
    return result


def main() -> None:
    options = script_parser(globals(), "NAME", "CORPUS", "PARSER", "SPANS")
    given = options.parse_args()
    parser, spans = spacy.load(given.parser), spacy.load(given.spans)
    data = [given.corpus / f"{part}.spacy" for part in PARTS]
    results = {file.stem: measure(parser, spans, file) for file in data}
    seed = parser.config.interpolate()["training"]["seed"]
    write_record(f"mentions-{given.name}", "spans", results, data=data, seed=seed)


if __name__ == "__main__":
    main()
