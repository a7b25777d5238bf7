"""Score parsers on sentences with the quotation marks of the treebank or of text.

TEST has one sentence per Doc; those with `` or '' count. Each model (NAME=PATH) parses them with
the marks of the treebank, with straight and with curly ones, and again with straight ones while its
setting `quotes` is "treebank".

Results (kind "figures"): `sentences`; `rows` {NAME: {"treebank", "straight", "curly",
"straight, mapped": PARSEVAL F1 of labelled constituents}}.
"""

import warnings
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc
from spacy.training import Example

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.corpora.quotes import as_text
from spacy_psa.laboratory.performance.pipelines import named_rows
from spacy_psa.scoring.parseval_scorer import score_constituents

WAYS: dict[str, tuple[Any, Any]] = {
    "treebank": ("treebank", "as_they_are"),
    "straight": ("straight", "as_they_are"),
    "curly": ("curly", "as_they_are"),
    "straight, mapped": ("straight", "treebank"),
}


def scores(model: str, test: Path) -> dict[str, float]:
    """Score a model in each of the ways."""
    nlp = spacy.load(model)
    parser: Any = nlp.get_pipe("parser")
    docs = [doc for doc in read_docbin(test, nlp.vocab) if quoted(doc)]
    scored = {}
    for name, (marks, parser._quotes) in WAYS.items():
        gold = list(as_text(docs, marks, spaces=False))
        bare = [Doc(nlp.vocab, words=[token.text for token in doc]) for doc in gold]
        examples = [Example(doc, ref) for doc, ref in zip(nlp.pipe(bare), gold, strict=True)]
        f1 = score_constituents(examples, spans_key="constituents")["tree_f"]
        scored[name] = round(f1, 4)
    return scored


def quoted(doc: Doc) -> bool:
    return any(token.text in ("``", "''") for token in doc)


def main() -> None:
    options = script_parser(globals(), "TEST.spacy", "OUT.json")
    options.add_argument("models", nargs="+", metavar="NAME=PATH")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    rows = {}
    for name, path in named_rows(given.models).items():
        rows[name] = scores(path, given.test)
        print(name, rows[name])
    count = sum(map(quoted, read_docbin(given.test, spacy.blank("en").vocab)))
    write_record(given.out, "parser", {"sentences": count, "rows": rows}, data=[given.test])


if __name__ == "__main__":
    main()
