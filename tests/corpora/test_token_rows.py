"""Rows of tokens of several formats: a malformed one is named, and what is left out counted."""

import json
from collections import Counter

import pytest

from spacy_psa.corpora.conllu import EMPTY
from spacy_psa.corpora.token_rows import BLANKS, NO_TOKENS, STACKED, read_tagged, rows_of
from spacy_psa.errors import InputError

FILE = "in.tsv"
CSV = "Sentence #,Word,POS,Tag\n1,Ada,NNP,B-PER\n,left,VBD,O\n2,Bob,NNP,B-PER\n"
CONLLU = "".join(f"{i}\t{w}\t_\tX\tY\t_\t0\t_\t_\tner=O\n" for i, w in enumerate("abc", 1)) + (
    "\n1\tBob\t_\tX\t_\t_\t0\t_\t_\tner=B-PER\n"
)
WEBANNO = """#FORMAT=WebAnno TSV 3.3
#T_SP=de.lexmorph.type.pos.POS|coarseValue|PosValue
#T_SP=webanno.custom.Event|kind
#T_SP=de.ner.type.NamedEntity|identifier|value
#T_RL=webanno.custom.Link|kind|BT_de.ner.type.NamedEntity


#Text=Ada left
1-1\t0-3\tAda\tX\tNNP\t_\t*\tPER\t_\t_\t
1-2\t4-8\tleft\tX\tVBD\tGO\t_\t_\t_\t_\t

#Text=Bob
2-1\t9-12\tBob\tX\tNNP\t_\t*\tPER\t_\t_\t
"""


def read(path, repairs=None):
    """The rows of each sentence, and the faults."""
    faults = []
    _, reader = rows_of(path)
    sentences = reader(path, Counter() if repairs is None else repairs, faults)
    return [[row.columns for row in sentence.rows] for sentence in sentences], faults


@pytest.mark.parametrize(
    ("text", "row", "malformed", "reason", "last"),
    [
        (CSV, ",left,VBD,O", "left,VBD,O", "3 column(s) instead of 4", ["Bob", "NNP", "B-PER"]),
        (CSV, "1,Ada,NNP,B-PER", "1,Ada,NNP", "3 column(s) instead", ["Bob", "NNP", "B-PER"]),
        (CSV, ",VBD,", ",,", "column 1 of 3 is blank", ["Bob", "NNP", "B-PER"]),
        (CONLLU, "2\tb\t_\tX\tY\t_\t0\t_\t_\t", "2\tb\t", "3 columns", ["Bob", "X", "B-PER"]),
        (CONLLU, "2\tb", "x\tb", "'x' is not a number of a word", ["Bob", "X", "B-PER"]),
        (CONLLU, "2\tb\t_\tX\tY", "2\tb\t_\tX\t", "1 of 3 is blank", ["Bob", "X", "B-PER"]),
        (
            WEBANNO,
            "\tVBD\tGO\t_\t_\t_\t_",
            "",
            "4 column(s) instead of 10",
            ["Bob", "NNP", "B-PER"],
        ),
        (WEBANNO, "\tX\tNNP\t_\t*\tPER\t_\t_", "", "3 column(s)", ["Bob", "NNP", "B-PER"]),
    ],
)
def test_a_malformed_row_is_a_fault_of_its_sentence(write, text, row, malformed, reason, last):
    """Also if it has as many columns as are read of the others."""
    path = write(text.replace(row, malformed, 1))
    sentences, (fault,) = read(path)
    lines = zip(path.read_text().splitlines(), text.splitlines())
    line = next(i for i, (new, old) in enumerate(lines, 1) if new != old)
    assert fault.startswith(f"{path}:{line}: ") and reason in fault
    assert sentences == [[last]]


def test_a_file_of_faults_is_an_error(write):
    with pytest.raises(InputError, match=r"in\.tsv:2: 2 column\(s\) instead of 3"):
        read(write("Sentence,Word,Tag\n1,Ada\n"))


def test_empty_nodes_are_left_out_and_counted(write):
    repairs = Counter()
    text = CONLLU.replace("3\tc", "2.1\tthat" + "\t_" * 8 + "\n3\tc")
    sentences, faults = read(write(text), repairs)
    assert [len(rows) for rows in sentences] == [3, 1] and not faults
    assert repairs == {EMPTY: 1}


