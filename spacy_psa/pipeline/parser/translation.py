"""Translates the trees of a chart into constituents over the tokens of a doc."""

from collections.abc import Mapping, Sequence

from spacy_psa.pipeline.parser.charts import Shares
from spacy_psa.pipeline.parser.constituents import JOIN, Sentence, token_nodes
from spacy_psa.pipeline.parser.predictions import Constituent
from spacy_psa.structs.span_cells import Tree


def chart_constituents(
    tree: Tree,
    labels: Sequence[str],
    sentence: Sentence,
    shares: Shares | None = None,
    kept: Mapping[tuple[int, int], Sequence[str]] | None = None,
) -> list[Constituent]:
    """Translate a tree of the chart into constituents over tokens.

    The posterior of a constituent is the sum over all chains over its words that hold its label.

    Args:
        tree: the tree.
        labels: the labels of the chart; `labels[i]` has the number i + 1 in the tree.
        sentence: the sentence.
        shares: for each constituent of the tree the marginal probability of each label over its
            words; None for no posteriors.
        kept: chains that no label of the chart has, by their fenceposts; they stand in place of
            what the tree has there, and are certain.

    Examples:
        >>> import numpy
        >>> sentence = Sentence(0, 3, numpy.arange(3))
        >>> chart_constituents([(0, 3, 1), (1, 3, 2)], ["TOP", "S VP"], sentence)
        [Constituent(start=1, end=3, label='S', confidence=0.0), \
Constituent(start=1, end=3, label='VP', confidence=0.0)]
    """
    kept = kept or {}
    nodes = [
        (start, end, labels[number - 1], place)
        for place, (start, end, number) in enumerate(tree)
        if (start, end) not in kept
    ]
    nodes += [(start, end, JOIN.join(chain), -1) for (start, end), chain in kept.items()]
    found = []
    for start, end, chain, place in sorted(nodes, key=lambda node: (node[0], -node[1])):
        for first, last, label in token_nodes((start, end, chain), sentence.words):
            confidence = 0.0
            if shares is not None and place < 0:
                confidence = 1.0
            elif shares is not None:
                holding = [label in each.split(JOIN) for each in labels]
                confidence = float(shares[place, holding].sum())
            found.append(Constituent(first, last, label, confidence))
    return found
