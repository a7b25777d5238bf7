"""Score parsers on raw text, with the treebank's tokens and with those of spaCy's tokenizer.

TEST has one sentence per Doc, with the tokens and marks of the treebank. Its text is restored by
the treebank's own rules: spaces, and the quotation marks of text. Each model (NAME=PATH) parses the
text with the treebank's tokens and with those of its own tokenizer; sentence boundaries are known.
PARSEVAL compares offsets in characters without white space, so trees over other tokens can be
scored.

Results (kind "figures"): `sentences`, `words`; `tokens` {MARKS: counts, see `tokens`}; `rows`
{NAME: {MARKS: {TOKENS: F1 of labelled constituents}}}, where TOKENS is "treebank" or "spacy", and
these with ", differ" on the sentences in which the tokens differ. MARKS are those of
`benchmarks.parser.quotes`.
"""

import warnings
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from benchmarks.parser.quotes import WAYS
from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.corpora.quotes import as_text
from spacy_psa.laboratory.performance.pipelines import named_rows
from spacy_psa.scoring.parseval_scorer import score_constituents

KEY = "constituents"


def borders(doc: Doc) -> list[int]:
    """Where tokens begin, and where the last one ends, in characters without white space."""
    lengths = (len(token.text) for token in doc if not token.is_space)
    return list(accumulate(lengths, initial=0))


def tokens(gold: Sequence[Doc], own: Sequence[Doc]) -> dict[str, int]:
    """Compare the tokens of gold docs with those of a tokenizer.

    Returns:
        `words` of the gold docs; `found`, those that are tokens; `split`, those that are several
        tokens, and `joined`, all others; `sentences` with all their words; `constituents`, and
        `reachable`, those that begin and end where tokens do.
    """
    keys = ("words", "found", "split", "joined", "sentences", "constituents", "reachable")
    count = dict.fromkeys(keys, 0)
    for doc, other in zip(gold, own, strict=True):
        mine, theirs = borders(doc), set(borders(other))
        inner = [theirs & set(range(a + 1, b)) for a, b in pairwise(mine)]
        whole = [a in theirs and b in theirs for a, b in pairwise(mine)]
        count["words"] += len(whole)
        count["found"] += sum(w and not i for w, i in zip(whole, inner, strict=True))
        count["split"] += sum(w and bool(i) for w, i in zip(whole, inner, strict=True))
        count["joined"] += whole.count(False)
        count["sentences"] += mine == sorted(theirs)
        spans = [(mine[s.start], mine[s.end]) for s in doc.spans[KEY]]
        count["constituents"] += len(spans)
        count["reachable"] += sum(a in theirs and b in theirs for a, b in spans)
    return count


def own_tokens(nlp: Language, gold: Sequence[Doc]) -> Iterator[Doc]:
    """The texts of the docs in the tokens of the pipeline's tokenizer, one sentence a Doc."""
    for doc in gold:
        made = nlp.make_doc(doc.text)
        for token in made:
            token.is_sent_start = token.i == 0
        yield made


def gold_tokens(nlp: Language, gold: Sequence[Doc]) -> Iterator[Doc]:
    for doc in gold:
        spaces = [bool(token.whitespace_) for token in doc]
        yield Doc(nlp.vocab, words=[token.text for token in doc], spaces=spaces)


def score(gold: Sequence[Doc], parsed: Sequence[Doc]) -> float | None:
    """F1 of labelled constituents; None without docs."""
    examples = [Example(doc, ref) for doc, ref in zip(parsed, gold, strict=True)]
    f1: float | None = score_constituents(examples, spans_key=KEY)["tree_f"]
    return None if f1 is None else round(f1, 4)


def measure(nlp: Language, docs: Sequence[Doc]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Score a pipeline in each of the ways, and count tokens."""
    parser: Any = nlp.get_pipe("parser")
    rows: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for name, (marks, parser._quotes) in WAYS.items():
        gold = list(as_text(docs, marks, spaces=True))
        known = list(nlp.pipe(gold_tokens(nlp, gold)))
        own = list(nlp.pipe(own_tokens(nlp, gold)))
        differ = [i for i, (a, b) in enumerate(zip(gold, own)) if borders(a) != borders(b)]
        rows[name] = {}
        for which, parsed in (("treebank", known), ("spacy", own)):
            rows[name][which] = score(gold, parsed)
            some = score([gold[i] for i in differ], [parsed[i] for i in differ])
            rows[name][f"{which}, differ"] = some
        counts[name] = tokens(gold, own)
    return rows, counts


def main() -> None:
    options = script_parser(globals(), "TEST.spacy", "OUT.json")
    options.add_argument("models", nargs="+", metavar="NAME=PATH")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    rows: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for name, path in named_rows(given.models).items():
        nlp = spacy.load(path)
        docs = read_docbin(given.test, nlp.vocab)
        rows[name], counts = measure(nlp, docs)
        print(name, rows[name])
    results = {"sentences": len(docs), "words": sum(map(len, docs)), "tokens": counts, "rows": rows}
    write_record(given.out, "parser", results, data=[given.test])


if __name__ == "__main__":
    main()
