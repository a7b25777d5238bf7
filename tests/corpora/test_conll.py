import gzip
from collections import Counter

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_psa.corpora.conll import read_conll2003, read_docs, resolve_scheme
from spacy_psa.corpora.docbin import write_docbin
from spacy_psa.errors import InputError
from tests.helpers.corpora import input_error_at
from tests.helpers.pipelines import spans_of

FILE = "in.conll"
IOB1 = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC
Leeds NNP B-NP I-ORG
Bath NNP I-NP B-ORG

-DOCSTART- -X- O O

Peter NNP I-NP I-PER
"""


def read(path, vocab, scheme="auto"):
    repairs = Counter()
    docs = list(read_docs(path, vocab, resolve_scheme(path, scheme), repairs))
    return docs, dict(repairs)


def test_every_column_arrives_and_survives_docbin(write, vocab, tmp_path):
    write_docbin(read_docs(write(IOB1), vocab, "iob1"), tmp_path / "out.spacy")
    first, second = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab)
    assert [t.text for t in first] == ["EU", "rejects", "German", "Leeds", "Bath"]
    assert [t.tag_ for t in first] == ["NNP", "VBZ", "JJ", "NNP", "NNP"]
    assert spans_of(first.ents) == [(0, 1, "ORG"), (2, 3, "MISC"), (3, 4, "ORG"), (4, 5, "ORG")]
    assert spans_of(first.spans["chunks"]) == [
        (0, 1, "NP"),
        (1, 2, "VP"),
        (2, 3, "NP"),
        (3, 5, "NP"),
    ]
    assert [t.ent_iob_ for t in first] == ["B", "O", "B", "B", "B"]
    assert [first.user_data["document"], second.user_data["document"]] == [1, 2]
    assert len(list(first.sents)) == 1
    assert second.text.strip() == "Peter"


def test_docstart_lines_are_no_sentences_even_without_empty_lines(write, vocab):
    docs, _ = read(write("-DOCSTART- O\na X O O\n-DOCSTART- O\nb X O O\n"), vocab)
    assert [(doc[0].text, doc.user_data["document"]) for doc in docs] == [("a", 1), ("b", 2)]


def test_sentences_of_a_file_without_docstart_are_of_no_document(write, vocab):
    docs, _ = read(write("a X O O\n\nb X O O"), vocab)
    assert [doc.user_data for doc in docs] == [{}, {}]


def test_documents_may_also_end_with_docstart(write, vocab):
    text = "a X O O\n\nb X O O\n\n-DOCSTART- O\n\n-DOCSTART- O\n\nc X O O\n\n-DOCSTART- O\n"
    docs, _ = read(write(text), vocab)
    assert [doc.user_data["document"] for doc in docs] == [1, 1, 2]


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("iob1", ["I-A", "B-A", "I-A", "O"]),
        ("iob2", ["B-A", "B-A", "I-A", "O"]),
        ("bioes", ["S-A", "B-A", "E-A", "O"]),
    ],
)
def test_auto_finds_the_scheme(write, vocab, scheme, tags):
    path = write("".join(f"w X O {tag}\n" for tag in tags))
    assert resolve_scheme(path, "auto") == scheme
    docs, _ = read(path, vocab)
    assert spans_of(docs[0].ents) == [(0, 1, "A"), (1, 3, "A")]


def test_what_the_format_allows_is_repaired_and_counted(write, vocab):
    path = write(
        b"\xef\xbb\xbfEU NNP I-NP I-ORG\r\nrejects\tVBZ\tI-VP\tO\n"
        b"caf\xe9 NN I-NP O  \n \t\nna\xc3\xafve JJ I-NP O\n"
    )
    docs, repairs = read(path, vocab)
    assert [[t.text for t in doc] for doc in docs] == [["EU", "rejects", "café"], ["naïve"]]
    assert repairs == {
        "file(s) with a byte order mark": 1,
        "line(s) with CRLF": 1,
        "line(s) with tabs": 1,
        "line(s) with trailing blanks": 2,
        "line(s) read as Latin-1": 1,
    }


def test_a_clean_file_needs_no_repair(write, vocab):
    assert read(write(IOB1), vocab)[1] == {}


def test_blanks_of_other_kinds_stay_inside_words(write, vocab):
    docs, _ = read(write("New York\tNNP\tI-NP\tI-LOC\na\xa0b X O O\n"), vocab)
    assert [t.text for t in docs[0]] == ["New York", "a\xa0b"]


def test_gzip_reads_alike(write, vocab):
    docs, _ = read(write(gzip.compress(IOB1.encode()), "in.conll.gz"), vocab)
    assert len(docs) == 2


@pytest.mark.parametrize(
    ("text", "scheme", "line", "reason"),
    [
        ("a X O O\nb X O\n", "auto", 2, "3 column(s) instead of 4"),
        ("a X O O\n\nb X O O O\n", "auto", 3, "5 column(s) instead of 4"),
        ("a\tX\t\tO\n", "auto", 1, "column 2 of 4 is blank"),
        (" X O O\n", "auto", 1, "3 column(s) instead of 4, as the line begins with a blank"),
        ("a X O I-O\n", "auto", 1, "'I-O' is not a tag of IOB1"),
        ("a X O O\nb X O I-A\n", "bioes", 2, "I-A follows O"),
        ("a X O O\nb X O I-A\n", "iob2", 2, "I-A follows O"),
        ("a X O S-A\nb X O B-A\n", "auto", 2, "still open"),
        ("a X O O\nb X O Q-A\n", "auto", 2, "entity column: 'Q-A' is not a tag of IOB2"),
        ("a X O O\n\nb X NP O\n", "auto", 3, "chunk column: 'NP'"),
        ("", "auto", 1, "no sentences"),
        ("\n\n", "auto", 1, "no sentences"),
        ("-DOCSTART- -X- O O\n\n", "auto", 1, "no sentences"),
        (b"a X O O\nb\0 X O O\n", "auto", 2, "binary or UTF-16"),
        ("a X O O\n".encode("utf-16"), "auto", 1, "binary or UTF-16"),
    ],
)
def test_malformed_input_is_named_by_file_and_line(write, vocab, text, scheme, line, reason):
    path = write(text)
    with input_error_at(path, line, reason):
        read(path, vocab, scheme)


def test_files_that_cannot_be_read_are_named(write, vocab, tmp_path):
    for path in (tmp_path / "none.conll", tmp_path, write(b"no gzip", "bad.gz")):
        with pytest.raises(InputError, match=path.name):
            read(path, vocab)
    cut = write(gzip.compress(IOB1.encode() * 50)[:-20], "cut.gz")
    with pytest.raises(InputError, match="broken"):
        read(cut, vocab)


PIECES = [
    b"a",
    b" ",
    b"\t",
    b"\n",
    b"\r",
    b"O",
    b"I-A",
    b"E-A",
    b"a X O O\n",
    b"\xe9",
    b"\xef\xbb\xbf",
]
VOCAB = Vocab()


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=12))
def test_any_bytes_give_docs_or_an_input_error(tmp_path_factory, pieces):
    path = tmp_path_factory.getbasetemp() / "any.conll"
    path.write_bytes(b"".join(pieces))
    try:
        docs, _ = read(path, VOCAB)
    except InputError as error:
        assert str(error).startswith(f"{path}:")
    else:
        assert docs


def test_spacy_trains_from_the_column_file(write):
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    reader = read_conll2003(write(IOB1))
    nlp.initialize(lambda: reader(nlp))
    assert set(nlp.get_pipe("ner").labels) == {"ORG", "MISC", "PER"}
    examples = list(reader(nlp))
    assert len(examples) == len(list(reader(nlp))) == 2
    assert [t.text for t in examples[0].predicted] == [t.text for t in examples[0].reference]
    assert not examples[0].predicted.ents
    assert nlp.update(examples)["ner"] > 0


def test_the_reader_resolves_from_a_config(write):
    path = str(write(IOB1))
    name = "spacy-psa.Conll2003.v1"
    config = {"train": {"@readers": name, "path": path, "scheme": "iob1", "limit": 1}}
    reader = spacy.registry.resolve(config)["train"]
    assert len(list(reader(spacy.blank("en")))) == 1


def test_the_reader_warns_once_of_repairs(write):
    with pytest.warns(UserWarning, match=r"repaired: 2 line\(s\) with CRLF") as record:
        list(read_conll2003(write("a X O O\r\nb X O O\r\n"))(spacy.blank("en")))
    assert len(record) == 1
