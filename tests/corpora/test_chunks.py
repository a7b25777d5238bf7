"""Chunks that follow from trees, as those of CoNLL-2000 do."""

from collections import Counter
from dataclasses import replace

import pytest
from spacy.vocab import Vocab

from spacy_psa.corpora import conll2000, ontonotes
from spacy_psa.corpora.bracketing import PENN, read_trees
from spacy_psa.corpora.chunks import chunks
from spacy_psa.corpora.trees import Parsed

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
    vocab, counts = Vocab(), Counter()
    source = corpora / "conll2000" / "conll2000.zip"
    gold = {
        tuple(token.text for token in doc): {
            (s.start, s.end, s.label_) for s in doc.spans["chunks"]
        }
        for doc in conll2000.read_docs(source, vocab, None, "test.txt")
    }
    trees = corpora / "ontonotes5" / "conll-2012-en.tar.xz"
    for doc in ontonotes.read_docs(trees, vocab, None, "", {20}):
        words = tuple(token.text for token in doc)
        if words in gold:
            constituents = [(s.start, s.end, s.label_) for s in doc.spans["constituents"]]
            made = {*chunks(Parsed([*words], [token.tag_ for token in doc], constituents))}
            counts.update(both=len(made & gold[words]), made=len(made), gold=len(gold[words]))
    assert counts["gold"] > 10_000
    assert 2 * counts["both"] / (counts["made"] + counts["gold"]) > 0.985
