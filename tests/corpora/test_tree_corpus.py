"""The reader of treebanks for training, with quotation marks and spaces of text."""

import gzip
import warnings
from itertools import islice

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.util import registry
from spacy.vocab import Vocab

from spacy_psa.corpora.docbin import write_docbin
from spacy_psa.corpora.quotes import STYLES, as_text, text_quotes, text_spaces, treebank_quotes
from spacy_psa.corpora.readers import make_doc
from spacy_psa.corpora.treebanks import read_docs
from spacy_psa.errors import InputError
from tests.helpers.corpora import ONTONOTES
from tests.helpers.trees import constituents, parse_tree

TREES = [
    "(S (NP (PRP We)) (VP (VBD saw) (NP (PRP it))) (. .))",
    "(S (VP (VB Go)) (. !))",
    "(TOP (UH Yes))",
]
NLP = spacy.blank("en")


def read(path, **settings):
    reader = registry.readers.get("spacy-psa.TreeCorpus.v1")(path=path, **settings)
    return list(reader(NLP))


def quietly(path, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read(path, **settings)


def gold(text):
    parsed = parse_tree(text)
    return make_doc(NLP.vocab, parsed.words, parsed.tags, constituents=parsed.constituents)


def joined(*texts):
    """One Doc of several sentences."""
    docs = [gold(text) for text in texts]
    doc = Doc.from_docs(docs, ensure_whitespace=False)
    first, found = 0, []
    for part in docs:
        found += [Span(doc, s + first, e + first, label) for s, e, label in constituents(part)]
        first += len(part)
    doc.spans["constituents"] = found
    return doc


def write(path, *docs):
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def test_docs_of_one_sentence_are_read_as_they_are(tmp_path):
    path = write(tmp_path / "a.spacy", *map(gold, TREES))
    examples = quietly(path)
    assert [constituents(eg.reference) for eg in examples] == [
        parse_tree(t).constituents for t in TREES
    ]
    assert len(quietly(path, limit=2)) == 2
    for eg in examples:
        assert [t.text for t in eg.predicted] == [t.text for t in eg.reference]
        assert not eg.predicted.spans and not eg.predicted.has_annotation("TAG")
        assert len(eg.predicted) == 1 or not eg.predicted.has_annotation("SENT_START")


def test_docs_of_several_sentences_are_split_with_their_trees_and_one_warning(tmp_path):
    many = joined(*TREES)
    many.user_data["document"] = "d1"
    path = write(tmp_path / "a.spacy", many, gold(TREES[0]), joined(*TREES[:2]))
    with pytest.warns(UserWarning, match="2 docs of several sentences split") as caught:
        examples = read(path)
    assert len(caught) == 1
    expected = [*TREES, TREES[0], *TREES[:2]]
    assert [constituents(eg.reference) for eg in examples] == [
        parse_tree(t).constituents for t in expected
    ]
    tags = [[t.tag_ for t in eg.reference] for eg in examples]
    assert tags == [parse_tree(t).tags for t in expected]
    assert [eg.reference.user_data.get("document") for eg in examples[:4]] == ["d1"] * 3 + [None]


def test_long_sentences_and_docs_without_trees_are_left_out_and_counted(tmp_path):
    path = write(tmp_path / "a.spacy", joined(*TREES), Doc(NLP.vocab, words=["no"]), gold(TREES[0]))
    told = "1 docs without trees left out, 2 sentences of more than 3 tokens left out"
    with pytest.warns(UserWarning, match=told):
        examples = read(path, max_length=3)
    assert [len(eg.reference) for eg in examples] == [2, 1]


def test_white_space_alone_is_no_sentence(tmp_path):
    blank = Doc(NLP.vocab, words=["\n"])
    blank.spans["constituents"] = []
    assert len(quietly(write(tmp_path / "a.spacy", blank, gold(TREES[1])))) == 1


def test_gold_tags_are_given_where_asked_for(tmp_path):
    (example,) = quietly(write(tmp_path / "a.spacy", gold(TREES[0])), gold_tags=True)
    assert [t.tag_ for t in example.predicted] == ["PRP", "VBD", "PRP", "."]


def test_bracket_lines_mrg_and_conll_files_are_read(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(TREES) + "\n")
    with gzip.open(tmp_path / "b.txt.gz", "wt") as stream:
        stream.write(TREES[0] + "\n")
    (tmp_path / "c.mrg").write_text("( (S \n (NP-SBJ (NNP Rome))\n (VP (VBD fell)) (. .) ))\n")
    (tmp_path / "d.v4_gold_conll").write_text(ONTONOTES)
    found = [[constituents(eg.reference) for eg in quietly(p)] for p in sorted(tmp_path.iterdir())]
    fell = [(0, 1, "NP"), (1, 2, "VP")]
    assert found == [
        [parse_tree(text).constituents for text in TREES],
        [parse_tree(TREES[0]).constituents],
        [[(0, 3, "S"), *fell]],
        [[(0, 2, "S"), *fell]],
    ]


def test_folder_of_docbins_is_read_in_order(tmp_path):
    for i, text in enumerate(TREES):
        write(tmp_path / f"{i}.spacy", gold(text))
    assert [eg.reference[0].text for eg in quietly(tmp_path)] == ["We", "Go", "Yes"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("(S (NN a))\n(S (NN b)\n", r"a.txt:2: .*not closed"),
        ("(S (NN a))\n(S (NN b)))\n", r"a.txt:2: .*too many"),
        ("(S (NP a b))\n", r"a.txt:1: .*two words"),
        ("the dog barks\n", r"a.txt:1: "),
    ],
)
def test_broken_brackets_are_an_error_with_file_and_line(tmp_path, content, reason):
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(InputError, match=reason):
        read(tmp_path / "a.txt")


