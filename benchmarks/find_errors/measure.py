"""Look for errors of CoNLL-2003, and compare what is found with its corrections.

    python -m benchmarks.find_errors.measure best-0 corpus/conll2003 training/conll2003/model-best

The record (kind "figures") has an object for each comparison whose files are in the folder:
`dev_clean`, `test_clean` and `test_pp` have the corrections of a part, and `dev_damaged` and
`test_damaged` have a part after 5% of its entities were damaged at random (removed, invented, of
other bounds or of another type). Each has the number of `tokens`, the share of them whose type is
`wrong`, the `seconds` of processor time of the search, and for each way to rank the area under the
precision-recall curve of `tokens`, that of `sentences`, and the precision among as many sentences
as are wrong (`first`). `better` has, for `tokens` and `sentences`, the share of 10,000 draws of
documents in which the area of `suspects` is above that of `cleanlab`. Finished parts are kept in
training/find_errors/NAME. The ways:

- `suspects`: the score of `spacy-psa find-errors`
- `log_odds`: its suspects by log odds only
- `cleanlab`: cleanlab's method for tokens, self-confidence and the lowest token of a sentence, on
  the marginal probabilities of the same model
- `loss`: the negative log probability of the annotation of a sentence, for its tokens alike
"""

import random
import time
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import srsly
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.analysis.label_errors import Suspect, find_suspects, ranked
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.loading import load_pipeline
from spacy_psa.scoring.statistics import draws, share_above
from spacy_psa.sentences import document_batches, document_numbers, unannotated

PIPE = "ner"
OUTSIDE = "O"
DAMAGE = 0.05
COMPARISONS = {
    "dev": ["dev_clean"],
    "dev_damaged": ["dev"],
    "test": ["test_clean", "test_pp"],
    "test_damaged": ["test"],
}
"""The files that each annotation is compared with."""
Flags = list[NDArray[numpy.bool_]]
"""Whether each token of each doc is wrong."""
Scores = list[NDArray[numpy.float64]]


def types(doc: Doc) -> list[str]:
    """The type of the entity of each token."""
    return [token.ent_type_ or OUTSIDE for token in doc]


def differences(docs: Sequence[Doc], truth: Sequence[Doc]) -> tuple[Flags, Flags]:
    """Which tokens have another type in the correction, and which are in it, by document."""

    def grouped(docs: Sequence[Doc]) -> dict[Any, list[int]]:
        groups: dict[Any, list[int]] = {}
        for i, doc in enumerate(docs):
            groups.setdefault(doc.user_data["document"], []).append(i)
        return groups

    wrong: Flags = [numpy.zeros(len(doc), dtype=bool) for doc in docs]
    known: Flags = [numpy.zeros(len(doc), dtype=bool) for doc in docs]
    theirs = grouped(truth)
    for name, places in grouped(docs).items():
        ours = [(i, j) for i in places for j in range(len(docs[i]))]
        other = [token for i in theirs[name] for token in truth[i]]
        words = [docs[i][j].text for i, j in ours], [token.text for token in other]
        for a, b, size in SequenceMatcher(None, *words, autojunk=False).get_matching_blocks():
            for (i, j), token in zip(ours[a : a + size], other[b : b + size]):
                known[i][j] = True
                wrong[i][j] = docs[i][j].ent_type_ != token.ent_type_
    return wrong, known


def damaged(docs: Sequence[Doc], share: float, seed: int = 0) -> list[Doc]:
    """Copies of docs in which a share of the entities was damaged, in four ways alike."""
    draw = random.Random(seed)
    labels = sorted({ent.label_ for doc in docs for ent in doc.ents})
    copies = [doc.copy() for doc in docs]
    places = [(i, k) for i, doc in enumerate(docs) for k in range(len(doc.ents))]
    for i, k in draw.sample(places, round(share * len(places))):
        doc, ent = copies[i], docs[i].ents[k]
        rest = [each for each in doc.ents if each.start != ent.start]
        taken = {token.i for each in doc.ents for token in each}
        free = [token.i for token in doc if token.i not in taken and token.is_alpha]
        way = draw.choice(["missed", "invented", "bounds", "type"])
        start, end, label = ent.start, ent.end, ent.label_
        if way == "missed":
            doc.ents = rest
            continue
        if way == "invented" and free:
            at = draw.choice(free)
            doc.ents = [*doc.ents, Span(doc, at, at + 1, draw.choice(labels))]
            continue
        if way == "bounds" and end < len(doc) and end not in taken:
            end += 1
        elif way == "bounds" and end - start > 1:
            end -= 1
        else:
            label = draw.choice([each for each in labels if each != label])
        doc.ents = [*rest, Span(doc, start, end, label)]
    return copies


