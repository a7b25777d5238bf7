"""Chunks that follow from trees, as those of CoNLL-2000 do."""

from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.spans.corpus import compare_chunks
from spacy_psa.corpora.bracketing import PENN, read_trees
from spacy_psa.corpora.chunks import chunks

STYLE = replace(PENN, labels="functions", merge_same=False)


def chunked(tree):
    """The chunks of a tree, as (NP The dog)."""
    ((_, parsed),) = read_trees("", [(1, tree)], Counter(), STYLE)
    return " ".join(
        f"({label} {' '.join(parsed.words[start:end])})" for start, end, label in chunks(parsed)
    )


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (  # the example of the shared task
            "(S (NP-SBJ (PRP He)) (VP (VBZ reckons) (SBAR (-NONE- 0) (S (NP-SBJ (DT the) (JJ "
            "current) (NN account) (NN deficit)) (VP (MD will) (VP (VB narrow) (PP-DIR (TO to) (NP "
            "(QP (RB only) (# #) (CD 1.8) (CD billion)))) (PP-TMP (IN in) (NP (NNP September)))))))"
            ") (. .))",
            "(NP He) (VP reckons) (NP the current account deficit) (VP will narrow) (PP to) "
            "(NP only # 1.8 billion) (PP in) (NP September)",
        ),
        (  # a possessive begins the noun phrase after it
            "(NP (NP (NNP Eastern) (NNPS Airlines) (POS ')) (NNS creditors))",
            "(NP Eastern Airlines) (NP ' creditors)",
        ),
        (  # adverbs between verbs belong to them
            "(S (NP-SBJ (PRP it)) (VP (MD could) (RB not) (ADVP (RB very) (RB easily)) (VP (VB "
            "be) (VP (VBN performed)))))",
            "(NP it) (VP could not very easily be performed)",
        ),
        (  # a clause without subject is joined to its verb, one of purpose is not
            "(S (NP-SBJ (PRP we)) (VP (VBP want) (S (NP-SBJ (-NONE- *)) (VP (TO to) (VP (VB stop) "
            "(S-PRP (VP (TO to) (VP (VB rest)))))))))",
            "(NP we) (VP want to stop) (VP to rest)",
        ),
        ("(NP (ADJP (RB very) (JJ old)) (NN dog))", "(NP very old dog)"),
        ("(NP (NP (NN dog)) (, ,) (ADJP (JJ old)))", "(NP dog) (ADJP old)"),
        ("(SBAR (WHNP (WP who)) (S (VP (VBZ is) (ADVP-PRD (RB here)))))",
         "(NP who) (VP is) (ADVP here)"),
        ("(FRAG (X (SYM *)) (NAC (NNP Paris)))", ""),
    ],
)  # fmt: skip
def test_chunks_end_at_the_heads_of_constituents(tree, expected):
    assert chunked(tree) == expected


def test_chunks_of_the_wall_street_journal_agree_with_the_published_ones(corpora):
    """OntoNotes revised these trees and has no functions, so some chunks differ."""
    published, trees = corpora / "conll2000/conll2000.zip", corpora / "ontonotes5"
    counts = compare_chunks(published, trees / "conll-2012-en.tar.xz", ["test.txt"])
    assert counts["gold"] > 10_000
    assert 2 * counts["both"] / (counts["found"] + counts["gold"]) > 0.985
