"""CoNLL-U: words, spaces, documents and entities of any depth."""

from collections import Counter

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_psa.corpora.conllu import ACROSS, BLANKED, EMPTY, UNWRITTEN, read_docs
from spacy_psa.corpora.marked_text import BROKEN, Misfits
from spacy_psa.errors import InputError
from spacy_psa.pipeline.nested.gold import read_gold
from spacy_psa.pipeline.nested.places import places
from tests.helpers.corpora import conllu

FILE = "in.conllu"
NESTED = conllu(
    ("The", "DT", "Entity=(1-person-new-sgl"),
    ("mayor", "NN"),
    ("of", "IN"),
    ("New", "NNP", "Entity=(2-place-giv(3-abstract-giv)"),
    ("York", "NNP", "MSeg=York|Entity=2)1)|SpaceAfter=No"),
    (".", "."),
    document="d1",
)


def spans(doc):
    return [(span.text, span.label_) for span in doc.spans["sc"]]


def test_entities_are_read_outer_ones_first(write, vocab):
    (doc,) = read_docs(write(NESTED), vocab)
    assert doc.text == "The mayor of New York. "
    assert [token.tag_ for token in doc] == ["DT", "NN", "IN", "NNP", "NNP", "."]
    whole = "The mayor of New York"
    assert spans(doc) == [(whole, "person"), ("New York", "place"), ("New", "abstract")]
    assert [(ent.text, ent.label_) for ent in doc.ents] == [(whole, "person")]
    assert doc.has_annotation("ENT_IOB") and doc.user_data["document"] == "d1"


def test_a_new_document_without_an_id_is_not_the_one_before(write, vocab):
    row = ("Ada", "NNP", "Entity=(1-person-new)")
    text = conllu(row, document="a") + "# newdoc\n" + conllu(row)
    names = [doc.user_data.get("document") for doc in read_docs(write(text), vocab)]
    assert names == ["a", None]


def test_a_file_without_entities_marks_none(write, vocab):
    text = NESTED.split("\n", 2)[2].replace("Entity", "Identity")
    (doc,) = read_docs(write(text), vocab)
    assert "sc" not in doc.spans and not doc.has_annotation("ENT_IOB")
    assert "document" not in doc.user_data


def test_the_header_names_the_place_of_the_label(write, vocab):
    text = conllu(("Ada", "NNP", "Entity=(e1--person)"), fields="eid-head-etype")
    (doc,) = read_docs(write(text), vocab)
    assert spans(doc) == [("Ada", "person")]


def test_words_of_several_syntactic_ones_have_no_space_inside(write, vocab):
    rows = conllu(("do", "VBP"), ("n't", "RB"), ("go", "VB"), ("nowhere", "RB"))
    first = "1\tdo"
    text = rows.replace(first, "1-2\tdon't" + "\t_" * 8 + f"\n{first}")
    text = text.replace("4\tnow", "3.1\tto" + "\t_" * 8 + "\n4\tnow")
    (doc,) = read_docs(write(text), vocab)
    assert doc.text == "don't go nowhere "


def test_entities_of_empty_nodes_have_the_words_next_to_them_or_are_counted(write, vocab):
    """As CorefUD has them in languages that leave pronouns out."""
    text = conllu(("went", "VBD", "Entity=(2-place"), ("to", "IN"), ("Rome", "NNP", "Entity=3)2)"))
    for number, misc in (("0.1", "Entity=(1-person)"), ("1.1", "Entity=(3-abstract")):
        after = f"\n{int(number[0]) + 1}\t"
        text = text.replace(after, f"\n{number}" + "\t_" * 8 + f"\t{misc}{after}")
    repairs = Counter()
    (doc,) = read_docs(write(text), vocab, repairs)
    assert spans(doc) == [("went to Rome", "place"), ("to Rome", "abstract")]
    assert (
        repairs == {EMPTY: 2, f"mark(s) left out: {UNWRITTEN}": 1} and doc.ents[0].label_ == "place"
    )