def of_suspects(docs: Sequence[Doc], suspects: Sequence[Suspect], values: Sequence[float],
                base: Scores) -> Scores:  # fmt: skip
    """The score of each token: that of the suspect that would change it, or else `base` below."""
    scores = [numpy.array(each) - 1e3 for each in base]
    for each, value in zip(suspects, values):
        before, after = ({i: label for s, e, label in spans for i in range(s, e)}
                         for spans in (each.annotated, each.proposed))  # fmt: skip
        for i in before.keys() | after.keys():
            if before.get(i) != after.get(i):
                scores[each.doc][i] = max(scores[each.doc][i], value)
    return scores


def marginals(nlp: Language, docs: Sequence[Doc]) -> tuple[Scores, list[float]]:
    """P(type) of each token, the columns in the order of O and the labels, and each doc's loss."""
    pipe: Any = nlp.get_pipe(PIPE)
    names = [OUTSIDE, *pipe.labels]
    columns = [names.index(tag[2:] or OUTSIDE) for tag in pipe.tags]
    fold = numpy.eye(len(names))[columns]
    probabilities: Scores = []
    losses: list[float] = []
    for batch in document_batches(iter(docs), 64):
        examples = [Example(unannotated(doc, nlp.vocab, document=True), doc) for doc in batch]
        analyses = pipe.analyses([example.predicted for example in examples])
        probabilities += [each.marginals @ fold for each in analyses]
        for each, doc in zip(analyses, batch):
            spans = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
            outside = {token.i: OUTSIDE for token in doc if not token.ent_type}
            losses.append(-each.given(require=spans, allow=outside).log_evidence)
    return probabilities, losses


def areas(
    wrong: NDArray[numpy.bool_],
    scores: NDArray[numpy.float64],
    documents: NDArray[numpy.int64],
    drawn: NDArray[numpy.int64],
) -> NDArray[numpy.float64]:
    """The average precision of a ranking in each draw (B, documents): (B,).

    `wrong`, `scores` and `documents` are those of the units that are ranked; see `draws`.
    """
    levels = numpy.unique(scores[wrong])
    level = numpy.searchsorted(levels, scores, side="right")

    def counted(units: NDArray[numpy.bool_]) -> NDArray[numpy.float64]:
        counts = numpy.zeros((drawn.shape[1], len(levels) + 1))
        numpy.add.at(counts, (documents[units], level[units]), 1.0)
        return drawn @ counts[:, :0:-1]  # the highest level first

    hits, every = counted(wrong), counted(numpy.ones_like(wrong))
    precision = hits.cumsum(1) / numpy.maximum(every.cumsum(1), 1)
    return (hits * precision).sum(1) / numpy.maximum(hits.sum(1), 1)


def rankings(nlp: Language, docs: Sequence[Doc]) -> tuple[dict[str, Scores], dict[str, Any]]:
    """The scores of each way to rank, and the figures of the search."""
    from cleanlab.token_classification.rank import get_label_quality_scores

    pipe: Any = nlp.get_pipe(PIPE)
    began = time.process_time()
    suspects = ranked(find_suspects(nlp, PIPE, docs).suspects, pipe, docs)
    seconds = round(time.process_time() - began, 1)
    probabilities, losses = marginals(nlp, docs)
    names = [OUTSIDE, *pipe.labels]
    given = [[names.index(label) for label in types(doc)] for doc in docs]
    quality = get_label_quality_scores(given, probabilities)[1]
    cleanlab = [1 - numpy.array(each) for each in quality]
    ways = {
        "suspects": of_suspects(docs, suspects, [each.score for each in suspects], cleanlab),
        "log_odds": of_suspects(docs, suspects, [each.log_odds for each in suspects], cleanlab),
        "cleanlab": cleanlab,
        "loss": [numpy.full(len(doc), loss) for doc, loss in zip(docs, losses)],
    }
    return ways, {"found": len(suspects), "seconds": seconds}


