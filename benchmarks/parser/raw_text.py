"""Score parsers on raw text: with the treebank's tokens, and with those of spaCy's tokenizer.

TEST holds one sentence a Doc, with the tokens and marks of the treebank. Its text is restored by
the treebank's own rules (spacy_psa/corpora/quotes.py): spaces, and quotation marks as text has
them. Each model (NAME=PATH) parses the text twice, with the treebank's tokens and with those that
its own tokenizer finds; sentence boundaries are given. PARSEVAL compares offsets in characters
without white space, so trees over other tokens can be scored.

Results (kind "figures"): `sentences`, `words`; `tokens` {MARKS: what the tokenizer does with the
text, see `tokens`}; `rows` {NAME: {MARKS: {TOKENS: F1 of labelled constituents}}}, where TOKENS is
"treebank" or "spacy", and these with ", differ" on the sentences in which the tokens differ. MARKS
are "treebank", "straight", "curly" and "straight, mapped" (the parser's setting `quotes` is
"treebank").
"""

import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.corpora.quotes import as_text
from spacy_psa.scoring.parseval_scorer import score_constituents

KEY = "constituents"
WAYS: dict[str, tuple[Any, Any]] = {
    "treebank": ("treebank", "as_they_are"),
    "straight": ("straight", "as_they_are"),
    "curly": ("curly", "as_they_are"),
    "straight, mapped": ("straight", "treebank"),
}


def borders(doc: Doc) -> list[int]:
    """Where tokens begin, and where the last one ends, in characters without white space."""
    found = [0]
    for token in doc:
        if not token.is_space:
            found.append(found[-1] + len(token.text))
    return found


def tokens(gold: Sequence[Doc], own: Sequence[Doc]) -> dict[str, int]:
    """Count what a tokenizer does with the texts of gold docs.

    Returns:
        `words` of the gold docs and `found`, those that are tokens; `split`, those that are several
        tokens, and `joined`, all others; `sentences` all of whose words are found; `constituents`,
        and `reachable`, those that begin and end where tokens do.
    """
    count = dict.fromkeys(
        ("words", "found", "split", "joined", "sentences", "constituents", "reachable"), 0
    )
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


def texts(docs: Sequence[Doc], marks: Any) -> list[Doc]:
    """The docs with the marks and the spaces of text, and still the tokens of the treebank."""
    return list(as_text(docs, marks, spaces=True))


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
    found: float | None = score_constituents(examples, spans_key=KEY)["tree_f"]
    return None if found is None else round(found, 4)


def measure(nlp: Language, docs: Sequence[Doc]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Score a pipeline in each of the ways; give its scores, and counts of tokens."""
    parser: Any = nlp.get_pipe("parser")
    rows: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for name, (marks, parser._quotes) in WAYS.items():
        gold = texts(docs, marks)
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
    options = script_parser("benchmarks.parser.raw_text", __doc__, "TEST.spacy", "OUT.json")
    options.add_argument("models", nargs="+", metavar="NAME=PATH")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    rows: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for model in given.models:
        name, _, path = model.partition("=")
        nlp = spacy.load(path)
        docs = read_docbin(given.test, nlp.vocab)
        rows[name], counts = measure(nlp, docs)
        print(name, rows[name])
    results = {
        "sentences": len(docs),
        "words": sum(map(len, docs)),
        "tokens": counts,
        "rows": rows,
    }
    write_record(given.out, "parser", results, data=[given.test])


if __name__ == "__main__":
    main()