def test_other_layers_of_webanno_are_named(write):
    repairs = Counter()
    sentences, faults = read(write(WEBANNO), repairs)
    assert sentences == [[["Ada", "NNP", "B-PER"], ["left", "VBD", "O"]], [["Bob", "NNP", "B-PER"]]]
    assert repairs["layer(s) left out (Event, Link)"] == 2 and not faults


def test_a_number_of_several_rows_continues_an_entity_of_webanno(write):
    text = WEBANNO.replace("\t*\tPER\t", "\t*[7]\tPER[7]\t").replace("GO\t_\t_", "GO\t*[7]\tPER[7]")
    (first, _), _ = read(write(text))
    assert [tag for *_, tag in first] == ["B-PER", "I-PER"]


def test_old_versions_of_webanno_read_the_first_of_stacked_entities(write):
    """A value without prefix is an entity of one token, and one without value is not known."""
    text = "# x.Named | kind\n#id=1\n#text=…\n" + "".join(
        f"1-{i}\tw{i}\t{value}\t\n"
        for i, value in enumerate(["B-A", "I-A|B-B", "O-_|I-B", "A", "A", "_", "B-x.Named_"], 1)
    )
    repairs = Counter()
    (rows,), faults = read(write(text), repairs)
    assert [tag for _, tag in rows] == ["B-A", "I-A", "O", "B-A", "B-A", "O", "?"] and not faults
    assert repairs[STACKED] == 2


def test_conllu_with_a_word_a_sentence_is_no_webanno(write):
    row = "1\tBob\tbob\tPROPN\t_\t_\t0\troot\t_\tner=B-PER\n"
    (rows,), _ = read(write(row))
    assert rows == [["Bob", "PROPN", "B-PER"]]


def tagged(write, *records, names=("O", "B-PER")):
    repairs, faults = Counter(), []
    path = write("".join(json.dumps(record) + "\n" for record in records), "in.jsonl")
    sentences = list(read_tagged(path, repairs, faults, names))
    return [[row.columns for row in sentence.rows] for sentence in sentences], repairs


@pytest.mark.parametrize("number", [-100, -1, 2])
def test_a_number_without_a_name_is_an_error(write, number):
    with pytest.raises(InputError, match=r"in\.jsonl:1: 'ner_tags' has numbers; name them"):
        tagged(write, {"tokens": ["Ada", "left"], "ner_tags": [1, number]})


def test_numbers_and_names_of_tags_may_be_mixed(write):
    sentences, _ = tagged(write, {"tokens": ["Ada", "left"], "ner_tags": [1, "O"]})
    assert sentences == [[["Ada", "B-PER"], ["left", "O"]]]


def test_records_without_tokens_and_blank_tokens_are_counted(write):
    empty, blank = {"tokens": [], "ner_tags": []}, {"tokens": ["Ada", " "], "ner_tags": [1, 0]}
    sentences, repairs = tagged(write, empty, blank)
    assert sentences == [[["Ada", "B-PER"], ["\u2423", "O"]]]
    assert repairs == {NO_TOKENS: 1, BLANKS: 1}


QUOTES = [("Ada", "B-PER"), ("said", "O"), ('"', "O"), ("Bob", "B-PER"), ('"', "O")]


def test_a_quotation_mark_between_tabs_is_a_word(write):
    text = "sentence\tword\ttag\n" + "".join(f"1\t{word}\t{tag}\n" for word, tag in QUOTES)
    assert read(write(text)) == ([[list(row) for row in QUOTES]], [])
    quoted = text.replace('\t"\t', '\t""""\t')
    assert read(write(quoted)) == ([[list(row) for row in QUOTES]], [])


def test_a_cell_over_several_lines_is_an_error(write):
    text = "sentence,word,tag\n" + "".join(f"1,{word},{tag}\n" for word, tag in QUOTES)
    with pytest.raises(InputError, match=r":4: a cell goes over several lines; check its quotes"):
        read(write(text, "in.csv"))
