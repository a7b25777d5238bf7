import io
import os
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from spacy.vocab import Vocab

from spacy_psa.corpora.ontonotes import read_docs
from spacy_psa.corpora.treebanks import parse_sections
from spacy_psa.corpora.trees import build_tree
from spacy_psa.errors import InputError
from tests.helpers.corpora import input_error_at
from tests.helpers.trees import constituents

FILE = "in.v4_gold_conll"
VOCAB = Vocab()
# (word, part of speech, tree, names) of each word
FIRST = [
    ("Royal", "NNP", "(TOP(S(NP(NP*", "(ORG*"),
    ("Society", "NNP", "*)", "*)"),
    ("-LRB-", "-LRB-", "(PRN*", "*"),
    ("UK", "NNP", "(NP*)", "(GPE)"),
    ("-RRB-", "-RRB-", "*))", "*"),
    ("met", "VBD", "(VP*)", "*"),
    ("/.", ".", "*))", "*"),
]
SECOND = [("1\\/2", "CD", "(TOP(NP*", "(CARDINAL*)"), ("%um", "UH", "(INTJ*)))", "*")]


def sentence(document: str, rows: list[tuple[str, str, str, str]], part: int = 0) -> str:
    return "".join(
        f"{document}   {part}   {i}  {word:>9} {tag:>5} {tree:>14}  -  -  -  Speaker#1  {name:>8}"
        f"  (ARG0*)  (V*)  -\n"
        for i, (word, tag, tree, name) in enumerate(rows)
    )


def document(name: str, *sentences: list[tuple[str, str, str, str]], part: int = 0) -> str:
    body = "\n".join(sentence(name, rows, part) for rows in sentences)
    return f"#begin document ({name}); part {part:03}\n{body}\n#end document\n"


@pytest.fixture
def tree_of_files(write, tmp_path):
    """A folder as the shared task lays it out; each document is one word, its own name."""
    root = tmp_path / "conll-2012"
    files = {
        "v4/data/train/data/english/annotations/nw/wsj/02/wsj_0203": "",
        "v4/data/train/data/english/annotations/pt/nt/41/nt_4101": "",
        "v4/data/test/data/english/annotations/bc/cnn/00/cnn_0001": "",
        "wsj-extra/test/nw/wsj/23/wsj_2301": "",
    }
    for path in files:
        name = "/".join(path.split("/")[-4:])
        word = name.split("/")[-1]
        text = document(name, [(word, "NN", "(TOP(NP*))", "*")])
        write(text, f"conll-2012/{path}.v4_gold_conll")
        write(text.replace(word, "auto"), f"conll-2012/{path}.v4_auto_conll")
    write("no document", "conll-2012/README")
    return root


def layers(doc):
    ents = [(ent.text, ent.label_) for ent in doc.ents]
    return [t.text for t in doc], [t.tag_ for t in doc], ents, constituents(doc)


def test_every_layer_arrives_unescaped(write, vocab):
    name = "bc/cnn/00/cnn_0001"
    path = write(document(name, FIRST) + document(name, SECOND, part=1))
    repairs = Counter()
    first, second = read_docs(path, vocab, repairs)
    words, tags, ents, spans = layers(first)
    assert words == ["Royal", "Society", "(", "UK", ")", "met", "."]
    assert tags == ["NNP", "NNP", "-LRB-", "NNP", "-RRB-", "VBD", "."]
    assert ents == [("Royal Society", "ORG"), ("UK", "GPE")]
    assert spans == [
        (0, 7, "S"), (0, 5, "NP"), (0, 2, "NP"), (2, 5, "PRN"), (3, 4, "NP"), (5, 6, "VP"),
    ]  # fmt: skip
    assert " ".join(str(build_tree(words, tags, spans)).split()).startswith("(S (NP (NP (NNP R")
    assert layers(second)[0] == ["1/2", "%um"]
    assert layers(second)[2] == [("1/2", "CARDINAL")]
    assert first.user_data["document"] == second.user_data["document"] == name
    assert [first.user_data["part"], second.user_data["part"]] == [0, 1]
    assert len(list(first.sents)) == 1
    assert repairs == {}


def test_a_sentence_without_names_has_none_and_not_unknown_ones(write, vocab):
    (doc,) = read_docs(write(document("a", [("No", "UH", "(TOP(INTJ*))", "*")])), vocab)
    assert doc.ents == () and doc.has_annotation("ENT_IOB")


def pack(folder: Path, mode: str, path: Path) -> Path:
    with tarfile.open(path, mode) as archive:
        archive.add(folder, folder.name)
        hidden = tarfile.TarInfo(f"{folder.name}/._x_gold_conll")  # as macOS adds
        archive.addfile(hidden, io.BytesIO())
    return path


@pytest.fixture(params=["folder", "tar.xz", "tar.gz", "zip"])
def source(request, tree_of_files, tmp_path):
    if request.param == "folder":
        return tree_of_files
    path = tmp_path / f"c.{request.param}"
    if request.param == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for file in tree_of_files.rglob("*.*"):
                archive.write(file, file.relative_to(tmp_path))
        return path
    return pack(tree_of_files, f"w:{request.param[-2:]}", path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["cnn_0001", "wsj_0203", "wsj_2301"]),
        ({"new_testament": True}, ["cnn_0001", "nt_4101", "wsj_0203", "wsj_2301"]),
        ({"folder": "v4/data/train"}, ["wsj_0203"]),
        ({"folder": "/v4/data/test/"}, ["cnn_0001"]),
        ({"sections": parse_sections("02-21")}, ["wsj_0203"]),
        ({"sections": parse_sections("0-24")}, ["wsj_0203", "wsj_2301"]),
    ],
)
def test_documents_are_chosen_alike_in_folders_and_archives(source, options, words):
    assert sorted(doc[0].text for doc in read_docs(source, VOCAB, **options)) == words


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"folder": "v4/data/dev"}, r"no \*_conll files below v4/data/dev in it"),
        ({"folder": "data/tr"}, "below data/tr"),
        ({"sections": [24]}, "no document is chosen; leave out --sections"),
    ],
)
def test_a_choice_of_nothing_is_an_error(source, options, reason):
    with pytest.raises(InputError, match=reason):
        list(read_docs(source, VOCAB, **options))


