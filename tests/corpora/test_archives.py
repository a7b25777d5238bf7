"""Archives: damage is an error that names the archive, and never the loss of files or lines."""

import gzip
import io
import tarfile
import zipfile

import pytest

from spacy_psa.corpora import lines as lines_module
from spacy_psa.corpora.archives import open_files
from spacy_psa.errors import InputError

PACK = {"tar": "", "tar.gz": "gz", "tar.bz2": "bz2", "tar.xz": "xz"}
MEMBERS = [f"{i}.txt" for i in range(5)]


def read(path):
    return {name: b"".join(lines) for name, lines in open_files(path, lambda _: True, "files")}


def tar_bytes(names=tuple(MEMBERS)) -> bytearray:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 700
            archive.addfile(info, io.BytesIO((name * 700).encode()))
    return bytearray(stream.getvalue())


HEADER_3 = 3 * (512 + 1024)  # of the fourth member: each has a header and two blocks


def write(path, content: bytes):
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("packing", PACK)
def test_tar_archives_of_every_packing_give_all_files(tmp_path, packing):
    path = tmp_path / f"c.{packing}"
    with tarfile.open(path, f"w:{PACK[packing]}") as archive:
        for name in MEMBERS:
            (tmp_path / name).write_text(name * 99)
            archive.add(tmp_path / name, name)
    path.rename(tmp_path / "c.tar")  # the bytes tell how it is packed, not the name
    path = tmp_path / "c.tar"
    assert read(path) == {f"{path}/{name}": name.encode() * 99 for name in MEMBERS}


@pytest.mark.parametrize("suffix", ["tar", "tar.gz"])
@pytest.mark.parametrize("byte", [0, 100, 124, 148, 257])  # name, mode, size, checksum, magic
def test_a_damaged_header_behind_the_first_is_an_error(tmp_path, suffix, byte):
    content = tar_bytes()
    content[HEADER_3 + byte] ^= 4
    with pytest.raises(InputError, match=rf"c\.{suffix}: the archive is broken"):
        read(write(tmp_path / f"c.{suffix}", content))


@pytest.mark.parametrize("suffix", ["tar", "tar.gz"])
@pytest.mark.parametrize("length", [HEADER_3, HEADER_3 + 9, HEADER_3 + 512, HEADER_3 + 600])
def test_a_cut_is_an_error_also_between_two_files(tmp_path, suffix, length):
    with pytest.raises(InputError, match=rf"c\.{suffix}: the archive is broken"):
        read(write(tmp_path / f"c.{suffix}", tar_bytes()[:length]))


def test_a_header_of_zeros_does_not_end_the_archive(tmp_path):
    content = tar_bytes()
    content[HEADER_3 : HEADER_3 + 512] = bytes(512)
    with pytest.raises(InputError, match="data after its end"):
        read(write(tmp_path / "c.tar", content))


@pytest.mark.parametrize("place", [-8, -4])  # the checksum, the length
def test_a_wrong_checksum_of_gzip_is_an_error(tmp_path, place):
    packed = bytearray(gzip.compress(tar_bytes()))
    packed[place] ^= 1
    (tmp_path / "c.tar.gz").write_bytes(packed)
    with pytest.raises(InputError, match=r"c\.tar\.gz: the archive is broken"):
        read(tmp_path / "c.tar.gz")


def test_two_files_of_one_name_are_an_error(tmp_path):
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("a/train.txt", "one")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a/train.txt", "two")
    write(tmp_path / "c.tar", tar_bytes(["a/train.txt", "a/train.txt"]))
    for path in (tmp_path / "c.zip", tmp_path / "c.tar"):
        with pytest.raises(InputError, match=r"several files a/train\.txt"):
            read(path)


def zipped(path, text=bytes(range(256)), method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.txt", text)
    return bytearray(path.read_bytes())


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_content_of_a_zip_is_one_error(tmp_path, method):
    content = zipped(tmp_path / "c.zip", method=method)
    for place in range(46, 56):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        (tmp_path / "c.zip").write_bytes(damaged)
        with pytest.raises(InputError, match=r"c\.zip: "):
            read(tmp_path / "c.zip")


def test_an_encrypted_zip_or_an_unknown_method_is_one_error(tmp_path):
    content = zipped(tmp_path / "c.zip")
    directory = content.index(b"PK\1\2")
    for flag, method, reason in ((1, 8, "encrypted; unpack the archive"), (0, 99, "broken")):
        changed = bytearray(content)
        changed[6], changed[8] = flag, method
        changed[directory + 8], changed[directory + 10] = flag, method
        (tmp_path / "c.zip").write_bytes(changed)
        with pytest.raises(InputError, match=reason):
            read(tmp_path / "c.zip")


@pytest.mark.parametrize("name", ["c.zip", "c.tar.xz", "c.tar.gz", "c.gz"])
def test_an_archive_that_unpacks_to_far_more_than_text_does_is_an_error(
    tmp_path, monkeypatch, name
):
    monkeypatch.setattr(lines_module, "HARMLESS", 10_000)
    monkeypatch.setattr(lines_module, "EXPANSION", 20)
    path, text = tmp_path / name, b"the same line\n" * 100_000
    if name == "c.zip":
        zipped(path, text)
    elif ".tar" in name:
        with tarfile.open(path, f"w:{path.suffix[1:]}") as archive:
            info = tarfile.TarInfo("a.txt")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    else:
        write(path, text)
    with pytest.raises(InputError, match=r"c\..*: unpacks to more than 20 times its size"):
        read(path)


@pytest.mark.parametrize("name", ["c.zip", "c.tar.xz", "c.gz", "c.txt"])
def test_a_line_without_end_is_an_error_before_it_fills_the_memory(tmp_path, monkeypatch, name):
    monkeypatch.setattr(lines_module, "LONGEST", 1000)
    path = tmp_path / name
    text = b"short\n" + b"x" * 999 + b"\n" + b"x" * 2000
    if name == "c.zip":
        zipped(path, text)
    elif name == "c.tar.xz":
        with tarfile.open(path, "w:xz") as archive:
            info = tarfile.TarInfo("a.txt")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    else:
        write(path, text)
    with pytest.raises(InputError, match=r":3: the line is longer than"):
        read(path)


@pytest.mark.parametrize("name", ["c.zip", "c.tar.gz", "c.gz"])
def test_no_damage_of_one_byte_is_a_traceback_or_a_loss(tmp_path, name):
    path = tmp_path / name
    if name == "c.zip":
        content = zipped(path, b"some words\n" * 3)
    else:
        content = bytearray(gzip.compress(tar_bytes(["a", "b"]) if "tar" in name else b"x y\n" * 9))
    path.write_bytes(content)
    whole = sorted(read(path).values())
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert sorted(read(path).values()) == whole  # a date, or an offset that is not used
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error)