@pytest.mark.parametrize(
    ("misc", "kind"),
    [
        (("Entity=(3-event(1[1/2]-person)", "Entity=(4-time)", "Entity=(1[2/2]-person)3)"), BROKEN),
        (("Entity=(3-event", "Entity=(4-time)", "Entity=3)(1-person"), ACROSS),
    ],
)
def test_what_is_no_span_of_a_sentence_is_missing_and_counted(write, vocab, misc, kind):
    text = conllu(*zip(("New", "to", "York"), ("NNP", "IN", "NNP"), misc))
    text += conllu(("Ada", "NNP", "Entity=1)" if kind == ACROSS else "_"), header=False)
    repairs = Counter()
    first, second = read_docs(write(text), vocab, repairs)
    assert repairs == {f"mark(s) left out: {kind}": 1}
    misfits, path = Misfits(), write(text)
    list(read_docs(path, vocab, misfits=misfits))
    assert misfits.labels["person"] == {kind: 1} and misfits.lines[0].startswith(f"{path}:2: ")
    assert spans(first) == [("New to York", "event"), ("to", "time")]
    missing = [span.text for span in first.spans["missing_spans"]]
    assert missing == (["New", "York"] if kind == BROKEN else ["York"])
    assert not second.spans["sc"] and second[0].ent_iob_ == ("O" if kind == BROKEN else "")
    assert [span.text for span in second.spans.get("missing_spans", ())] == (
        [] if kind == BROKEN else ["Ada"]
    )


def test_the_rest_of_a_sentence_with_a_discontinuous_entity_is_learned_from(write, vocab):
    """Spans that touch its words are summed out, and no others."""
    misc = ("Entity=(1-place)", "Entity=(2[1/2]-disease)", "_", "Entity=(2[2/2]-disease)")
    (doc,) = read_docs(write(conllu(*zip("abcd", "XXXX", misc))), vocab)
    pipe = spacy.blank("en").add_pipe("crf_spans", config={"missing_spans_key": "missing_spans"})
    for label in ("disease", "place"):
        pipe.add_label(label)
    example = Example(Doc(pipe.vocab, words=[*"abcd"]), doc)
    gold = read_gold(pipe, [example])
    assert gold.trees == [[(0, 1, 2)]]
    starts, ends = places(4, None)
    (mask,) = gold.masks
    known = {(s, e) for s, e, own in zip(starts, ends, mask) if not own.any()}
    assert known == {(0, 1), (2, 3)} and mask.any(1).tolist() == mask.all(1).tolist()


def test_sentences_of_underscores_are_left_out_and_counted(write, vocab):
    repairs = Counter()
    text = NESTED + conllu(("___", "NN"), ("_", "NN"), header=False)
    assert len(list(read_docs(write(text), vocab, repairs))) == 1
    assert repairs == {BLANKED: 1}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("\t_\t_\t_", "\t_", ":4: 8 columns instead of 10"),
        ("2\tmayor", "3\tmayor", ":4: the word number is 3 instead of 2"),
        ("2\tmayor", "b\tmayor", ":4: 'b' is not a number"),
        ("Entity=2)1)", "Entity=2)7)", ":7: the entity '7' ends, but has not begun"),
        ("(2-place-giv", "(2", ":6: the entity '2' has no label"),
        ("# global.Entity", "# local.Entity", ":3: there are entities, but no line"),
        ("eid-etype", "eid-type", ":2: there is no field etype"),
    ],
)
def test_a_bad_line_is_named(write, vocab, old, new, reason):
    with pytest.raises(InputError, match=r"in\.conllu:\d: ") as caught:
        list(read_docs(write(NESTED.replace(old, new, 1)), vocab))
    assert reason in str(caught.value)


def test_sentences_with_bad_lines_are_left_out_and_named_if_asked_for(write, vocab):
    """Their open entities are forgotten."""
    path = write(NESTED.replace("2\tmayor", "b\tmayor") + NESTED)
    faults, repairs = [], Counter()
    (doc,) = read_docs(path, vocab, repairs, faults)
    assert spans(doc)[0] == ("The mayor of New York", "person") and repairs == {}
    assert faults == [
        f"{path}:4: 'b' is not a number of a word, or the word is blank; correct the line"
    ]
    with pytest.raises(InputError, match=r"in\.conllu:4: "):
        list(read_docs(write(NESTED.replace("2\tmayor", "b\tmayor")), vocab, repairs, faults))


def test_a_file_without_sentences_is_an_error(write, vocab):
    with pytest.raises(InputError, match="no sentences"):
        list(read_docs(write("# text\n"), vocab))