def test_tree_that_does_not_match_its_tokens_is_an_error_with_file_and_line(tmp_path):
    (tmp_path / "a_gold_conll").write_text(ONTONOTES.replace("(VP*)))", "(VP*))))"))
    with pytest.raises(InputError, match="a_gold_conll:3: "):
        read(tmp_path / "a_gold_conll")


def test_constituent_across_sentences_is_an_error_that_names_it(tmp_path):
    doc = joined(*TREES[:2])
    doc.spans["constituents"] = [*doc.spans["constituents"], Span(doc, 3, 6, "NP")]
    path = write(tmp_path / "a.spacy", doc)
    with pytest.raises(InputError, match=r"a\.spacy: doc 1: the constituent 'NP' over '\. Go !'"):
        read(path)


@pytest.mark.parametrize("kind", ["none", "broken", "empty folder", "no trees"])
def test_what_cannot_be_read_is_one_error(tmp_path, kind):
    path = tmp_path / "a.spacy"
    if kind == "broken":
        path.write_bytes(b"spacy?")
    elif kind == "empty folder":
        path = tmp_path
    elif kind == "no trees":
        write(path, Doc(NLP.vocab, words=["no"]))
    reasons = {"none": "No such file", "broken": "broken", "empty folder": "no .spacy files"}
    with pytest.raises(InputError, match=reasons.get(kind, "no trees to learn from")):
        read(path)


def test_every_constituent_of_a_real_treebank_is_read(corpora, tmp_path):
    archive = corpora / "ptb-sample" / "treebank.zip"
    docs = list(islice(read_docs("ptb", archive, NLP.vocab), 500))
    write_docbin(docs, tmp_path / "a.spacy")
    assert len(docs) == 500
    assert [constituents(eg.reference) for eg in read(tmp_path / "a.spacy")] == [
        constituents(d) for d in docs
    ]


def test_a_folder_of_mrg_files_is_read(tmp_path):
    for section, tree in zip(("02", "03"), TREES[:2], strict=True):
        folder = tmp_path / "wsj" / section
        folder.mkdir(parents=True)
        (folder / f"wsj_{section}01.mrg").write_text(f"( {tree})\n")
    examples = quietly(tmp_path / "wsj")
    assert [constituents(eg.reference) for eg in examples] == [
        parse_tree(t).constituents for t in TREES[:2]
    ]


def test_files_of_the_penn_treebank_are_known_by_their_ending_alone(tmp_path):
    (tmp_path / "00").mkdir()
    (tmp_path / "00" / "WSJ_0001.MRG").write_text(f"( {TREES[0]} )\n", encoding="utf8")
    assert [constituents(eg.reference) for eg in read(tmp_path)] == [constituents(gold(TREES[0]))]
    docs = tmp_path / "docs"
    docs.mkdir()
    write(docs / "a.spacy", gold(TREES[1]))
    (docs / "notes.mrg.bak").write_text("notes", encoding="utf8")
    assert len(read(docs)) == 1


TREEBANK = ["``", "Do", "n't", "go", ",", "''", "she", "said", ":", "``", "Stay", ".", "''"]
TAGS = ["``", "VB", "RB", "VB", ",", "''", "PRP", "VBD", ":", "``", "VB", ".", "''"]


def with_spaces(words, spaces):
    return "".join(word + " " * space for word, space in zip(words, spaces, strict=True))


@pytest.mark.parametrize(
    ("style", "text"),
    [("straight", '"Don\'t go," she said: "Stay."'), ("curly", "“Don't go,” she said: “Stay.”")],
)
def test_a_sentence_of_the_treebank_reads_as_text(style, text):
    words = text_quotes(TREEBANK, TAGS, style)
    assert with_spaces(words, text_spaces(words, TAGS)) == text


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("known", [True, False])
def test_marks_of_text_are_those_of_the_treebank_again(style, known):
    words = text_quotes(TREEBANK, TAGS, style)
    spaces = text_spaces(words, TAGS) if known else None
    assert treebank_quotes(words, spaces) == TREEBANK


