"""Trees in brackets, and their constituents."""

import zipfile
from collections import Counter
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_psa.corpora.bracketing import PENN, bare, read_trees, unescape
from spacy_psa.corpora.treebanks import parse_sections, read_bracket_docs, section_of
from spacy_psa.corpora.treebanks import read_docs as read_treebank
from spacy_psa.corpora.trees import build_tree
from spacy_psa.errors import InputError
from tests.helpers.corpora import input_error_at
from tests.helpers.trees import bracketings, constituents, flat, parse_tree

FILE = "wsj_0203.mrg"
PREFIXES = ["wsj_0001.mrg:0 ", "7\t", "-12.5e-3 ", "a b\t", "3: ", "1 -inf "]
read_docs = partial(read_treebank, "ptb")
TRACES = r"""
( (S
    (NP-SBJ-1 (NNP May) )
    (VP (VBD said) (, ,)
      (SBAR (-NONE- 0)
        (S (NP-SBJ (-NONE- *-1) )
          (VP (VBD fell) (NP (CD 1\/2) (-LRB- -LRB-) (NN point) (-RRB- -RRB-) )
            (ADVP|PRT (RP off) ) (PP=2 (IN at) (NP (-NONE- *T*-3) ) )))))
    (. .) ))

( (NP (NP (DT the) (NN end) ) (SBAR (-NONE- *ICH*) )))
"""


def tree(doc) -> str:
    words, tags = [t.text for t in doc], [t.tag_ for t in doc]
    return flat(build_tree(words, tags, constituents(doc)))


def test_traces_and_functions_are_stripped_and_unary_repeats_joined(write, vocab):
    repairs = Counter()
    first, second = read_docs(write(TRACES), vocab, repairs)
    assert tree(first) == (
        "(S (NP (NNP May)) (VP (VBD said) (, ,) (SBAR (S (VP (VBD fell) (NP (CD 1/2) "
        "(-LRB- -LRB-) (NN point) (-RRB- -RRB-)) (ADVP (RP off)) (PP (IN at)))))) (. .))"
    )
    assert [t.text for t in first][5:8] == ["(", "point", ")"]
    # NP over NP, where the SBAR is gone, is one constituent.
    assert constituents(second) == [(0, 2, "NP")]
    assert first.user_data["document"] == "wsj_0203"
    assert not first.has_annotation("ENT_IOB")
    assert repairs == {}


def test_a_tree_of_traces_alone_is_left_out_and_counted(write, vocab):
    repairs = Counter()
    path = write("( (S (NP (-NONE- *)) (VP (-NONE- *?*))))\n( (S (UH Yes)))\n")
    assert [doc.text for doc in read_docs(path, vocab, repairs)] == ["Yes "]
    assert repairs == {"tree(s) without words left out": 1}


@pytest.mark.parametrize(
    ("label", "category"),
    [
        ("NP-SBJ-1", "NP"), ("PP=2", "PP"), ("NP", "NP"), ("ADVP|PRT", "ADVP"),
        ("-LRB-", "-LRB-"), ("PRP$", "PRP$"), ("WHNP-1=2", "WHNP"),
    ],
)  # fmt: skip
def test_labels_are_bare(label, category):
    assert bare(label) == category


def test_words_are_unescaped_also_inside():
    escaped = ["-LRB-", "-RCB-", r"1\/2", r"\*\*", "-LRB-02-RRB-", "--", "post-war", "-"]
    assert [unescape(word) for word in escaped] == ["(", "}", "1/2", "**", "(02)", "--",
                                                    "post-war", "-"]  # fmt: skip


@settings(max_examples=60)
@given(bracketings(), st.sampled_from([" ", "\n", "\n   "]))
def test_reading_by_brackets_equals_reading_by_nltk(text, blank):
    lines = enumerate(f"( {text})".replace(" ", blank).split("\n"), 1)
    ((_, parsed),) = read_trees("t", lines, Counter())
    assert parsed == parse_tree(f"( {text})")
    assert flat(build_tree(*parsed)) == text


