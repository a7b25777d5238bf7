"""Damage tags, chunks or trees at random, look for the damage, and compare rankings.

    python -m benchmarks.find_errors.nodes gum-tagger corpus/gum training/gum/model-best tagger

5% of the nodes of a part are damaged: the tags of tokens, chunks, or constituents. A tag becomes
another one. Chunks and constituents are removed, invented, moved at one end or of another label;
none overlaps or crosses others. The root of a tree stays.

The record (kind "figures") has an object for `dev` and one for `test`: the number of sentences that
were `left_out`, since they have labels that the model does not know, the number of `nodes`, the
share of them that is `wrong`, the number of sentences with damage (`wrong_sentences`), the number
of suspects that were `found`, the `seconds` of processor time of the search, and for each way to
rank the area under the precision-recall curve of `nodes`, that of `sentences`, and the precision
among as many sentences as are wrong (`first`). `better` has the share of 10,000 draws of documents
in which the area of `suspects` is above that of `posterior`. The ways:

- `suspects`: the score of `spacy-psa find-errors`
- `log_odds`: its suspects by log odds only
- `posterior`: the probability that an annotated node is wrong, and that of the most suspicious node
  of a sentence. For tags, this is cleanlab's method for tokens, with self-confidence
"""

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span

from benchmarks.find_errors.measure import DAMAGE, Scores, Units, ranking_figures
from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.analysis.label_errors import annotation, find_suspects, ranked
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.loading import load_pipeline
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.chain.tagger import CRFTagger
from spacy_psa.pipeline.evidence import Node, cross
from spacy_psa.sentences import document_batches, document_numbers, unannotated

PARTS = ("dev", "test")
UNFOUND = 1e3
"""Subtracted from the scores of nodes that are in no suspect, so that they come last."""


def annotated(pipe: Any, docs: Sequence[Doc], nodes: Sequence[Sequence[Node]]) -> list[Doc]:
    """Copies of docs with other nodes as their annotation."""
    copies = [doc.copy() for doc in docs]
    place = getattr(pipe, "store", pipe)
    for doc, own in zip(copies, nodes):
        if isinstance(pipe, CRFTagger):
            for start, _, tag in own:
                doc[start].tag_ = tag
        else:
            doc.spans[place.spans_key] = [Span(doc, *node) for node in own]
    return copies


def moved(node: Node, length: int) -> Iterator[Node]:
    """The same node with one end at another token, next to the old one."""
    start, end, label = node
    for first, last in ((start - 1, end), (start + 1, end), (start, end - 1), (start, end + 1)):
        if 0 <= first < last <= length:
            yield first, last, label


def damaged(pipe: Any, docs: Sequence[Doc], share: float, seed: int = 0) -> list[list[Node]]:
    """The nodes of docs, a share of them damaged."""
    draw = random.Random(seed)
    nodes = [list(annotation(pipe, doc) or ()) for doc in docs]
    labels = sorted({label for own in nodes for _, _, label in own})
    flat, tags = isinstance(pipe, ChainLabeler), isinstance(pipe, CRFTagger)
    places = [(i, node) for i, own in enumerate(nodes) for node in own[not flat :]]

    def fits(node: Node, others: Sequence[Node]) -> bool:
        if flat:
            return all(node[1] <= other[0] or other[1] <= node[0] for other in others)
        apart = all(node[:2] != other[:2] for other in others)
        return apart and not any(cross(*sorted((node, other))) for other in others)

    for i, node in draw.sample(places, round(share * len(places))):
        own, length = nodes[i], len(docs[i])
        rest = [each for each in own if each != node]
        way = "type" if tags else draw.choice(["missed", "invented", "bounds", "type"])
        free: list[Node] = []
        if way == "invented":
            ranges = (
                (start, end) for start in range(length) for end in range(start + 1, length + 1)
            )
            free = [(*each, "") for each in ranges if fits((*each, ""), own)]
        elif way == "bounds":
            free = [each for each in moved(node, length) if fits(each, rest)]
        if way == "missed":
            nodes[i] = rest
        elif way == "invented" and free:
            nodes[i] = [*own, (*draw.choice(free)[:2], draw.choice(labels))]
        elif way == "bounds" and free:
            nodes[i] = [*rest, draw.choice(free)]
        else:
            others = [(*node[:2], label) for label in labels if (*node[:2], label) not in own]
            other = draw.choice(others)
            nodes[i] = [other if each == node else each for each in own]
        nodes[i].sort(key=lambda each: (each[0], -each[1]))  # nodes of the same bounds stay
    return nodes


