"""Treebanks beyond the Penn Treebank: SPMRL, the Chinese Treebank, styles of labels."""

import gzip
from collections import Counter
from dataclasses import replace

import pytest

from spacy_psa.corpora.bracketing import (
    DISCONTINUOUS,
    NOT_WORDS,
    PENN,
    PSD,
    SPMRL,
    TreeStyle,
    bare,
    with_functions,
)
from spacy_psa.corpora.treebanks import read_docs
from spacy_psa.corpora.trees import build_tree
from spacy_psa.errors import InputError
from tests.helpers.corpora import input_error_at
from tests.helpers.trees import constituents, flat

GERMAN = (
    "( (VROOT (S-TOP##x=y## (NP-SB (ART##case=nom|number=sg## Das) (NN##case=nom## Haus)) "
    "(VVFIN##mood=ind## steht)) ($.##_## .)) )\n"
)
CHINESE = """<DOC>
<DOCID> chtb_0001 </DOCID>
<HEADER>
<DATE>
1998 (draft
</DATE>
</HEADER>
<BODY>
<S ID=1>
( (IP (NP-PN-SBJ (NR-SHORT 中)
                 (NN 人))
      (VP (VV 来) (NP-OBJ (-NONE- *pro*)))
      (PU
<)) )
</S>
<S ID=2>
( (FRAG (NN 完)) )
</S>
</BODY>
</DOC>
"""
SWITCHBOARD = """*x*x*x*x*x*x*x*x*
*x*  made up  *x*
*x*x*x*x*x*x*x*x*

( (CODE (SYM SpeakerA1) (. .) ))
( (S (CC And)
    (EDITED (RM (-DFL- \\[) ) (NP-SBJ-UNF (PRP I) ) (, ,) (IP (-DFL- \\+) ))
    (NP-SBJ-1 (PRP we) ) (RS (-DFL- \\]) )
    (VP (VBP want) (S (NP-SBJ (-NONE- *-1) ) (VP (TO to) (VP (VB go) ))))
    (. .) (-DFL- E_S) ))
"""
ENGLISH = "( (S (NP-SBJ-1 (NP (DT the) (NN end)) (SBAR (-NONE- *ICH*))) (VP=2 (VBD came))))\n"


def tree(doc) -> str:
    words, tags = [t.text for t in doc], [t.tag_ for t in doc]
    return flat(build_tree(words, tags, constituents(doc)))


def test_spmrl_features_functions_and_vroot_are_left_out(write, vocab):
    (doc,) = read_docs("spmrl", write(GERMAN, "train.ptb"), vocab)
    assert tree(doc) == "(TOP (S (NP (ART Das) (NN Haus)) (VVFIN steht)) ($. .))"


def test_empty_elements_of_spmrl_may_have_features(write, vocab):
    text = "7\t(S (NP-OB (-NONE-##_## *T*)) (NN##_## a))\n"
    (doc,) = read_docs("spmrl", write(text, "train.ptb"), vocab)
    assert tree(doc) == "(S (NN a))"


def test_speakers_and_marks_of_switchboard_are_left_out_and_counted(write, vocab):
    repairs = Counter()
    (doc,) = read_docs("ptb", write(SWITCHBOARD, "sw2005.mrg"), vocab, repairs)
    assert tree(doc) == (
        "(S (CC And) (EDITED (NP (PRP I)) (, ,)) (NP (PRP we)) "
        "(VP (VBP want) (S (VP (TO to) (VP (VB go))))) (. .))"
    )
    assert repairs == {
        "comment line(s) left out": 3,
        "id(s), code(s) and comment(s) left out": 6,
        "tree(s) without words left out": 1,
    }


def test_discontinuous_brackets_are_read_where_they_are_continuous(write, vocab):
    trees = "(S (NP (PRP 0=he)) (VP (VB 1=is)))\n(S (VP (VB 0=is) (JJ 2=in)) (NP (PRP 1=he)))\n"
    repairs = Counter()
    (doc,) = read_docs("brackets", write(trees + "\n", "a.discbracket"), vocab, repairs)
    assert tree(doc) == "(S (NP (PRP he)) (VP (VB is)))"
    assert repairs == {DISCONTINUOUS: 1}
    (doc,) = read_docs("brackets", write("(S (NN 0=a) (NN b))", "b.txt"), vocab)
    assert doc.text == "0=a b "


def test_spmrl_functions_are_kept_if_asked_for(write, vocab):
    style = replace(SPMRL, labels="functions")
    (doc,) = read_docs("spmrl", write(GERMAN, "train.ptb"), vocab, style=style)
    assert constituents(doc) == [(0, 3, "S-TOP"), (0, 2, "NP-SB")]


