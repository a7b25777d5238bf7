"""Trees after other components and calls have changed the doc, and several parsers on one doc."""

import itertools
import types
import warnings

import pytest
import spacy
from spacy.tokens import Doc, Span, Token

from spacy_psa.pipeline.parser import extensions
from spacy_psa.pipeline.parser.extensions import (
    labels,
    parse_trees,
    register_extensions,
    remove_extensions,
)
from tests.helpers.parsers import make_parser, train_parser
from tests.helpers.trees import BRACKETS, constituents, flat, tree_doc


@pytest.fixture
def doc():
    register_extensions()
    return tree_doc(spacy.blank("en").vocab, *BRACKETS[:2])


# Tokens


def test_trees_follow_when_tokens_are_merged(doc):
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[3:5])  # "in Bath", the whole PP
    with pytest.warns(UserWarning, match="left out"):  # the NP over "Bath"
        first, second = [s._.parse_string for s in doc.sents]
    assert first == "(S (NP (NNP Ada)) (VP (VBD met) (NP (NNP Evans)) (PP (IN in_Bath))) (. .))"
    assert second == BRACKETS[1]
    assert [flat(tree) for tree in doc._.parse_trees] == [first, second]
    assert doc[3]._.labels == ("PP",)
    assert {span.text for span in doc.spans["constituents"]} >= {"in Bath", "Reading books"}


def test_trees_follow_when_a_token_is_split(doc):
    with doc.retokenize() as retokenizer:
        heads = [(doc[0], 1), doc[1]]
        retokenizer.split(doc[0], ["A", "da"], heads=heads, attrs={"TAG": ["X", "NNP"]})
    assert doc[:7]._.parse_string == BRACKETS[0].replace("(NNP Ada)", "(X A) (NNP da)")
    assert next(iter(list(doc.sents)[1]._.children)).text == "Reading books"


