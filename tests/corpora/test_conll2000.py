import zipfile
from collections import Counter

import pytest
import spacy

from spacy_psa.corpora.conll2000 import draw, read_docs
from spacy_psa.errors import InputError
from tests.helpers.corpora import input_error_at
from tests.helpers.pipelines import spans_of

TEXT = """Confidence NN B-NP
in IN B-PP
the DT B-NP
pound NN I-NP
is VBZ B-VP
. . O

Chancellor NNP O
"""


def chunks(doc) -> list[tuple[int, int, str]]:
    return spans_of(doc.spans["chunks"])


def test_words_tags_and_chunks_arrive(write, vocab):
    first, second = read_docs(write(TEXT), vocab)
    assert [t.text for t in first] == ["Confidence", "in", "the", "pound", "is", "."]
    assert [t.tag_ for t in first] == ["NN", "IN", "DT", "NN", "VBZ", "."]
    assert chunks(first) == [(0, 1, "NP"), (1, 2, "PP"), (2, 4, "NP"), (4, 5, "VP")]
    assert chunks(second) == [] and "chunks" in second.spans
    assert not first.has_annotation("ENT_IOB")
    assert len(list(first.sents)) == 1


def test_a_member_of_the_published_archive_is_read(tmp_path, vocab):
    path = tmp_path / "conll2000.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conll2000/README", "not it")
        archive.writestr("conll2000/train.txt", TEXT)
        archive.writestr("conll2000/test.txt", "a DT O\n")
    assert len(list(read_docs(path, vocab, member="train.txt"))) == 2
    assert len(list(read_docs(path, vocab, member="conll2000/test.txt"))) == 1
    with pytest.raises(InputError, match=r"zip: no file dev\.txt in it"):
        list(read_docs(path, vocab, member="dev.txt"))
    with pytest.raises(InputError, match=r"--member train\.txt or test\.txt"):
        list(read_docs(path, vocab))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conll2000/test.txt", "a DT O\nb DT\n")
    with pytest.raises(InputError, match=r"conll2000\.zip/conll2000/test\.txt:2: 2 column"):
        list(read_docs(path, vocab, member="test.txt"))


def test_a_member_that_fits_several_files_is_an_error(tmp_path, vocab):
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/train.txt", TEXT)
        archive.writestr("b/train.txt", TEXT)
    with pytest.raises(InputError, match=r"fits several files: .*/a/train\.txt, .*/b/train\.txt"):
        list(read_docs(path, vocab, member="train.txt"))
    assert len(list(read_docs(path, vocab, member="b/train.txt"))) == 2


def test_member_without_an_archive_is_refused(write, vocab):
    with pytest.raises(InputError, match="--member is for archives"):
        list(read_docs(write(TEXT), vocab, member="train.txt"))


def test_the_drawn_sentences_and_the_rest_are_the_whole(write, vocab):
    path = write("".join(f"w{i} NN O\n\n" for i in range(50)))

    def words(**options):
        return [doc[0].text for doc in read_docs(path, vocab, dev=20, **options)]

    dev, train = words(part="dev"), words(part="train")
    assert len(dev) == 20
    assert sorted(dev + train) == sorted(f"w{i}" for i in range(50))
    assert words(part="dev") == dev
    assert words(part="dev", seed=1) != dev
    # In the order of the file, and not its first sentences.
    assert dev == [f"w{i}" for i in sorted(int(word[1:]) for word in dev)] != sorted(dev)[:20]
    assert dev != [f"w{i}" for i in range(20)]


@pytest.mark.parametrize("count", [0, 2, 3])
def test_what_cannot_be_drawn_is_refused(write, count):
    with pytest.raises(InputError, match=f"cannot draw {count} of 2 sentences"):
        draw(write(TEXT), count, 0)


def test_dev_without_a_number_is_refused(write, vocab):
    with pytest.raises(InputError, match="such as --dev 1000"):
        list(read_docs(write(TEXT), vocab, part="dev"))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("-DOCSTART- -X- O O\n\na X O O\n", 1, "4 column(s) instead of 3"),
        ("a X O\nb X O O\n", 2, "4 column(s) instead of 3"),
        ("( (S\n", 1, "2 column(s) instead of 3"),
        ("(S (NP (NN\n", 1, "chunk column: '(NN' is not a tag of IOB1"),
        ("a X O\n\nb X NP\n", 3, "chunk column: 'NP'"),
        ("", 1, "no sentences"),
        ("a X O\nb\0 X O\n", 2, "binary or UTF-16"),
    ],
)
def test_malformed_input_is_named_by_file_and_line(write, vocab, text, line, reason):
    path = write(text)
    with input_error_at(path, line, reason):
        list(read_docs(path, vocab))


def test_repairs_are_counted(write, vocab):
    repairs = Counter()
    docs = list(read_docs(write("a\tDT\tO\r\nb NN O \r\n"), vocab, repairs))
    assert [t.text for t in docs[0]] == ["a", "b"]
    assert repairs == {
        "line(s) with CRLF": 2,
        "line(s) with tabs": 1,
        "line(s) with trailing blanks": 1,
    }


def test_the_reader_resolves_from_a_config(write):
    path = str(write(TEXT))
    config = {"train": {"@readers": "spacy-psa.Conll2000.v1", "path": path, "limit": 1}}
    (example,) = spacy.registry.resolve(config)["train"](spacy.blank("en"))
    assert [t.text for t in example.predicted] == [t.text for t in example.reference]
    assert "chunks" in example.reference.spans and "chunks" not in example.predicted.spans


@pytest.mark.parametrize("text, count", [(TEXT, 0), (TEXT.rstrip("\n"), 1)])
def test_a_last_line_that_may_be_cut_is_told(write, vocab, text, count):
    repairs = Counter()
    assert len(list(read_docs(write(text), vocab, repairs))) == 2
    assert repairs["last line(s) without a line end"] == count
