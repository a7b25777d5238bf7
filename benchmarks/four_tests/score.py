"""Score a trained recogniser on CoNLL-2003's test set, on two corrections of it and on later news.

    python -m benchmarks.four_tests.score best-1 corpus/conll2003 \\
        training/documents/best-1/model-best

NAME is that of the record, a system and its seed. The record (kind "figures") has the path of the
`model`, and for each test (`original`, `pp`, `clean`, `2020`) the F1 of entities in `f1` and, in
`documents`, the right, predicted and gold entities of each document, as "RIGHT PREDICTED GOLD".
`benchmarks.four_tests.figures` compares systems by them.
"""

from pathlib import Path
from typing import Any

from spacy.language import Language

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.loading import load_pipeline
from spacy_psa.scoring.result import read_examples
from spacy_psa.scoring.sentence_counts import Count, entity_counts, total

TESTS = {"original": "test", "pp": "test_pp", "clean": "test_clean", "2020": "test_2020"}
"""The file of each test."""


def measure(nlp: Language, data: Path) -> dict[str, Any]:
    """Score a pipeline on each test."""
    scores: dict[str, Any] = {"f1": {}, "documents": {}}
    for test, part in TESTS.items():
        examples = read_examples(nlp, data / f"{part}.spacy")
        documents: dict[Any, list[Count]] = {}
        docs = nlp.pipe([example.predicted for example in examples])
        for i, (example, doc) in enumerate(zip(examples, docs, strict=True)):
            example.predicted = doc
            document = example.reference.user_data.get("document", f"doc {i}")
            documents.setdefault(document, []).extend(entity_counts([example]))
        rows = [total(counts) for counts in documents.values()]
        scores["f1"][test] = total(rows).f1
        scores["documents"][test] = [" ".join(map(str, row)) for row in rows]
    return scores


def main() -> None:
    options = script_parser(globals())
    options.add_argument("name", metavar="NAME", help="of the record")
    options.add_argument("data", type=Path, metavar="DATA", help="folder with the tests")
    options.add_argument("model", metavar="MODEL", help="trained pipeline")
    options.add_argument("--decode", help="decoder of the recogniser; default: its own")
    given = options.parse_args()
    nlp = load_pipeline(given.model)
    if given.decode:
        pipe: Any = nlp.get_pipe("ner")
        pipe.decode = given.decode
    results = {"model": given.model, "decode": given.decode, **measure(nlp, given.data)}
    print(results["f1"])
    data = [given.data / f"{part}.spacy" for part in TESTS.values()]
    seed = nlp.config.interpolate()["training"]["seed"]
    write_record(given.name, "four_tests", results, data=data, seed=seed)


if __name__ == "__main__":
    main()
