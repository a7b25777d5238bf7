from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.vocab import Vocab

from spacy_psa.corpora.any_columns import COMMENTS, find_columns, read_docs, resolve_schemes
from spacy_psa.corpora.columns import Columns
from spacy_psa.corpora.conll import read_docs as read_four_columns
from spacy_psa.corpora.marked_text import KEPT, Misfits
from spacy_psa.corpora.tag_schemes import TagForm
from spacy_psa.errors import InputError
from tests.helpers.corpora import input_error_at
from tests.helpers.pipelines import spans_of

FILE = "in.iob"
TWO = "Ada\tB-PER\nLovelace\tI-PER\nleft\tO\n\t\nRome\tB-LOC\n"


def read(path, vocab, **columns):
    chosen = Columns(**columns)
    repairs = Counter()
    return list(read_docs(path, vocab, chosen, resolve_schemes(path, chosen), repairs)), repairs


def told(docs):
    return [([t.text for t in doc], spans_of(doc.ents)) for doc in docs]


WANTED = [(["Ada", "Lovelace", "left"], [(0, 2, "PER")]), (["Rome"], [(0, 1, "LOC")])]


@pytest.mark.parametrize("blank", ["", "\t", "  ", " \t "])
@pytest.mark.parametrize("between", ["\t", " ", "   "])
def test_two_columns_are_read_whatever_separates_them(write, vocab, between, blank):
    text = TWO.replace("\n\t\n", "\n\n").replace("\t", between).replace("\n\n", f"\n{blank}\n")
    docs, _ = read(write(text), vocab, word=0, ner=-1)
    assert told(docs) == WANTED


def test_any_order_and_number_of_columns(write, vocab):
    text = "1 B-PER NNP Ada _ B-NP\n2 O VBD left _ B-VP\n"
    (doc,), _ = read(write(text), vocab, word=3, ner=1, tag=2, chunk=-1)
    assert [t.text for t in doc] == ["Ada", "left"] and [t.tag_ for t in doc] == ["NNP", "VBD"]
    assert spans_of(doc.ents) == [(0, 1, "PER")]
    assert spans_of(doc.spans["chunks"]) == [(0, 1, "NP"), (1, 2, "VP")]


def test_what_is_not_named_is_not_annotated(write, vocab):
    docs, _ = read(write("Ada NNP\nleft VBD\n"), vocab, tag=1)
    assert not docs[0].has_annotation("ENT_IOB") and "chunks" not in docs[0].spans


def test_words_of_a_file_with_tabs_may_hold_a_blank(write, vocab):
    docs, _ = read(write("New York\tB-LOC\nfell\tO\n"), vocab, ner=1)
    assert told(docs) == [(["New York", "fell"], [(0, 1, "LOC")])]


@pytest.mark.parametrize("word", ["\xa0", "\u3000x"])
def test_a_word_may_begin_with_another_blank_than_space_and_tab(write, vocab, word):
    docs, _ = read(write(f"{word} B-LOC\nfell O\n"), vocab, ner=1)
    assert told(docs) == [([word, "fell"], [(0, 1, "LOC")])]


def test_documents_are_numbered_by_docstart(write, vocab):
    text = "-DOCSTART- O\n\na O\n\nb B-X\n\n-DOCSTART- O\nc O\n"
    docs, _ = read(write(text), vocab, ner=1)
    assert [doc.user_data["document"] for doc in docs] == [1, 1, 2]
    assert [len(list(doc.sents)) for doc in docs] == [1, 1, 1]


def test_comments_before_a_sentence_are_left_out_and_counted(write, vocab):
    text = "# id 5239d808 domain=en\nAda _ _ B-PER\n\n# text = # 1\n# _ _ O\n1 _ _ O\n"
    docs, repairs = read(write(text), vocab, ner=-1)
    assert [doc.text.strip() for doc in docs] == ["Ada", "# 1"]
    assert repairs == {"comment line(s), left out": 2}


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("Ada I-PER\nleft O\n", "iob1"),
        ("Ada B-PER\nleft O\n", "iob2"),
        ("Ada S-PER\nleft O\n", "bioes"),
        ("Ada U-PER\nleft O\n", "bioes"),
    ],
)
def test_schemes_are_detected_for_entities_and_chunks(write, vocab, text, scheme):
    path = write(text)
    assert resolve_schemes(path, Columns(ner=1)) == (scheme, None, TagForm("B-TYPE"))
    assert resolve_schemes(path, Columns(chunk=1)) == (None, scheme, None)
    (doc,), _ = read(path, vocab, ner=1)
    assert spans_of(doc.ents) == [(0, 1, "PER")]