def posteriors(nlp: Language, name: str, docs: Sequence[Doc]) -> Scores:
    """The probability that each node of docs is wrong."""
    pipe: Any = nlp.get_pipe(name)
    wrong: Scores = []
    for batch in document_batches(iter(docs), 64):
        analyses = pipe.analyses([unannotated(doc, nlp.vocab, document=True) for doc in batch])
        wrong += [
            1 - numpy.array(each.posterior(annotation(pipe, doc) or []))
            for each, doc in zip(analyses, batch)
        ]
    return wrong


def figures(nlp: Language, name: str, docs: Sequence[Doc]) -> dict[str, Any]:
    """Damage docs, and compare the ways to find the damage."""
    pipe: Any = nlp.get_pipe(name)
    known = set(pipe._span_labels)
    whole = [doc for doc in docs if annotation(pipe, doc)]
    docs = [d for d in whole if known >= {label for _, _, label in annotation(pipe, d) or ()}]
    truth = [annotation(pipe, doc) or [] for doc in docs]
    docs = annotated(pipe, docs, damaged(pipe, docs, DAMAGE))
    began = time.process_time()
    suspects = ranked(find_suspects(nlp, name, docs).suspects, pipe, docs)
    seconds = round(time.process_time() - began, 1)
    nodes = [annotation(pipe, doc) or [] for doc in docs]
    posterior = posteriors(nlp, name, docs)
    ways: dict[str, Scores] = {
        "suspects": [each - UNFOUND for each in posterior],
        "log_odds": [each - UNFOUND for each in posterior],
        "posterior": posterior,
    }
    worst = {
        way: numpy.array([each.max(initial=-UNFOUND) for each in scores])
        for way, scores in ways.items()
    }
    for each in suspects:
        for way, value in (("suspects", each.score), ("log_odds", each.log_odds)):
            worst[way][each.doc] = max(worst[way][each.doc], value)
            for k, node in enumerate(nodes[each.doc]):
                if node in each.annotated and node not in each.proposed:
                    ways[way][each.doc][k] = max(ways[way][each.doc][k], value)
    of_docs = numpy.array(document_numbers(docs))
    units = {
        "nodes": Units(
            numpy.array([node not in true for own, true in zip(nodes, truth) for node in own]),
            {way: numpy.concatenate(scores) for way, scores in ways.items()},
            numpy.repeat(of_docs, [len(own) for own in nodes]),
        ),
        "sentences": Units(
            numpy.array([own != true for own, true in zip(nodes, truth)]), worst, of_docs
        ),
    }
    wrong = units["nodes"].wrong
    return {
        "left_out": len(whole) - len(docs),
        "nodes": len(wrong),
        "wrong": float(wrong.mean()),
        "found": len(suspects),
        "seconds": seconds,
        **ranking_figures(units, "posterior"),
    }


def main() -> None:
    options = script_parser(globals())
    options.add_argument("record", metavar="NAME", help="of the record")
    options.add_argument("data", type=Path, metavar="DATA", help="folder with the corpus")
    options.add_argument("model", metavar="MODEL", help="trained pipeline")
    options.add_argument("pipe", metavar="PIPE", help="tagger, chunker or parser of the pipeline")
    given = options.parse_args()
    nlp = load_pipeline(given.model)
    files = [given.data / f"{part}.spacy" for part in PARTS]
    results = {"model": given.model}
    for part, path in zip(PARTS, files):
        docs = [doc for doc in read_docbin(path, nlp.vocab) if len(doc)]
        results[part] = figures(nlp, given.pipe, docs)
        print(part, results[part], flush=True)
    write_record(given.record, "find_errors", results, data=files)


if __name__ == "__main__":
    main()