@st.composite
def annotated(draw, depth=0):
    """(a tree with traces and functions, the same without), both as nested lists."""
    full, clean = [draw(st.sampled_from(["NP-SBJ", "NP=1", "VP", "S-TPC-2"]))], []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["word", "trace", "node"] if depth < 3 else ["word", "trace"]))
        if kind == "word":
            full.append("(NN dog)")
            clean.append("(NN dog)")
        elif kind == "trace":
            full.append("(-NONE- *)")
        else:
            inner, stripped = draw(annotated(depth + 1))
            full.append(inner)
            clean.append(stripped)
    clean = [child for child in clean if child]
    label = full[0].split("-")[0].split("=")[0]
    if not clean:
        stripped = ""
    elif len(clean) == 1 and clean[0].startswith(f"({label} "):
        stripped = clean[0]
    else:
        stripped = f"({label} {' '.join(clean)})"
    return f"({' '.join(full)})", stripped


@settings(max_examples=60)
@given(annotated())
def test_cleaning_equals_cleaning_the_tree_from_the_bottom(pair):
    full, stripped = pair
    trees = list(read_trees("t", [(1, f"( {full})")], Counter(), style=PENN))
    assert [flat(build_tree(*parsed)) for _, parsed in trees] == ([stripped] if stripped else [])


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        ("# sent_id = 1\n  # text = a\n", "comment line(s) left out"),
        ("%% one\n\n%% two\n", "comment line(s) left out"),
        *((prefix, "number(s) and names before trees left out") for prefix in PREFIXES),
    ],
)
@pytest.mark.parametrize("one_a_line", [True, False])
def test_comments_and_what_stands_before_a_tree_are_left_out(before, kind, one_a_line):
    text = f"{before}(S (# #) (NN a))\n {before}(S:1 (NN b))"
    repairs = Counter()
    found = read_trees("t", enumerate(text.split("\n"), 1), repairs, one_a_line=one_a_line)
    assert [tree.words for _, tree in found] == [["#", "a"], ["b"]]
    assert repairs == {kind: 4 if "comment" in kind else 2}


@pytest.mark.parametrize("before", ["a ", "NP ", "1 a ", "a)", "1) "])
def test_other_text_before_a_tree_is_an_error(before):
    with pytest.raises(InputError, match="t:1: there is"):
        list(read_trees("t", [(1, f"{before}(S (NN a))")], Counter()))


BROKEN = [
    ("( (S (NN a))\n( (S (NN b)))\n", 2, "no label, in the tree of line 1"),
    ("( (S (NN a)))\n\n( (S\n (NN b))\n", 3, "the tree that begins here is not closed"),
    ("( (S (NN a))))\n", 1, "there is one closing bracket too many"),
    ("( (S (NN a)\n (NP )))\n", 2, "(NP) is not a leaf, which has a tag and a word"),
    ("( (S (NN a)\n (NP )))\n", 2, "in the tree of line 1"),
    ("( (NN (Kera)))\n", 1, "(Kera) is not a leaf"),
    ("( (NN a) (-RRB- \\)))\n", 1, "write -LRB- and -RRB- for brackets that are words"),
    ("( (S dog (NN a)))\n", 1, "the word 'dog' has no part of speech"),
    ("( (S (NN a) dog))\n", 1, "there is 'dog' where a bracket should be"),
    ("( (S (NN two words)))\n", 1, "two words, 'two' and 'words'"),
    ("EU NNP I-NP I-ORG\n", 1, "there is 'EU' where a bracket should be"),
    ("#begin document (nw/wsj/00/wsj_0001); part 000\n", 1, "no trees in the file"),
    ("\n", 1, "no trees"),
]


@pytest.mark.parametrize(("text", "line", "reason"), BROKEN)
def test_broken_trees_are_named_by_file_and_line(write, vocab, text, line, reason):
    path = write(text)
    with input_error_at(path, line, reason):
        list(read_docs(path, vocab))


@given(st.text("()ab- \n\\", max_size=30))
@example("(())")
def test_any_text_gives_trees_or_an_input_error(text):
    lines = list(enumerate(text.split("\n"), 1))
    for one_a_line in (False, True):
        repairs = Counter()
        try:
            trees = list(read_trees("t", lines, repairs, one_a_line=one_a_line))
        except InputError as error:
            assert str(error).startswith("t:")
        else:
            assert trees or repairs["tree(s) without words left out"]  # "(())" is one
            assert all(parsed.words for _, parsed in trees)


def test_depth_has_no_limit(write, vocab):
    text = "( " + "(S " * 100_000 + "(NN a)" + ")" * 100_000 + ")\n"
    (doc,) = read_docs(write(text), vocab)
    assert constituents(doc) == [(0, 1, "S")]