class Units(NamedTuple):
    """Tokens, sentences or nodes that are ranked."""

    wrong: NDArray[numpy.bool_]
    """Whether each has an error."""
    scores: dict[str, NDArray[numpy.float64]]
    """The scores of each way to rank."""
    documents: NDArray[numpy.int64]
    """The document of each."""


def ranking_figures(units: dict[str, Units], peer: str) -> dict[str, Any]:
    """The figures of ways to rank units, among them "sentences"; `peer` is one of the ways."""
    sentences = units["sentences"]
    number = int(sentences.wrong.sum())
    once = numpy.ones((1, sentences.documents.max() + 1), dtype=int)

    def area(each: Units, way: str, drawn: NDArray[numpy.int64]) -> NDArray[numpy.float64]:
        return areas(each.wrong, each.scores[way], each.documents, drawn)

    figures: dict[str, Any] = {"wrong_sentences": number}
    for way, scores in sentences.scores.items():
        order = numpy.argsort(-scores, kind="stable")[:number]
        figures[way] = {unit: float(area(each, way, once)[0]) for unit, each in units.items()}
        figures[way]["first"] = float(sentences.wrong[order].mean())
    figures["better"] = {
        unit: share_above(*(
            numpy.concatenate([area(each, way, drawn) for drawn in draws(once.shape[1])])
            for way in ("suspects", peer)
        ))
        for unit, each in units.items()
    }  # fmt: skip
    return figures


def compared(docs: Sequence[Doc], truth: Sequence[Doc], ways: dict[str, Scores]) -> dict[str, Any]:
    """The figures of rankings of the tokens of docs."""
    wrong, known = differences(docs, truth)
    of_docs = numpy.array(document_numbers(docs))

    def flat(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return numpy.concatenate([each[k] for each, k in zip(arrays, known)])

    tokens = Units(
        flat(wrong),
        {way: flat(scores) for way, scores in ways.items()},
        flat([numpy.full(len(doc), number) for doc, number in zip(docs, of_docs)]),
    )
    sentences = Units(
        numpy.array([bool((w & k).any()) for w, k in zip(wrong, known)]),
        {way: numpy.array([each.max() for each in scores]) for way, scores in ways.items()},
        of_docs,
    )
    figures = ranking_figures({"tokens": tokens, "sentences": sentences}, "cleanlab")
    return {"tokens": len(tokens.wrong), "wrong": float(tokens.wrong.mean()), **figures}


def main() -> None:
    options = script_parser(globals())
    options.add_argument("name", metavar="NAME", help="of the record")
    options.add_argument("data", type=Path, metavar="DATA", help="folder with the corpus")
    options.add_argument("model", metavar="MODEL", help="trained pipeline")
    options.add_argument("--only", choices=COMPARISONS, help="one part, without a record")
    given = options.parse_args()
    nlp = load_pipeline(given.model)
    pipe: Any = nlp.get_pipe(PIPE)
    for layer in pipe.model.walk():
        if "features" in layer.attrs:  # of a frozen encoder: each doc is asked about several times
            layer.attrs["features"].in_use = True
    results: dict[str, Any] = {}
    files: set[Path] = set()
    for name in [given.only] if given.only else COMPARISONS:
        part, _, change = name.partition("_")
        path = given.data / f"{part}.spacy"
        truths = [given.data / f"{each}.spacy" for each in COMPARISONS[name]]
        truths = [each for each in truths if each.exists()]
        kept = Path("training", "find_errors", given.name, f"{name}.json")
        if truths and not kept.exists():
            docs = [doc for doc in read_docbin(path, nlp.vocab) if len(doc)]
            docs = damaged(docs, DAMAGE) if change else docs
            ways, search = rankings(nlp, docs)
            own = {}
            for each in truths:
                figures = compared(docs, read_docbin(each, nlp.vocab), ways)
                own[name if change else each.stem] = {**search, **figures}
            with atomic_path(kept) as output:
                srsly.write_json(output, own)
        if truths:
            files.update([path, *truths])
            results |= srsly.read_json(kept)
            print(name, srsly.read_json(kept), flush=True)
    if not given.only:
        data = sorted(files)
        write_record(given.name, "find_errors", {"model": given.model, **results}, data=data)


if __name__ == "__main__":
    main()
