"""Score pipelines that users have on our test sets, from the gold words. Nothing is trained.

The record NAME-CORPUS has `model`, its name and version; `documents`; `words`; `scores`, those of
spaCy's scorers of the tagger and the entities. Other components do not run, except `tok2vec`.
"""

from pathlib import Path

from spacy.training import Example

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.laboratory.performance.pipelines import named_rows
from spacy_psa.loading import load_pipeline
from spacy_psa.sentences import unannotated

OWN = "real_pipelines"
SCORED = ("tok2vec", "tagger", "ner")


def score(name: str, model: str, corpus: str, test: Path) -> None:
    """Score a pipeline on a corpus, and write the record."""
    nlp = load_pipeline(model)
    nlp.select_pipes(enable=[pipe for pipe in nlp.pipe_names if pipe in SCORED])
    documents = list(read_docbin(test, nlp.vocab))
    scores = nlp.evaluate([Example(unannotated(doc), doc) for doc in documents])
    figures = {
        "model": f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}",
        "documents": len(documents),
        "words": sum(map(len, documents)),
        "scores": {key: value for key, value in scores.items() if value and key != "speed"},
    }
    write_record(f"{name}-{corpus}", OWN, figures, data=[test])


def main() -> None:
    options = script_parser(globals())
    options.add_argument("models", nargs="+", metavar="NAME=MODEL", help="packages or folders")
    corpus = "a corpus to score on, such as ontonotes=corpus/ontonotes/test.spacy; may be repeated"
    options.add_argument("--on", action="append", required=True, metavar="CORPUS=DATA", help=corpus)
    given = options.parse_args()
    for name, model in named_rows(given.models).items():
        for corpus, test in named_rows(given.on).items():
            score(name, model, corpus, Path(test))


if __name__ == "__main__":
    main()