# Sections and files
@pytest.mark.parametrize(
    ("text", "sections"),
    [("02-21", range(2, 22)), ("22", [22]), ("0-1,24", [0, 1, 24]), (" 2 - 3 , 5", [2, 3, 5])],
)
def test_sections_are_numbers_and_ranges(text, sections):
    assert parse_sections(text) == frozenset(sections)


@pytest.mark.parametrize("text", ["", "x", "21-02", "25", "2-", "2--3", "1,,2", "002"])
def test_other_sections_are_refused(text):
    with pytest.raises(InputError, match="--sections"):
        parse_sections(text)


def test_a_section_is_told_by_the_number_of_the_document():
    assert section_of("wsj_0203") == 2
    assert section_of("nw/wsj/23/wsj_2300") == 23
    assert section_of("nw/xinhua/02/chtb_0203") is None
    assert section_of("wsj_02031") is None


def test_sections_choose_files_of_folders_and_archives(write, tmp_path, vocab):
    folder = tmp_path / "mrg"
    for name in ("wsj/02/wsj_0203", "wsj/01/wsj_0101", "wsj/21/wsj_2100", "brown/ca01"):
        write(f"( (S (NN {name[-4:]})))\n", f"mrg/{name}.mrg")
    write("( (S (NN no)))\n", "mrg/wsj/02/wsj_0204.prd")
    path = tmp_path / "treebank.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.rglob("*.*"):
            archive.write(file, file.relative_to(folder))
    for source in (folder, path):
        chosen = read_docs(source, vocab, numbers=parse_sections("02-21"))
        assert [doc[0].text for doc in chosen] == ["0203", "2100"]
        assert sorted(doc[0].text for doc in read_docs(source, vocab)) == [
            "0101", "0203", "2100", "ca01",
        ]  # fmt: skip
        with pytest.raises(InputError, match=r"no \.mrg files of those sections in it"):
            list(read_docs(source, vocab, numbers=[5]))


def test_a_single_file_of_another_section_is_refused(write, vocab):
    wsj, other = (write("( (S (UH Yes)) )\n", name) for name in ("wsj_0201.mrg", "a.mrg"))
    assert len(list(read_docs(wsj, vocab, numbers={2}))) == 1
    for path in (wsj, other):
        with pytest.raises(InputError, match="by its name it is not of those sections"):
            read_docs(path, vocab, numbers={23})
    with pytest.raises(InputError, match="cannot be read"):
        list(read_docs(wsj.with_name("none"), vocab, numbers={23}))


def test_a_sentence_without_a_parse_is_left_out_and_counted(write, vocab):
    repairs = Counter()
    path = write("(S (UH Yes))\n(())\n( () )\n(S (UH No))\n", "a.txt")
    assert [doc.text for doc in read_bracket_docs(path, vocab, repairs)] == ["Yes ", "No "]
    assert repairs == {"tree(s) without words left out": 2}
    for text in ("(() (S (UH Yes)))", "(()())", "(() Yes)"):
        with pytest.raises(InputError, match="is empty"):
            list(read_bracket_docs(write(f"{text}\n", "b.txt"), vocab))


def test_an_error_in_an_archive_names_archive_file_and_line(tmp_path, vocab):
    path = tmp_path / "treebank.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("combined/wsj_0001.mrg", "( (S (NN a)))\n( (S (NN b))\n")
    with pytest.raises(InputError, match=r"treebank\.zip/combined/wsj_0001\.mrg:2: "):
        list(read_docs(path, vocab))


# A tree a line
def test_brackets_keep_labels_and_repeats_as_they_stand(write, vocab):
    path = write("(TOP (S (NP-SBJ (NP (PRP I))) (VP (VBD came))))\n\n(UH Yes)\n")
    first, second = read_bracket_docs(path, vocab)
    assert constituents(first) == [(0, 2, "S"), (0, 1, "NP-SBJ"), (0, 1, "NP"), (1, 2, "VP")]
    assert [(t.text, t.tag_) for t in second] == [("Yes", "UH")]
    assert constituents(second) == []


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (TRACES, 2, "the tree is not closed on its line"),
        ("(S (NN a))\n(S (NN a)) (S (NN b))\n", 2, "more than one tree on the line"),
        ("(S (NN a))\n(S (NP (-NONE- *)))\n", 2, "'*' is an empty element"),
        ("(S (NN a)))\n", 1, "there is one closing bracket too many"),
    ],
)
def test_lines_that_are_not_one_tree_are_named(write, vocab, text, line, reason):
    path = write(text)
    with input_error_at(path, line, reason):
        list(read_bracket_docs(path, vocab))