def test_a_line_with_other_columns_is_named(write, vocab):
    path = write("a O\n\nb c O\n")
    with input_error_at(path, 3, "3 column(s) instead of 2; line 1 has 2 columns"):
        read(path, vocab, ner=1)


@pytest.mark.parametrize("column", [2, -3])
def test_a_column_that_is_not_there_is_named(write, vocab, column):
    path = write("\na O\n")
    with input_error_at(path, 2, f"there is no column {column}"):
        read(path, vocab, ner=column)


def test_an_illegal_tag_is_named(write, vocab):
    path = write("a B-X\nb NN\n")
    with input_error_at(path, 2, "'NN' is not a tag such as O or B-TYPE"):
        read(path, vocab, ner=1)


def test_words_alone_and_files_without_sentences_are_refused(write, vocab):
    with pytest.raises(InputError, match="choose --ner, --tag or --chunk"):
        read(write("a\n"), vocab)
    with pytest.raises(InputError, match="no sentences"):
        read(write("\n \n-DOCSTART-\n"), vocab, ner=1)


def test_the_reader_of_four_columns_names_this_one(write, vocab):
    path = write("Ada B-PER\n")
    with input_error_at(path, 1, "spacy-psa convert columns"):
        list(read_four_columns(path, vocab, "iob2"))


TEXTS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="#\x7f"), min_size=1
)


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.tuples(TEXTS, st.booleans()), min_size=1), min_size=1), st.integers(0, 3)
)
def test_what_is_written_in_any_column_is_read_again(tmp_path_factory, sentences, at):
    path = tmp_path_factory.mktemp("columns") / FILE
    rows = [
        "\n".join(
            "\t".join(["_"] * at + [f"x{word.strip()}", "_", "B-A" if begins else "O"])
            for word, begins in sentence
        )
        for sentence in sentences
    ]
    path.write_text("\n\n".join(rows) + "\n", encoding="utf8", newline="")
    docs, _ = read(path, Vocab(), word=at, ner=-1)
    assert [[t.text[1:] for t in doc] for doc in docs] == [
        [word.strip() for word, _ in sentence] for sentence in sentences
    ]
    assert [len(doc.ents) for doc in docs] == [sum(b for _, b in s) for s in sentences]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("Ada\tB-PER\nleft\tO\n", Columns(0, 1)),
        ("O Ada\nB-PER left\n", Columns(1, 0)),
        ("Ada NNP B-NP B-PER\nleft VBD B-VP O\n", Columns(0, 3, 1, 2)),
        ("Ada NNP B-NP\nleft VBD B-VP\n", Columns(0, None, 1, 2)),
        ("Ada NNP\nleft VBD\n. .\n", Columns(0, None, 1)),
        ("Ada _ _ B-PER\nleft _ _ O\n", Columns(0, 3)),
        ("1 Ada Ada PROPN B-PER\n2 left leave VERB O\n", Columns(1, 4, 3)),
        ("Ada O\nleft O\n", Columns(0, 1)),
        ("Ada NNP O\nleft VBD O\n", Columns(0, 2, 1)),
    ],
)
def test_columns_are_found_by_their_values(write, text, columns):
    assert find_columns(write(text)) == columns


def test_a_text_without_tags_has_no_columns(write):
    with pytest.raises(InputError, match="no column of the 2 has tags"):
        find_columns(write("Ada left\nshe did\n"))


SENTENCE = "Ada {B}\nLovelace {I}\nmet O\nBob {B}\nin O\nthe O\ntown O\n. O\n\n"
GOOD = SENTENCE.format(B="B-PER", I="I-PER")
ENTS = [(0, 2, "PER"), (3, 4, "PER")]


