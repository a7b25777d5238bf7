import gzip
import zipfile

import pytest

from spacy_psa.corpora import lines
from spacy_psa.corpora.glove import prepare_vectors
from spacy_psa.errors import InputError
from tests.helpers.corpora import input_error_at

ROWS = "the 0.1 -0.2\n, 1e-3 2\nna\u0085me 3 4\n"


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as opened:
        for name, text in members.items():
            opened.writestr(name.replace("_", "."), text)
    return path


def test_zip_gz_and_text_give_the_same_file(tmp_path):
    zipped = archive(tmp_path / "g.zip", glove_2d_txt=ROWS, glove_3d_txt="x 1 2 3\n")
    packed, plain = tmp_path / "g.txt.gz", tmp_path / "g.txt"
    packed.write_bytes(gzip.compress(ROWS.encode()))
    plain.write_bytes(ROWS.encode())
    for source in (zipped, packed, plain):
        assert prepare_vectors(source, tmp_path / "out", 2) == 3
        assert (tmp_path / "out").read_bytes() == b"3 2\n" + ROWS.encode()


def test_a_header_is_replaced_and_crlf_dropped(tmp_path):
    (tmp_path / "g").write_bytes(b"1 2\r\na 1 2\r\n")
    assert prepare_vectors(tmp_path / "g", tmp_path / "out", 2) == 1
    assert (tmp_path / "out").read_bytes() == b"1 2\na 1 2\n"


def test_numbers_as_great_as_32_bits_hold_are_kept(tmp_path):
    (tmp_path / "g").write_text("a 3.4028235e+38 -3.4028235e38\n")
    assert prepare_vectors(tmp_path / "g", tmp_path / "out", 2) == 1


@pytest.mark.parametrize("header", ["", "2 2\n"])
def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path, header):
    (tmp_path / "g").write_bytes(b"\xef\xbb\xbf" + header.encode() + b"a 1 2\nb 3 4\n")
    assert prepare_vectors(tmp_path / "g", tmp_path / "out", 2) == 2
    assert (tmp_path / "out").read_bytes() == b"2 2\na 1 2\nb 3 4\n"


def test_words_with_spaces_are_kept(tmp_path):
    (tmp_path / "g").write_text("at home 1 2\n. . 3 4\n")
    assert prepare_vectors(tmp_path / "g", tmp_path / "out", 2) == 2
    assert (tmp_path / "out").read_text() == "2 2\nat home 1 2\n. . 3 4\n"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a 1 2\nb 1\n", 2, "1 numbers instead of 2"),
        ("a 1 2\nb 1 2 3\n", 2, "3 numbers instead of 2"),
        ("a 1 2\n\n", 2, "0 numbers instead of 2"),
        ("a 1 2\nb 1 x\n", 2, "'x' is not a finite number"),
        ("a 1 nan\n", 1, "'nan' is not a finite number"),
        ("a 1 inf\n", 1, "'inf' is not a finite number"),
        ("9 300\na 1 2\n", 1, "the header has 300 numbers; use --dim 300"),
        (" 1 2\n", 1, "no word"),
        ("a 1 1e39\n", 1, "'1e39' is not a finite number in 32 bits"),
        ("a 1 2\nb 1 -3.41e38\n", 2, "'-3.41e38' is not a finite number in 32 bits"),
        ("a 1 2\nb 1 2 c 1 2\n", 2, "two vectors on one line"),
        ("a 1 2b 1 2\n", 1, "two vectors on one line"),
        (" ".join(f"w{i} 1 2" for i in range(200)), 1, "two vectors on one line"),
        ("a 1 2\rb 1 2\r", 1, "a carriage return inside of the line"),
        ("a 1 2\nb 1 2\rc 1 2\n", 2, "a carriage return inside of the line"),
        ("100 2\na 1 2\n", 1, "the header counts 100 vectors, but there are 1"),
        ("1 2\na 1 2\nb 1 2\n", 1, "the header counts 1 vectors, but there are 2"),
        ("1" * 5000 + " 2\na 1 2\n", 1, "1 numbers instead of 2"),
        ("", 1, "no vectors"),
    ],
)
def test_malformed_rows_are_named_and_leave_no_file(tmp_path, text, line, reason):
    source = tmp_path / "g.txt"
    source.write_text(text)
    with input_error_at(source, line, reason):
        prepare_vectors(source, tmp_path / "out", 2)
    assert [file.name for file in tmp_path.iterdir()] == ["g.txt"]