@pytest.mark.parametrize("suffix", ["tar.xz", "tar.gz", "zip"])
def test_broken_archives_are_named(tree_of_files, tmp_path, suffix):
    whole = tmp_path / f"whole.{suffix}"
    if suffix == "zip":
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a_conll", os.urandom(9999).hex())
    else:
        (tree_of_files / "noise").write_bytes(os.urandom(99999))
        pack(tree_of_files, f"w:{suffix[-2:]}", whole)
    cut = tmp_path / f"cut.{suffix}"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    (tmp_path / f"bad.{suffix}").write_text("no archive")
    for path in (cut, tmp_path / f"bad.{suffix}", tmp_path / f"none.{suffix}"):
        with pytest.raises(InputError, match=path.name):
            list(read_docs(path, VOCAB))


def changed(word: int, column: int, value: str) -> str:
    rows = [list(row) for row in FIRST]
    rows[word][column] = value
    return document("nw/wsj/02/wsj_0203", [tuple(row) for row in rows])


WSJ = "nw/wsj/02/wsj_0203"
GOOD = document(WSJ, FIRST)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("( (S\n (NN a)))\n", 1, "no '#begin document' line"),
        ("-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\n", 1, "no '#begin document' line"),
        ("#begin document\n" + sentence("a", FIRST), 2, "no '#begin document' line"),
        (GOOD.replace("#end document\n", ""), 9, "no '#end document' line; the file is cut off"),
        (GOOD.replace("#end document\n", "") + GOOD, 10, "wsj_0203, has no '#end document' line"),
        ("#begin document (a); part 000\nEU NNP I-NP I-ORG\n", 2, "4 columns instead of 12"),
        (GOOD.replace("   0   3  ", "   0   4  "), 5, "the word number is '4' instead of 3"),
        (changed(0, 0, "[WORD]"), 2, "skeleton2conll"),
        (changed(6, 2, "*)"), 8, "1 bracket(s) are not closed"),
        (changed(6, 2, "*)))"), 8, "there is one closing bracket too many"),
        (changed(5, 2, "(VP)"), 7, "tree column: '(VP)' does not have exactly one *"),
        (changed(5, 2, "(VP**)"), 7, "tree column: '(VP**)' does not have exactly one *"),
        (changed(5, 2, "VP*)"), 7, "does not have exactly one *"),
        (changed(5, 2, "-"), 7, "'-' does not have exactly one *"),
        (changed(0, 2, "*"), 2, "'Royal' is outside the tree"),
        (changed(5, 2, "*))"), 8, "'.' is outside the tree"),
        (changed(3, 3, "GPE"), 5, "names column: 'GPE' is not possible outside of a name"),
        (changed(3, 3, "*)"), 5, "names column: '*)' is not possible outside of a name"),
        (changed(1, 3, "(GPE)"), 3, "names column: '(GPE)' is not possible inside of ORG"),
        (changed(6, 3, "(GPE*"), 8, "names column: GPE is not closed"),
        (changed(5, 0, "me\0t"), 7, "binary or UTF-16"),
        (GOOD + document(WSJ, SECOND, part=2), 11, "part 2 of nw/wsj/02/wsj_0203 follows part 0"),
        (GOOD + GOOD, 11, "part 0 of nw/wsj/02/wsj_0203 follows part 0"),
        (f"#begin document ({WSJ}); part 000\n\n#end document\n", 3, "has no words"),
        (GOOD.replace("part 000", "part " + "1" * 5000), 2, "no '#begin document' line"),
    ],
)
def test_malformed_documents_are_named_by_file_and_line(write, vocab, text, line, reason):
    path = write(text)
    with input_error_at(path, line, reason):
        list(read_docs(path, vocab))


def test_parts_that_are_not_chosen_are_counted_too(write):
    path = write(document("pt/nt/1", SECOND) + document("pt/nt/1", SECOND, part=2) + GOOD)
    with input_error_at(path, 6, "part 2 of pt/nt/1 follows part 0"):
        list(read_docs(path, VOCAB))


def test_a_file_may_begin_with_a_later_part_of_a_document(write):
    path = write(document(WSJ, FIRST, part=3) + document(WSJ, SECOND, part=4))
    assert [doc.user_data["part"] for doc in read_docs(path, VOCAB)] == [3, 4]


def test_an_error_in_an_archive_names_archive_file_and_line(tree_of_files, tmp_path):
    bad = tree_of_files / "v4" / "a.v4_gold_conll"
    bad.write_text("EU NNP\n")
    path = pack(tree_of_files, "w:xz", tmp_path / "c.tar.xz")
    with pytest.raises(InputError, match=r"c\.tar\.xz/conll-2012/v4/a\.v4_gold_conll:1: "):
        list(read_docs(path, VOCAB))


def test_an_empty_file_is_named(write):
    with pytest.raises(InputError, match="no document is chosen"):
        list(read_docs(write(""), VOCAB))