def test_a_high_mark_closes_after_a_low_one():
    words = ["„", "Ja", "“", ",", "“", "yes", "”", "„", "Nein", "”"]
    opening, closing = "``", "''"
    found = [opening, "Ja", closing, ",", opening, "yes", closing, opening, "Nein", closing]
    assert treebank_quotes(words) == found


@pytest.mark.parametrize("line", ["\n", "\n\n"])
def test_a_mark_after_a_line_break_opens(line):
    """A quotation that goes on in a new paragraph has no closing mark before it."""
    words = ['"', "Go", ".", line, '"', "Stop", ".", '"', line, "He"]
    opening, closing = "``", "''"
    found = [opening, "Go", ".", line, opening, "Stop", ".", closing, line, "He"]
    assert treebank_quotes(words, [False] * 10) == found


def test_a_high_single_mark_closes_after_a_low_one():
    words = ["‚", "Ja", "‘", ",", "‘", "yes", "’"]
    assert treebank_quotes(words) == ["‚", "Ja", "'", ",", "`", "yes", "’"]


def test_apostrophes_stay_and_closing_single_marks_do_not():
    words, tags = ["dogs", "'", "`", "yes", "'"], ["NNS", "POS", "``", "UH", "''"]
    assert text_quotes(words, tags, "curly") == ["dogs", "'", "‘", "yes", "’"]


@pytest.mark.parametrize(
    "text", ["It cost $5 (or less), 10%.", "I'm gonna say we cannot.", "Ada's dogs' bowls: two."]
)
def test_spaces_are_those_of_text(text):
    tokens = {
        "It cost $5 (or less), 10%.": "It cost $ 5 ( or less ) , 10 % .",
        "I'm gonna say we cannot.": "I 'm gon na say we can not .",
        "Ada's dogs' bowls: two.": "Ada 's dogs ' bowls : two .",
    }[text].split()
    assert with_spaces(tokens, text_spaces(tokens)) == text


def test_docs_keep_trees_tags_and_sentences():
    doc = Doc(Vocab(), words=TREEBANK, tags=TAGS, sent_starts=[True] + [False] * 12)
    doc.spans["constituents"] = [Span(doc, 0, 13, "S"), Span(doc, 1, 4, "VP")]
    (text,) = as_text([doc], "straight", spaces=True)
    assert text.text == '"Don\'t go," she said: "Stay."'
    assert [token.tag_ for token in text] == TAGS and len(list(text.sents)) == 1
    assert [(s.start, s.end, s.label_) for s in text.spans["constituents"]] == [
        (0, 13, "S"), (1, 4, "VP"),
    ]  # fmt: skip
    assert not doc.has_annotation("ENT_IOB") and not text.has_annotation("ENT_IOB")


def test_mixed_marks_take_turns_and_other_docs_stay_the_same_objects():
    docs = [Doc(Vocab(), words=TREEBANK, tags=TAGS) for _ in range(3)]
    bare = Doc(Vocab(), words=["Go", "!"])
    found = list(as_text([docs[0], bare, *docs[1:]], "mixed", spaces=False))
    assert [doc[0].text for doc in found] == ["``", "Go", '"', "“"]
    assert found[1] is bare and found[0] is docs[0]


def test_other_annotation_stays_where_marks_are_written_anew():
    words = ["``", "Go", "''"]
    about = {"tags": ["``", "VB", "''"], "pos": ["PUNCT", "VERB", "PUNCT"]}
    about |= {"lemmas": ["x", "go", "y"], "morphs": ["", "VerbForm=Inf", ""]}
    doc = Doc(NLP.vocab, words=words, heads=[1, 1, 1], deps=["punct", "ROOT", "punct"], **about)
    doc.spans["constituents"] = [Span(doc, 0, 3, "S", kb_id="Q1", span_id="s1")]
    doc.spans["constituents"].attrs["scores"] = [0.5]
    doc.cats = {"ORDER": 1.0}
    (text,) = as_text([doc], "straight", spaces=False)
    assert [token.text for token in text] == ['"', "Go", '"']
    for name in ("tag_", "pos_", "lemma_", "dep_", "is_sent_start"):
        assert [getattr(t, name) for t in text] == [getattr(t, name) for t in doc]
    assert [str(t.morph) for t in text] == about["morphs"]
    assert [t.head.i for t in text] == [1, 1, 1]
    (span,) = text.spans["constituents"]
    assert (span.label_, span.kb_id_, span.id_) == ("S", "Q1", "s1")
    assert text.spans["constituents"].attrs == {"scores": [0.5]} and text.cats == doc.cats