def test_constituents_inside_a_merged_token_are_left_out_with_one_warning(doc):
    doc.spans["constituents"].attrs["scores"] = [i / 100 for i in range(len(constituents(doc)))]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])  # "met Evans": the VP begins with it, the NP ends with it
    with pytest.warns(UserWarning, match=r"1 span\(s\) .* begin or end inside a token"):
        assert doc[1:4]._.labels == ("VP",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert doc[:5]._.parse_string == (
            "(S (NP (NNP Ada)) (VP (VBD met_Evans) (PP (IN in) (NP (NNP Bath)))) (. .))"
        )
    assert doc[2:4]._.constituent_confidence == 0.04  # of the PP, as before


@pytest.mark.parametrize("place", range(11))
def test_every_merge_leaves_trees_of_the_tokens(doc, place):
    texts = {span.text for span in doc.spans["constituents"]}
    if doc[place : place + 2].sent.end < place + 2:
        return
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[place : place + 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sentence in doc.sents:
            nodes = [node for node in sentence._.constituents if len(node) > 1]
            assert all(node.text in texts for node in nodes)
    for before, after in itertools.pairwise(constituents(doc)):
        assert (before[0], -before[1]) <= (after[0], -after[1])
    assert {span.text for span in doc.spans["constituents"]} <= texts


def test_constituents_in_any_order_are_a_tree(doc):
    before = [flat(tree) for tree in doc._.parse_trees]
    spans = list(doc.spans["constituents"])
    doc.spans["constituents"] = sorted(spans, key=lambda span: span.end - span.start, reverse=True)
    assert [flat(tree) for tree in doc._.parse_trees] == before


# Docs joined and cut


def test_joined_docs_keep_trees_and_confidences(parsing):
    docs = list(parsing.pipe(["Ada met Evans in Bath .", "Reading books helps Ada ."]))
    expected = [span._.constituent_confidence for d in docs for span in d.spans["constituents"]]
    joined = Doc.from_docs(docs)
    found = [span._.constituent_confidence for span in joined.spans["constituents"]]
    assert found == expected and min(found) > 0.4
    # Without boundaries, the two sentences are two constituents of one.
    joined[6].is_sent_start = True
    assert joined._.parse_trees == [tree for doc in docs for tree in doc._.parse_trees]


def test_span_as_doc_has_no_trees_and_says_why(doc):
    cut = doc[0:6].as_doc()
    with pytest.raises(ValueError, match=r"no trees in .*Span\.as_doc leaves span groups out"):
        _ = cut._.parse_trees


def test_a_doc_of_a_span_can_be_parsed_again(parsing):
    docs = list(parsing.pipe(["Ada met Evans in Bath .", "Reading books helps Ada ."]))
    cut = Doc.from_docs(docs)[6:11].as_doc()
    parsing.get_pipe("parser")(cut)
    assert cut._.parse_trees == docs[1]._.parse_trees


def test_joined_docs_without_trees_keep_those_of_the_others(parsing):
    parsed = parsing("Ada met Evans in Bath .")
    joined = Doc.from_docs([parsing.make_doc("Yes ."), parsed])
    joined[2].is_sent_start = True
    assert joined[2:]._.parse_string == parsed[:]._.parse_string
    assert joined[0:2]._.labels == ()


def test_merged_tokens_can_be_parsed_again(parsing):
    parsing.get_pipe("parser").overwrite = False
    doc = parsing("Ada met Evans in Bath .")
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    parsing.get_pipe("parser")(doc)  # its own trees are no evidence
    (tree,) = doc._.parse_trees
    assert tree.leaves() == ["Ada_met", "Evans", "in", "Bath", "."]


def test_a_boundary_that_is_moved_inside_a_tree_is_named_and_can_be_moved_back(parsing):
    doc = parsing(Doc(parsing.vocab, words=["Ada", "met", "Evans", "in", "Bath", "."]))
    before = doc._.parse_trees
    doc[3].is_sent_start = True
    with pytest.raises(ValueError, match=r"crosses the .* of the sentence"):
        _ = doc._.parse_trees
    doc[3].is_sent_start = False
    assert doc._.parse_trees == before


def test_a_span_of_the_user_that_crosses_is_named(parsing):
    doc = parsing("Ada met Evans in Bath .")
    doc.spans["constituents"] = [*doc.spans["constituents"], Span(doc, 0, 2, "X")]
    with pytest.raises(ValueError, match=r"crosses the constituent"):
        _ = doc._.parse_trees


def test_sentence_boundaries_that_come_after_the_parser_are_one_clear_error(parsing):
    parsing.add_pipe("sentencizer")
    doc = parsing("Ada met Evans . Reading books helps Ada .")
    with pytest.raises(
        ValueError, match=r"crosses the .* of the sentence .*before the doc is parsed"
    ):
        _ = doc._.parse_trees
    parsing.remove_pipe("sentencizer")
    parsing.add_pipe("sentencizer", first=True)
    assert len(parsing("Ada met Evans . Reading books helps Ada .")._.parse_trees) == 2


def test_one_word_without_a_label_is_the_same_tree_everywhere():
    register_extensions()
    doc = Doc(spacy.blank("en").vocab, words=["Hello"])
    doc.spans["constituents"] = []
    (tree,) = doc._.parse_trees
    assert doc[:]._.parse_string == doc[0]._.parse_string == flat(tree) == "(TOP (X Hello))"


# Several parsers


def test_parsers_side_by_side_keep_their_trees_also_when_saved(tmp_path):
    nlp = make_parser()
    train_parser(nlp, 40)
    other = make_parser(spans_key="flat")
    references = [tree_doc(other.vocab, text, key="flat") for text in BRACKETS]
    for reference in references:
        reference.spans["flat"] = [Span(reference, 0, len(reference), "S")]
    examples = [
        spacy.training.Example(Doc(other.vocab, words=[t.text for t in r]), r) for r in references
    ]
    train_parser(other, 10, examples=examples)
    alone = [constituents(doc) for doc in nlp.pipe(["Ada met Evans in Bath .", "Yes"])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp.add_pipe("parser", source=other, name="flat_parser")
    docs = list(nlp.pipe(["Ada met Evans in Bath .", "Yes"]))
    assert [constituents(doc) for doc in docs] == alone
    assert [list(map(str, parse_trees(doc, "flat"))) for doc in docs] == [
        ["(S (X Ada) (X met) (X Evans) (X in) (X Bath) (X .))"],
        ["(S (X Yes))"],
    ]
    assert labels(docs[0][:], "flat") == ("S",)
    nlp.to_disk(tmp_path)
    (loaded,) = spacy.load(tmp_path).pipe(["Ada met Evans in Bath ."])
    assert constituents(loaded) == alone[0]
    assert parse_trees(loaded, "flat") == parse_trees(docs[0], "flat")


def test_parsers_with_one_span_group_are_a_warning_that_names_the_setting():
    nlp = make_parser()
    with pytest.warns(UserWarning, match=r"second: it replaces the trees of parser .*spans_key"):
        nlp.add_pipe("constituency_parser", name="second")


def test_a_parser_beside_spacys_own_takes_another_name(parsing):
    nlp = spacy.blank("en")
    nlp.add_pipe("parser")
    nlp.add_pipe("parser", source=parsing, name="constituency_parser")
    assert nlp.get_pipe("constituency_parser").name == "constituency_parser"
    nlp.remove_pipe("parser")
    assert nlp("Ada met Evans in Bath .")[0:6]._.parse_string.startswith("(S (NP")


# benepar


@pytest.fixture
def no_extensions():
    register_extensions()
    remove_extensions()
    yield
    for kind, name in itertools.product((Span, Token), (g.__name__ for g in extensions.GETTERS)):
        if kind.has_extension(name):
            kind.remove_extension(name)
    register_extensions()


def install_as_benepar_does():
    """Register what importing benepar registers, which is an error if a name is taken."""
    module = types.ModuleType("benepar.integrations.spacy_plugin")
    code = "def get_labels(span):\n    return ('THEIRS',)\n"
    exec(code, module.__dict__)
    for kind in (Span, Token):
        kind.set_extension("labels", getter=module.get_labels)


def test_benepar_first_answers_for_the_docs_that_are_not_ours(no_extensions, doc):
    remove_extensions()
    install_as_benepar_does()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_extensions()
        register_extensions()
    theirs = Doc(doc.vocab, words=["a"])
    assert doc[0:6]._.labels == ("S",)
    assert theirs[:]._.labels == ("THEIRS",) == theirs[0]._.labels
    remove_extensions()
    assert doc[0:6]._.labels == ("THEIRS",)


def test_benepar_can_be_imported_after_ours_are_removed(no_extensions, doc):
    register_extensions()
    with pytest.raises(ValueError, match="E090"):
        install_as_benepar_does()
    remove_extensions()
    install_as_benepar_does()
    register_extensions()
    assert doc[0:6]._.labels == ("S",)
