"""Score the entities of a pipeline by seqeval (strict, IOBES) and by spaCy, and print both."""

from pathlib import Path

import spacy
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.scheme import IOBES
from spacy.scorer import Scorer
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from benchmarks.script import script_parser
from spacy_psa.pipeline.chain.span_tags import SpanScheme


def tags(doc: Doc, scheme: SpanScheme) -> list[str]:
    spans = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    return [scheme.tags[i] for i in scheme.encode(len(doc), spans)]


def compare(model: str, data: Path) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 by each of the two."""
    nlp = spacy.load(model)
    gold = list(DocBin().from_disk(data).get_docs(nlp.vocab))
    predicted = list(nlp.pipe(Doc(nlp.vocab, words=[t.text for t in doc]) for doc in gold))
    scheme = SpanScheme(sorted({ent.label_ for doc in [*gold, *predicted] for ent in doc.ents}))
    pair = [[tags(doc, scheme) for doc in docs] for docs in (gold, predicted)]
    measures = {"p": precision_score, "r": recall_score, "f": f1_score}
    theirs = {k: score(*pair, mode="strict", scheme=IOBES) for k, score in measures.items()}
    examples = [Example(*docs) for docs in zip(predicted, gold, strict=True)]
    scores = Scorer.score_spans(examples, "ents")
    return {"seqeval": theirs, "spaCy": {key: scores[f"ents_{key}"] for key in measures}}


def main() -> None:
    options = script_parser(globals(), "MODEL", "DATA.spacy")
    given = options.parse_args()
    for name, scores in compare(given.model, given.data).items():
        print(name, *(f"{key} {value:.6f}" for key, value in scores.items()))


if __name__ == "__main__":
    main()
