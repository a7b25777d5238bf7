"""GUM: its parts, layers and genres, and its files as they are downloaded."""

from collections import Counter
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import srsly

from spacy_psa.corpora.documents import join_documents
from spacy_psa.corpora.gum import read_docs
from spacy_psa.corpora.repository import git_ids
from spacy_psa.errors import InputError
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.corpora import write_gum
from tests.test_project import Files

run = command()


def test_each_part_has_its_documents_with_all_layers(tmp_path, vocab):
    source, repairs = write_gum(tmp_path), Counter()
    docs = list(read_docs(source, vocab, "train", repairs))
    assert [doc.user_data for doc in docs] == [{"document": "GUM_news_rome", "genre": "news"}] * 2
    (doc, _) = docs
    assert doc.text == "Rome's mayor fell. "
    assert [token.tag_ for token in doc] == ["NNP", "POS", "NN", "VBD", "."]
    layers = {
        "sc": [("Rome's mayor", "person"), ("Rome's", "place")],
        "constituents": [
            ("Rome's mayor fell.", "S"), ("Rome's mayor", "NP"), ("Rome's", "NP"), ("fell", "VP"),
        ],
        "chunks": [("Rome", "NP"), ("'s mayor", "NP"), ("fell", "VP")],
    }  # fmt: skip
    assert {k: [(s.text, s.label_) for s in group] for k, group in doc.spans.items()} == layers
    assert [(ent.text, ent.label_) for ent in doc.ents] == layers["sc"][:1]
    (left_out,) = repairs
    assert left_out == "document(s) whose words are blanked out, left out (GUM_reddit_a)"
    (whole,) = join_documents(docs)
    assert whole.user_data["genre"] == "news" and len(list(whole.sents)) == 2
    assert [doc.user_data["genre"] for doc in read_docs(source, vocab, "test2")] == ["poetry"]


def test_a_missing_file_and_other_words_are_errors(tmp_path, vocab):
    source = write_gum(tmp_path)
    tree = source / "const" / "GUM_news_rome.ptb"
    tree.write_text(tree.read_text().replace("mayor", "pope"))
    with pytest.raises(InputError, match=r"GUM_news_rome\.ptb have different words"):
        list(read_docs(source, vocab, "train"))
    tree.unlink()
    with pytest.raises(InputError, match=r"there is no const/GUM_news_rome\.ptb"):
        list(read_docs(source, vocab, "train"))
    (source / "splits.md").write_text("# Splits\n")
    with pytest.raises(InputError, match=r"splits\.md lists no documents"):
        list(read_docs(source, vocab, "train"))


@pytest.fixture
def server(tmp_path):
    """A repository with the files, on this machine, and a project whose asset it is."""
    source = write_gum(tmp_path / "repository")
    (source / "LICENSE.txt").write_text("free\n")
    ids = git_ids(source)
    named = {name: ids[name] for name in ("dep", "const", "splits.md", "LICENSE.txt")}
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=source)) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        asset = {"dest": "assets/gum/gum.tar.xz", "repository": address, "git": named}
        srsly.write_yaml(tmp_path / "project.yml", {"assets": [asset, {"dest": GLOVE}]})
        (tmp_path / GLOVE).parent.mkdir(parents=True)
        (tmp_path / GLOVE).write_bytes(b"PK\5\6" + bytes(18))  # an empty archive
        yield source
        server.shutdown()


GLOVE = "assets/glove/glove.6B.zip"


def assets(folder: Path, *arguments: object):
    return run("assets", "gum", "--project", folder / "project.yml", *arguments)


def test_the_files_of_the_repository_are_packed_and_checked(tmp_path, server, vocab):
    assert_one_error(assets(tmp_path), "gum.tar.xz")
    succeed(assets(tmp_path, "--download"))
    archive = tmp_path / "assets" / "gum" / "gum.tar.xz"
    assert [path.name for path in archive.parent.iterdir()] == ["gum.tar.xz"]
    assert git_ids(archive) == git_ids(server)
    assert len(list(read_docs(archive, vocab, "train"))) == 2
    archive.write_bytes(archive.read_bytes()[:-40])
    assert_one_error(assets(tmp_path), "gum.tar.xz: is damaged")
    assert assets(tmp_path, "--download").exit_code == 0


@pytest.mark.usefixtures("server")
def test_other_files_than_those_of_the_commit_are_refused(tmp_path, server):
    file = server / "dep" / "GUM_news_rome.conllu"
    right = file.read_bytes()
    file.write_bytes(right + b"\n")
    assert_one_error(assets(tmp_path, "--download"), "other files than those of the corpus")
    assert not (tmp_path / "assets" / "gum" / "gum.tar.xz").exists()
    file.unlink()
    assert_one_error(assets(tmp_path, "--download"), "GUM_news_rome.conllu", "404")
    file.write_bytes(right)  # the other files are not downloaded again
    (server / "LICENSE.txt").unlink()
    succeed(assets(tmp_path, "--download"))


def test_a_mirror_has_the_archive(tmp_path, server):
    assert assets(tmp_path, "--download").exit_code == 0
    mirror = tmp_path / "mirror" / "gum"
    mirror.parent.mkdir()
    (tmp_path / "assets" / "gum").rename(mirror)
    result = assets(tmp_path, "--mirror", mirror.parent)
    assert result.exit_code == 0 and "copied from" in result.output


@pytest.mark.parametrize(
    ("part", "counts"),
    [
        ("train", (177, 10224, 177410, 49649, 31112)),
        ("dev", (30, 1575, 28119, 7897, 4903)),
        ("test", (30, 1464, 28397, 7927, 4676)),
        ("test2", (26, 1334, 17799, 5680, 3679)),
    ],
)
def test_the_published_corpus_is_read_whole(corpora, vocab, part, counts):
    """Documents, sentences, tokens, entities and outer entities."""
    sums: Counter[str] = Counter()
    documents = set()
    for doc in read_docs(corpora / "gum" / "gum.tar.xz", vocab, part):
        documents.add(doc.user_data["document"])
        sums.update(sentences=1, tokens=len(doc), sc=len(doc.spans["sc"]), ents=len(doc.ents))
    assert (len(documents), *sums.values()) == counts