def test_counts_of_the_sample_equal_the_published_ones(corpora, vocab):
    repairs, counts, documents, tags = Counter(), Counter(), set(), set()
    for doc in read_docs(corpora / "ptb-sample" / "treebank.zip", vocab, repairs):
        counts.update(trees=1, tokens=len(doc))
        documents.add(doc.user_data["document"])
        tags.update(token.tag_ for token in doc)
        labels = {span.label_ for span in doc.spans["constituents"]}
        assert all(label.isalpha() for label in labels)
    # 100,676 leaves without the 6,592 that are empty
    assert counts == {"trees": 3914, "tokens": 94084}
    assert len(documents) == 199
    assert len(tags) == 45
    assert repairs == {}


@settings(max_examples=60)
@given(bracketings())
def test_a_tree_survives_the_way_through_spans(text):
    assert flat(build_tree(*parse_tree(text))) == text


def test_constituents_are_in_preorder_with_unary_chains_from_outside_in():
    text = "(TOP (S (NP (NP (PRP We))) (VP (VBD saw) (NP (DT a) (NN dog))) (. .)))"
    parsed = parse_tree(text)
    assert parsed.words == ["We", "saw", "a", "dog", "."]
    assert parsed.tags == ["PRP", "VBD", "DT", "NN", "."]
    assert parsed.constituents == [
        (0, 5, "S"), (0, 1, "NP"), (0, 1, "NP"), (1, 4, "VP"), (2, 4, "NP"),
    ]  # fmt: skip


def test_a_root_without_label_is_no_constituent():
    assert parse_tree("( (S (NN dog)))").constituents == [(0, 1, "S")]


def test_a_bare_word_under_the_root_has_no_constituents():
    parsed = parse_tree("(TOP (UH Yes))")
    assert parsed.constituents == []
    assert flat(build_tree(*parsed)) == "(TOP (UH Yes))"


def test_several_trees_side_by_side_stand_under_top():
    tree = build_tree(["a", "b"], ["X", "Y"], [(0, 1, "NP"), (1, 2, "VP")])
    assert flat(tree) == "(TOP (NP (X a)) (VP (Y b)))"


def test_brackets_are_words_outside_and_escaped_inside_trees():
    parsed = parse_tree("(PRN (-LRB- -LRB-) (NN x) (-RRB- -RRB-))")
    assert parsed.words == ["(", "x", ")"]
    assert "(-LRB- -LRB-)" in flat(build_tree(*parsed))


@pytest.mark.parametrize("text", ["(S (NP a)", "(S dog (NN cat))", "(S )", "", "(S (NP ))"])
def test_broken_trees_are_refused(text):
    with pytest.raises(ValueError):
        parse_tree(text)


@pytest.mark.parametrize(
    "constituents",
    [
        [(0, 2, "A"), (1, 3, "B")],
        [(1, 2, "A"), (0, 3, "B")],
        [(1, 1, "A")],
        [(0, 4, "A")],
        [(0, 1, "A"), (0, 2, "B")],
    ],
)
def test_constituents_that_form_no_tree_are_refused(constituents):
    with pytest.raises(ValueError, match="crosses another or is out of order"):
        build_tree(["a", "b", "c"], ["X"] * 3, constituents)


def test_brackets_inside_tags_survive():
    tree = build_tree(["(", "x"], ["$(", "-LRB-"], [(0, 2, "S")])
    ((_, found),) = read_trees("a", [(1, str(tree).replace("\n", " "))], Counter())
    assert (found.words, found.tags) == (["(", "x"], ["$(", "-LRB-"])


def test_only_parentheses_are_escaped_inside_words():
    words = ["ra}iys", "[1]", "{", "f(x)"]
    leaves = build_tree(words, ["X"] * 4, [(0, 4, "S")]).leaves()
    assert leaves == ["ra}iys", "[1]", "-LCB-", "f-LRB-x-RRB-"]