@pytest.mark.parametrize(
    ("begin", "inside", "form", "label"),
    [
        ("B-PER", "I-PER", "B-TYPE", ""),
        ("B_PER", "I_PER", "B-TYPE", ""),
        ("PER-B", "PER-I", "TYPE-B", ""),
        ("PER_B", "PER_I", "TYPE-B", ""),
        ("S-PER", "S-PER", "B-TYPE", ""),
        ("B", "I", "B", "PER"),
        ("PER", "PER", "TYPE", ""),
    ],
)
def test_tags_of_every_form_are_found_and_read(write, vocab, begin, inside, form, label):
    path = write(SENTENCE.format(B=begin, I=inside))
    columns = find_columns(path)
    assert columns == Columns(0, 1)
    schemes = resolve_schemes(path, columns, label=label)
    assert schemes.form == TagForm(form, label)
    (doc,) = read_docs(path, vocab, columns, schemes)
    wanted = [(0, 1, "PER"), (1, 2, "PER"), (3, 4, "PER")] if begin == "S-PER" else ENTS
    assert spans_of(doc.ents) == wanted


def test_tags_without_a_type_need_a_label(write):
    path = write(SENTENCE.format(B="B", I="I"))
    with pytest.raises(InputError, match="tags without a type, such as B and I; name it with --la"):
        resolve_schemes(path, find_columns(path))


def test_parts_of_speech_are_not_types_of_entities(write):
    text = "Ada NNP O\nleft VBD O\n. . O\n" * 3
    assert find_columns(write(text)) == Columns(0, 2, 1)


@pytest.mark.parametrize("outside", ["o", "0"])
def test_o_and_0_are_misprints_of_the_letter(write, vocab, outside):
    path = write(GOOD.replace(" O\n", f" {outside}\n"))
    docs, repairs = read(path, vocab, ner=1)
    assert spans_of(docs[0].ents) == ENTS
    assert repairs == {"tag(s) o or 0, read as O": 5}


@pytest.mark.parametrize("odd", ["B", "PER", "X", "NER", "I-O", "B-"])
def test_the_majority_decides_a_column_and_odd_tags_are_named(write, vocab, odd):
    path = write(f"TOKEN {odd}\nand O\n\n" + GOOD * 5)
    columns = find_columns(path)
    assert columns == Columns(0, 1)
    schemes, misfits = resolve_schemes(path, columns), Misfits()
    first, *docs = read_docs(path, vocab, columns, schemes, misfits=misfits)
    assert [token.ent_iob_ for token in first] == ["", "O"]
    assert [spans_of(doc.ents) for doc in docs] == [ENTS] * 5
    kind = "is not a tag of the form of the others"
    assert misfits.lines == [f"{path}:1: 'TOKEN' ({odd}): {kind}"]
    assert misfits.labels[odd][kind] == 1 and misfits.labels["PER"][KEPT] == 10
    with input_error_at(path, 1, f"entity column: {odd!r} is not a tag"):
        list(read_docs(path, vocab, columns, schemes))


@pytest.mark.parametrize(
    ("tags", "states"),
    [
        ("B-PER X I-PER O", "???O"),
        ("B-PER I-PER X B-LOC", "???B"),
        ("X I-PER I-PER O", "???O"),
        ("B-PER O X B-LOC", "BO?B"),
        ("S-PER X S-LOC O", "B?BO"),
        ("B-PER E-PER X B-LOC E-LOC", "BI?BI"),
        ("B-PER X E-PER O", "???O"),
    ],
)
def test_an_entity_that_may_go_on_at_an_odd_tag_is_missing(write, vocab, tags, states):
    text = "".join(f"w {tag}\n" for tag in tags.split())
    path = write(f"{text}\n" + GOOD * 5)
    columns, misfits = Columns(0, 1), Misfits()
    doc = next(read_docs(path, vocab, columns, resolve_schemes(path, columns), misfits=misfits))
    assert "".join(token.ent_iob_ or "?" for token in doc) == states
    assert misfits.counts["is not a tag of the form of the others"] == 1


def test_all_sentences_decide_and_not_the_first(write):
    path = write("Ada NNP\n\n" + GOOD * 3)
    assert find_columns(path) == Columns(0, 1)


@pytest.mark.parametrize(("line", "reason"), [("\tO", "column 0 of 2 is blank"), (" O", "begins")])
def test_a_blank_word_is_named(write, vocab, line, reason):
    path = write(f"Ada\tB-PER\n{line}\n")
    with input_error_at(path, 2, reason):
        read(path, vocab, ner=1)


def test_a_comment_of_one_word_at_the_beginning_is_no_row_of_two_columns(write, vocab):
    docs, repairs = read(write("# train\nAda NNP B-PER\nleft VBD O\n"), vocab, tag=1, ner=2)
    assert told(docs) == [(["Ada", "left"], [(0, 1, "PER")])]
    assert repairs[COMMENTS] == 1
