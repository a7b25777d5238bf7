"""The export format of NEGRA and TIGER; trees made continuous."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_psa.corpora.negra_export import LEFT_OUT, RAISED, SECONDARY, read_docs
from spacy_psa.corpora.projective import is_discontinuous, lower_punctuation, raise_blocks, yields
from spacy_psa.corpora.trees import build_tree
from spacy_psa.errors import InputError
from tests.helpers.corpora import input_error_at
from tests.helpers.trees import constituents, flat

FILE = "tiger.export"
HEAD = "#FORMAT 3\n#BOT ORIGIN\n0\ta\tb\n#EOT ORIGIN\n"
PLAIN = """#BOS 1 0 1098266456 1 %% @SB@
Der		ART	Nom	NK	500
Hund	NN	Nom	NK	500
,	$,	--	--	0
er	PPER	--	SB	501
bellt	VVFIN	--	HD	501
.	$.	--	--	0
#500	NP	--	SB	501
#501	S	--	--	0
#EOS 1
"""
CROSSED = """#BOS 2 0 0 0
Das	PDS	--	OA	500
will	VMFIN	--	HD	501
ich	PPER	--	SB	501
sehen	VVINF	--	HD	500
#500	VP	--	OC	501
#501	S	--	--	502
#502	VROOT	--	--	0
#EOS 2
"""


def tree(doc) -> str:
    words, tags = [t.text for t in doc], [t.tag_ for t in doc]
    return flat(build_tree(words, tags, constituents(doc)))


def test_punctuation_at_the_root_goes_into_the_lowest_constituent_around_it(write, vocab):
    repairs = Counter()
    (doc,) = read_docs(write(HEAD + PLAIN), vocab, repairs)
    assert tree(doc) == ("(TOP (S (NP (ART Der) (NN Hund)) ($, ,) (PPER er) (VVFIN bellt)) ($. .))")
    assert repairs == {}
    assert doc.user_data["document"] == "tiger"


def test_functions_are_kept_if_asked_for(write, vocab):
    (doc,) = read_docs(write(HEAD + PLAIN), vocab, labels="functions")
    assert constituents(doc) == [(0, 5, "S"), (0, 2, "NP-SB")]


def test_format_4_has_a_lemma(write, vocab):
    rows = [line.split("\t") for line in PLAIN.replace("\t\t", "\t").splitlines()]
    text = "\n".join("\t".join([r[0], "lemma", *r[1:]]) if len(r) > 1 else r[0] for r in rows)
    three = tree(next(read_docs(write(PLAIN), vocab)))
    assert tree(next(read_docs(write(f"#FORMAT 4\n{text}\n", "4.export"), vocab))) == three


def test_discontinuous_trees_are_left_out_and_counted(write, vocab):
    repairs = Counter()
    (doc,) = read_docs(write(HEAD + CROSSED + PLAIN), vocab, repairs)
    assert doc[0].text == "Der"
    assert repairs == {LEFT_OUT: 1}


def test_discontinuous_trees_are_raised_and_counted_if_asked_for(write, vocab):
    repairs = Counter()
    path = write(HEAD + CROSSED + PLAIN)
    doc, _ = read_docs(path, vocab, repairs, discontinuous="raise")
    assert tree(doc) == "(S (PDS Das) (VMFIN will) (PPER ich) (VP (VVINF sehen)))"
    assert repairs == {RAISED: 1}


def test_sentences_are_chosen_by_their_numbers(write, vocab):
    path = write(HEAD + CROSSED + PLAIN)
    (doc,) = read_docs(path, vocab, sentences=[2], discontinuous="raise")
    assert doc[0].text == "Das"
    with pytest.raises(InputError, match="no sentence has one of the numbers that are kept"):
        list(read_docs(path, vocab, sentences=[9]))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (PLAIN.replace("#EOS 1\n", ""), 1, "no #EOS ends this sentence"),
        (PLAIN.replace("\t500\n", "\tx\n", 1), 2, "not 5 columns"),
        (f"#FORMAT 4\n{PLAIN}", 3, "not 6 columns"),
        (PLAIN.replace("\t501\n", "\t777\n", 1), 1, "hangs at #777"),
        (PLAIN.replace("S\t--\t--\t0", "S\t--\t--\t500"), 1, "is above itself"),
        (PLAIN.replace("#501\tS", "#500\tS"), 1, "the same number"),
        (PLAIN.replace("#EOS 1\n", "") + CROSSED, 10, "no #EOS before this #BOS"),
        (PLAIN.replace("#EOS 1", "#EOS 7"), 10, "not of the sentence 1 of line 1"),
    ],
)
def test_broken_sentences_are_named_by_file_and_line(write, vocab, text, line, reason):
    path = write(text)
    with input_error_at(path, line, reason):
        list(read_docs(path, vocab))


def test_a_file_without_sentences_is_an_error(write, vocab):
    with pytest.raises(InputError, match="begin with #BOS"):
        list(read_docs(write("( (S (NN a)))\n"), vocab))


@st.composite
def graphs(draw):
    """(above, words): any tree over words, continuous or not; constituents may be empty."""
    words, inner = draw(st.integers(1, 7)), draw(st.integers(0, 5))
    root = words + inner
    ups = [draw(st.integers(i + 1, root)) for i in range(words, root)]
    return [draw(st.integers(words, root)) for _ in range(words)] + ups, words


@settings(max_examples=60)
@given(graphs(), st.data())
def test_raising_gives_a_continuous_tree_and_moves_nodes_only_upwards(graph, data):
    above, words = graph
    heads = data.draw(st.sets(st.integers(0, len(above) - 1)))
    raised = raise_blocks(above, words, heads)
    below = [sorted(y) for y in yields(raised, words)]
    assert all(b - a == 1 for y in below for a, b in pairwise(y))
    for node, parent in enumerate(raised):
        up = above[node]
        while up != parent:
            up = above[up]  # ends at an IndexError if the new parent was not above
    if not is_discontinuous(above, words):
        assert raised == above


def test_the_head_stays_and_else_the_longest_block():
    # Words 0, 2 and 3 are a constituent (5) around word 1.
    above = [5, 6, 5, 5, 6, 6]
    assert raise_blocks(above, 5, heads=[0])[:5] == [5, 6, 6, 6, 6]
    assert raise_blocks(above, 5, heads=[])[:5] == [6, 6, 5, 5, 6]


def test_words_at_the_root_stay_there():
    assert lower_punctuation([3, 4, 3, 4], ["so", "what", "now"]) == [3, 4, 3, 4]


def test_a_word_may_look_like_the_number_of_a_constituent(write, vocab):
    (doc,) = read_docs(write(PLAIN.replace("Hund\t", "#2008\t")), vocab)
    assert doc[1].text == "#2008" and constituents(doc)[0] == (0, 5, "S")


def test_sentences_may_have_ids_that_are_not_numbers(write, vocab):
    text = PLAIN.replace("#BOS 1 0", "#BOS RST_EE01/4 0").replace("#EOS 1", "#EOS RST_EE01/4")
    (doc,) = read_docs(write(text), vocab)
    assert len(doc) == 6
    with pytest.raises(InputError, match="RST_EE01/4 of the sentence is not a number"):
        list(read_docs(write(text), vocab, sentences={1}))


def test_the_header_of_the_columns_says_whether_there_is_a_lemma(write, vocab):
    rows = [line.split("\t", 1) for line in PLAIN.splitlines()]
    lemmas = "\n".join("\tlemma\t".join(row) for row in rows)
    (doc,) = read_docs(write("%% word\tlemma\ttag\tmorph\tedge\tparent\n" + lemmas + "\n"), vocab)
    (plain,) = read_docs(write(HEAD + PLAIN), vocab)
    assert tree(doc) == tree(plain)


XML = """<?xml version="1.0" encoding="UTF-8"?>
<corpus id="c"><body>
<s id="s1"><graph root="s1_501">
<terminals>
<t id="s1_1" word="Der" lemma="der" pos="ART"/><t id="s1_2" word="Hund" pos="NN"/>
<t id="s1_3" word="," pos="$,"/><t id="s1_4" word="er" pos="PPER"/>
<t id="s1_5" word="bellt" pos="VVFIN"/><t id="s1_6" word="." pos="$."/>
</terminals>
<nonterminals>
<nt id="s1_500" cat="NP"><edge label="NK" idref="s1_1"/><edge label="NK" idref="s1_2"/></nt>
<nt id="s1_501" cat="S"><edge label="SB" idref="s1_500"/><edge label="SB" idref="s1_4"/>
<edge label="HD" idref="s1_5"/></nt>
</nonterminals>
</graph></s>
</body></corpus>
"""


def test_tiger_xml_has_the_trees_of_the_export_format(tmp_path, write, vocab):
    path = tmp_path / "tiger.xml"
    path.write_text(XML)
    (doc,) = read_docs(path, vocab, sentences={1}, labels="functions")
    (exported,) = read_docs(write(HEAD + PLAIN), vocab, labels="functions")
    assert tree(doc) == tree(exported)
    assert doc.user_data["document"] == "tiger"


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ('idref="s1_4"', 'idref="s1_9"', 3, "s1_9, which is not in the sentence"),
        (' word="er"', "", 3, "terminal 4 has no word"),
        ("</graph>", "</graf>", 14, "not TIGER XML"),
    ],
)
def test_broken_tiger_xml_is_named_by_file_and_line(tmp_path, vocab, old, new, line, reason):
    path = tmp_path / "tiger.xml"
    path.write_text(XML.replace(old, new))
    with pytest.raises(InputError, match=f"tiger.xml:{line}: .*{reason}"):
        list(read_docs(path, vocab))


def test_secondary_edges_are_left_out_and_counted(tmp_path, write, vocab):
    """Those of trees that are left out do not count."""
    path = tmp_path / "tiger.xml"
    second = '<secedge label="SB" idref="s1_501"/>'
    text = XML.replace('pos="PPER"/>', f'pos="PPER">{second}</t>')
    path.write_text(text.replace("</nt>", f"{second}</nt>", 1))
    export = PLAIN.replace("SB\t501\n", "SB\t501\tSB\t500\tOA\t500 %% a\tremark\n", 1)
    export = write(HEAD + CROSSED.replace("501\n", "501\tSB\t500\n", 1) + export)
    trees = []
    for source, left_out in ((path, {}), (export, {LEFT_OUT: 1})):
        repairs = Counter()
        trees.append(tree(next(read_docs(source, vocab, repairs))))
        assert repairs == {SECONDARY: 2} | left_out
    assert trees[0] == trees[1]