def test_a_root_of_spmrl_may_have_features(write, vocab):
    (doc,) = read_docs("spmrl", write("(VROOT##x## (S (NE##a## Ada)) ($.##_## .))", "a.ptb"), vocab)
    assert constituents(doc) == [(0, 1, "S")]


@pytest.mark.parametrize("root", ["ROOT", "S1", "TOP"])
def test_a_root_below_the_nameless_bracket_is_no_constituent(write, vocab, root):
    text = f"( ({root} (S (NP (NN Ada)) (VP (VBD came)))))"
    (doc,) = read_docs("ptb", write(text, "a.mrg"), vocab)
    assert constituents(doc) == [(0, 2, "S"), (0, 1, "NP"), (1, 2, "VP")]


def test_a_word_of_white_space_is_refused(write, vocab):
    path = write("(TOP (S (NP (NN Ada) (SYM \u00a0)) (VP (VBD came))))", "a.mrg")
    with input_error_at(path, 1, "white space, which cannot be a word"):
        list(read_docs("ptb", path, vocab))


def test_vroot_inside_a_tree_is_a_constituent(write, vocab):
    (doc,) = read_docs("spmrl", write("(S (VROOT (NN##_## a)) (NN b))", "a.ptb"), vocab)
    assert constituents(doc) == [(0, 2, "S"), (0, 1, "VROOT")]


def test_other_readers_take_vroot_for_a_constituent(write, vocab):
    (doc,) = read_docs("ptb", write("( (VROOT (NN a)))", "a.mrg"), vocab)
    assert constituents(doc) == [(0, 1, "VROOT")]


@pytest.mark.parametrize("name", ["chtb_0001.fid", "chtb_0001.nw"])
def test_mark_up_of_the_chinese_treebank_is_left_out(write, tmp_path, vocab, name):
    write(CHINESE, f"bracketed/{name}")
    repairs = Counter()
    first, second = read_docs("ctb", tmp_path / "bracketed", vocab, repairs)
    assert tree(first) == "(IP (NP (NR 中) (NN 人)) (VP (VV 来)) (PU <))"
    assert tree(second) == "(FRAG (NN 完))"
    assert first.user_data["document"] == "chtb_0001"
    assert repairs == {}


def test_trees_of_the_chinese_treebank_may_stand_without_mark_up(write, vocab):
    (doc,) = read_docs("ctb", write("( (IP (VV 来)) )\n", "chtb_4000.nw"), vocab)
    assert tree(doc) == "(IP (VV 来))"


def test_files_of_the_chinese_treebank_are_chosen_by_number(write, tmp_path, vocab):
    for number in (1, 270, 301):
        write(f"<S ID=1>\n( (IP (CD {number})) )\n</S>\n", f"ctb/chtb_{number:04}.nw")
    write("no tree", "ctb/readme.txt")
    docs = read_docs("ctb", tmp_path / "ctb", vocab, numbers=range(1, 271))
    assert [doc.text.strip() for doc in docs] == ["1", "270"]
    with pytest.raises(InputError, match="with those numbers"):
        list(read_docs("ctb", tmp_path / "ctb", vocab, numbers=[5]))


def test_chinese_that_is_not_utf8_is_refused_with_the_remedy(write, vocab):
    path = write("<S ID=1>\n( (IP (VV 来)) )\n</S>\n".encode("gb18030"), "chtb_0001.fid")
    with input_error_at(path, 2, "iconv -f GB18030"):
        list(read_docs("ctb", path, vocab))


def test_a_broken_tree_between_mark_up_is_named_by_its_line(write, vocab):
    path = write("<S ID=1>\n( (IP (VV 来) )\n</S>\n", "chtb_0001.fid")
    with input_error_at(path, 3, "in the tree of line 2"):
        list(read_docs("ctb", path, vocab))


@pytest.mark.parametrize(
    ("style", "found"),
    [
        (PENN, [(0, 3, "S"), (0, 2, "NP"), (2, 3, "VP")]),
        (replace(PENN, merge_same=False), [(0, 3, "S"), (0, 2, "NP"), (0, 2, "NP"), (2, 3, "VP")]),
        (
            replace(PENN, labels="functions"),
            [(0, 3, "S"), (0, 2, "NP-SBJ"), (0, 2, "NP"), (2, 3, "VP")],
        ),
        (
            TreeStyle(remove_empty=True),
            [(0, 3, "S"), (0, 2, "NP-SBJ-1"), (0, 2, "NP"), (2, 3, "VP=2")],
        ),
    ],
)
def test_a_style_says_which_labels_and_repeats_are_kept(write, vocab, style, found):
    (doc,) = read_docs("ptb", write(ENGLISH, "wsj_0001.mrg"), vocab, style=style)
    assert constituents(doc) == found