def test_bytes_that_are_no_utf8_are_named(tmp_path):
    (tmp_path / "g").write_bytes(b"a 1 2\ncaf\xe9 1 2\n")
    with pytest.raises(InputError, match=":2: not UTF-8"):
        prepare_vectors(tmp_path / "g", tmp_path / "out", 2)


def test_the_member_must_be_one(tmp_path):
    zipped = archive(tmp_path / "g.zip", glove_2d_txt=ROWS, other_txt=ROWS)
    with pytest.raises(InputError, match=r"no single member fits --dim 5.*glove\.2d\.txt"):
        prepare_vectors(zipped, tmp_path / "out", 5)
    with pytest.raises(InputError, match="no member 'none'"):
        prepare_vectors(zipped, tmp_path / "out", 2, "none")
    assert prepare_vectors(zipped, tmp_path / "out", 2, "other.txt") == 3
    with pytest.raises(InputError, match=r"other\.txt:1: 2 numbers instead of 3"):
        prepare_vectors(zipped, tmp_path / "out", 3, "other.txt")


def test_broken_archives_are_named(tmp_path):
    cut = archive(tmp_path / "g.zip", glove_2d_txt=ROWS * 99)
    cut.write_bytes(cut.read_bytes()[:500])
    (tmp_path / "bad.zip").write_text("no zip")
    for path in (cut, tmp_path / "bad.zip", tmp_path / "none.zip"):
        with pytest.raises(InputError, match=path.name):
            prepare_vectors(path, tmp_path / "out", 2)
    flipped = archive(tmp_path / "f.zip", glove_2d_txt=ROWS)
    flipped.write_bytes(flipped.read_bytes().replace(b"the 0.1", b"the 0.7"))
    with pytest.raises(InputError, match="broken"):
        prepare_vectors(flipped, tmp_path / "out", 2)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_content_that_cannot_be_unpacked_is_one_error(tmp_path, method):
    path = tmp_path / "g.zip"
    with zipfile.ZipFile(path, "w", method) as opened:
        opened.writestr("glove.2d.txt", "".join(f"w{i} {i} {i / 7}\n" for i in range(99)))
    content = bytearray(path.read_bytes())
    content[100:120] = b"\xff" * 20
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"g\.zip: the archive is broken"):
        prepare_vectors(path, tmp_path / "out", 2)


def test_an_encrypted_zip_is_one_error(tmp_path):
    content = bytearray(archive(tmp_path / "g.zip", glove_2d_txt=ROWS).read_bytes())
    content[6] = content[content.index(b"PK\1\2") + 8] = 1
    (tmp_path / "g.zip").write_bytes(content)
    with pytest.raises(InputError, match=r"glove\.2d\.txt is encrypted; unpack the archive"):
        prepare_vectors(tmp_path / "g.zip", tmp_path / "out", 2)


def test_a_file_of_one_endless_line_is_one_error(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 1000)
    zipped = archive(tmp_path / "g.zip", glove_2d_txt="a 1 2\n" + "\0" * 2000)
    with pytest.raises(InputError, match=r"glove\.2d\.txt:2: the line is longer than"):
        prepare_vectors(zipped, tmp_path / "out", 2)


def test_member_without_an_archive_is_refused(tmp_path):
    (tmp_path / "g.txt").write_text(ROWS)
    with pytest.raises(InputError, match="--member"):
        prepare_vectors(tmp_path / "g.txt", tmp_path / "out", 2, "x")
