"""What travels to a machine with a GPU, and how it is unpacked there."""

import importlib.metadata
import os
import subprocess
import sys
import tarfile

import numpy
import pytest
import spacy

from benchmarks.gpu.pack import main, store, unpack
from benchmarks.gpu.start import unpack_site
from spacy_psa.corpora.docbin import write_docbin
from tests.helpers.paths import ROOT
from tests.helpers.pipelines import make_examples

JOBS = """
[jobs.import]
command = "packed_module"
"""


def make_corpus(folder, vectors):
    """A corpus as `convert` makes it: files of docs, and a folder of vectors."""
    nlp = spacy.blank("en")
    for word, vector in zip(("Ada", "Leeds"), vectors, strict=True):
        nlp.vocab.set_vector(word, vector)
    folder.mkdir(parents=True)
    write_docbin([each.reference for each in make_examples(nlp)], folder / "train.spacy")
    nlp.to_disk(folder / "vectors")
    return folder


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rounded = numpy.array([[0.12345, -3.00001, 0.0], [1.5, -0.00001, 42.0]], dtype="float32")
    make_corpus(tmp_path / "corpus" / "one", rounded)
    make_corpus(tmp_path / "corpus" / "other", rounded)
    make_corpus(tmp_path / "corpus" / "exact", rounded / 3)
    return tmp_path / "corpus"


def test_corpora_come_back_as_they_were(corpora, tmp_path, monkeypatch):
    names = ["corpus/one", "corpus/other", "corpus/exact"]
    monkeypatch.setattr(sys, "argv", ["pack", "packed.tar.xz", *names])
    main()
    unpack(tmp_path / "packed.tar.xz", tmp_path / "there")
    assert contents(tmp_path / "there" / "corpus") == contents(corpora)
    with tarfile.open("packed.tar.xz") as archive:
        stored = [member.name for member in archive]
    assert len(stored) == len(set(stored))  # what corpora share is stored once


def test_vectors_are_stored_as_integers_where_that_is_exact(corpora):
    kinds = {
        corpus: store(corpora / corpus / "vectors" / "vocab" / "vectors")[0]
        for corpus in ("one", "exact")
    }
    assert kinds == {"one": "vectors", "exact": "bytes"}


def test_the_entry_points_are_those_of_the_package(tmp_path):
    with tarfile.open(tmp_path / "site.tar.xz", "w:xz"):
        pass
    unpack_site(tmp_path / "site.tar.xz", tmp_path / "site")
    (found,) = importlib.metadata.distributions(path=[str(tmp_path / "site")])
    installed = importlib.metadata.distribution("spacy-psa")
    ours = {(point.group, point.name, point.value) for point in found.entry_points}
    theirs = {(point.group, point.name, point.value) for point in installed.entry_points}
    assert ours == {point for point in theirs if point[0] != "console_scripts"}
    assert found.version == installed.version


def test_the_jobs_run_with_the_packages_that_were_packed(corpora, tmp_path):
    (tmp_path / "packed_module.py").write_text(
        "import pathlib; print(*pathlib.Path('corpus').iterdir())"
    )
    with tarfile.open(tmp_path / "site.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "packed_module.py", "packed_module.py")
    (tmp_path / "packed_module.py").unlink()
    (tmp_path / "jobs.toml").write_text(JOBS)
    command = [sys.executable, "-m", "benchmarks.gpu"]
    there = tmp_path / "there"
    there.mkdir()
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [*command[:2], "benchmarks.gpu.pack", "packed.tar.xz", "corpus/one"], check=True, env=env
    )
    archives = ["../site.tar.xz", "../packed.tar.xz"]
    words = ["../jobs.toml", "out", "--minutes", "1", "--gpu-id", "-1"]
    started = [*command[:2], "benchmarks.gpu.start", *archives, *words]
    subprocess.run(started, check=True, env=env, cwd=there)
    with tarfile.open(there / "out" / "records.tar.gz") as archive:
        printed = archive.extractfile("import.txt").read().decode()
    assert printed.split() == [os.path.join("corpus", "one")]