@pytest.mark.parametrize(
    ("label", "kept"),
    [
        ("NP-SBJ-1", "NP-SBJ"), ("NP-1-SBJ", "NP-SBJ"), ("NP=2", "NP"), ("PP-LOC-PRD-TPC-1=2",
        "PP-LOC-PRD-TPC"), ("ADVP|PRT", "ADVP"), ("-LRB-", "-LRB-"), ("S1", "S1"), ("X-2A", "X-2A"),
    ],
)  # fmt: skip
def test_functions_are_kept_without_indices(label, kept):
    assert with_functions(label) == kept
    assert bare(kept) == bare(label)


@pytest.mark.parametrize("family", ["ptb", "spmrl", "ctb", "brackets"])
@pytest.mark.parametrize("ending", ["mrg", "parse", "tree", "PTB", "psd", "prd", "txt", "txt.gz"])
def test_a_folder_of_trees_is_read_whatever_their_ending(tmp_path, vocab, family, ending):
    content = b"(S\n (NN a))\n"
    path = tmp_path / f"chtb_0001.{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    (tmp_path / "README").write_text("not trees")
    assert [doc.text for doc in read_docs(family, tmp_path, vocab)] == ["a "]


def test_texts_and_other_trees_are_left_alone_beside_the_files_of_the_family(tmp_path, vocab):
    for name in ("a.mrg", "b.prd", "c.txt"):
        (tmp_path / name).write_text(f"(S (NN {name}))\n")
    assert [doc[0].text for doc in read_docs("ptb", tmp_path, vocab)] == ["a.mrg"]
    assert [doc[0].text for doc in read_docs("brackets", tmp_path, vocab)] == ["a.mrg", "b.prd"]
    (tmp_path / "a.mrg").unlink()
    assert [doc[0].text for doc in read_docs("ptb", tmp_path, vocab)] == ["b.prd"]


ICELANDIC = """/*
of CorpusSearch
*/
( (IP-MAT (CODE <P_1>) (NP-SBJ *con*) (RP á$-á) (VAN $sýnt-sýna)
  (CP-THT;x (C 0) (NUM 0-0) (N-N fyrir-mynd-fyrir-mynd)) (. .-.)) (ID 1270.X,.1))
( (CODE <heading>) (ID 1270.X,.2))
"""
JAPANESE = "( (IP-MAT (PP (NP (PRO 私)) (P は)) (NP;*SBJ* *) (CONJ *) (VB 行く)) (ID 1_x;JP))\n"


def test_marks_and_empty_elements_of_parsed_corpora_are_left_out_and_counted(write, vocab):
    repairs = Counter()
    style = replace(PSD, lemmas=True)
    (doc,) = read_docs("psd", write(ICELANDIC, "a.psd"), vocab, repairs, style=style)
    assert doc.text == "ásýnt 0 fyrir-mynd . "
    assert [token.lemma_ for token in doc] == ["á", "sýna", "0", "fyrir-mynd", "."]
    assert constituents(doc) == [(0, 5, "IP"), (2, 4, "CP")]
    assert repairs == {
        "id(s), code(s) and comment(s) left out": 4,
        "empty element(s) left out": 2,
        "tree(s) without words left out": 1,
        "line(s) of remarks left out": 3,
    }
    (doc,) = read_docs("psd", write(JAPANESE, "b.psd"), vocab)
    assert [token.text for token in doc] == ["私", "は", "行く"]


@pytest.mark.parametrize(
    ("text", "count", "first"), [(ICELANDIC.split("*/\n")[1], 4, "(CODE"), (JAPANESE, 1, "(ID")]
)
def test_leaves_that_do_not_look_like_words_are_counted(write, vocab, text, count, first):
    repairs = Counter()
    path = write("\n" + text, "x.psd")
    list(read_docs("brackets", path, vocab, repairs))
    ((what, number),) = repairs.items()
    assert what.startswith(f"{NOT_WORDS}, such as {first}") and f" in {path}:2 (" in what
    assert number == count


@pytest.mark.parametrize(
    ("label", "separators", "kept"),
    [("NP*SB", "*", "NP"), ("sn.SUJ", ".", "sn"), ("NP/OBJ", "/_", "NP"), ("NP_HD-1", "/_", "NP")],
)
def test_other_characters_may_end_a_category(label, separators, kept):
    assert TreeStyle(labels="bare", separators=separators).label(label) == kept
    assert TreeStyle(labels="bare").label(label.split("-")[0]) == label.split("-")[0]
