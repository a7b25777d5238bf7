"""The features of a frozen encoder on disk."""

import errno
import os
import pickle
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy
import pytest
import spacy
import torch
from thinc.api import set_dropout_rate

from spacy_psa.architectures.feature_cache import GB, FeatureCache
from spacy_psa.errors import InputError

pytest.importorskip("transformers", reason="needs the extra `pretrained`")

from spacy_psa.architectures.pretrained import pretrained
from spacy_psa.modules.pretrained import PretrainedEncoder
from tests.helpers.encoders import write_encoder
from tests.helpers.pipelines import TEXTS


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return str(write_encoder(tmp_path_factory.mktemp("bert")))


@pytest.fixture
def docs():
    return list(spacy.blank("en").pipe([*TEXTS, ""]))


@pytest.fixture
def passes(monkeypatch):
    """The number of words of each pass of an encoder."""
    forward, counts = PretrainedEncoder.forward, []

    def counting(self, ids, lengths, owned, count):
        counts.append(int(count))
        return forward(self, ids, lengths, owned, count)

    monkeypatch.setattr(PretrainedEncoder, "forward", counting)
    return counts


def make(name, cache, docs, **settings):
    model = pretrained(str(name), layers=2, frozen=True, cache=str(cache), **settings)
    return model.initialize(X=docs[:1])


def files(cache):
    return sorted(path for path in Path(cache).rglob("*") if path.is_file())


def compute(model, docs):
    return numpy.concatenate(model.begin_update(docs)[0])


def test_features_are_computed_once_for_passes_and_trainings(bert, docs, passes, tmp_path):
    model = make(bert, tmp_path, docs)
    first = compute(model, docs)
    passes.clear()
    set_dropout_rate(model, 0.5)
    assert numpy.array_equal(compute(model, docs), first)
    assert numpy.array_equal(numpy.concatenate(model.predict(docs)), first)
    again = make(bert, tmp_path, docs)
    assert numpy.array_equal(compute(again, docs[::-1])[-len(docs[0]) :], first[: len(docs[0])])
    assert not passes
    exact = pretrained(bert, layers=2, frozen=True).initialize(X=docs)
    numpy.testing.assert_allclose(compute(exact, docs), first, rtol=1e-2, atol=1e-2)


def test_only_new_docs_are_computed(bert, docs, passes, tmp_path):
    model = make(bert, tmp_path, docs)
    compute(model, docs[:3])
    passes.clear()
    compute(model, docs)
    assert sum(passes) == sum(map(len, docs[3:]))


@pytest.mark.parametrize(
    "settings", [{"window": 200}, {"context": 8}, {"pooling": "first"}, {"precision": "bfloat16"}]
)
def test_features_of_other_settings_or_weights_are_not_used(bert, docs, passes, tmp_path, settings):
    compute(make(bert, tmp_path / "cache", docs, precision="float32"), docs)
    write_encoder(tmp_path / "other", seed=1)
    for name, own in ((bert, settings), (tmp_path / "other", {})):
        model = make(name, tmp_path / "cache", docs, **{"precision": "float32", **own})
        passes.clear()
        features = compute(model, docs)
        assert sum(passes) == sum(map(len, docs))
        expected = pretrained(str(name), layers=2, frozen=True, **{"precision": "float32", **own})
        expected.initialize(X=docs)
        numpy.testing.assert_allclose(features, compute(expected, docs), atol=1e-2)


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "longer"])
def test_a_damaged_file_is_found_and_made_again(bert, docs, tmp_path, damage):
    first = compute(make(bert, tmp_path, docs), docs)
    for path in files(tmp_path):
        data = path.read_bytes()
        changed = data[:7] + bytes([data[7] ^ 1]) + data[8:]
        new = {"cut": data[:-9], "empty": b"", "changed": changed, "longer": data + b"0"}
        path.write_bytes(new[damage])
    for _ in range(2):  # with and without the cache
        assert numpy.array_equal(compute(make(bert, tmp_path, docs), docs), first)


def test_a_model_that_only_annotates_does_not_use_it(bert, docs, passes, tmp_path):
    model = make(bert, tmp_path / "cache", docs)
    loaded = pretrained("/nowhere", layers=2, frozen=True, cache=str(tmp_path / "none"))
    loaded.from_bytes(model.to_bytes())
    expected = compute(model, docs)
    numpy.testing.assert_allclose(
        numpy.concatenate(loaded.predict(docs)), expected, rtol=1e-3, atol=1e-3
    )
    assert not (tmp_path / "none").exists()
    compute(loaded, docs)  # learns on
    assert files(tmp_path / "none")


def test_a_full_cache_keeps_to_its_size(bert, docs, passes, tmp_path):
    whole = tmp_path / "whole"
    compute(make(bert, whole, docs), docs)
    size = sum(path.stat().st_size for path in files(whole))
    with pytest.warns(UserWarning, match="is full: .* raise cache_gb"):
        model = make(bert, tmp_path / "part", docs, cache_gb=size / 2 / GB)
        expected = compute(model, docs)
    passes.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert numpy.allclose(compute(model, docs), expected, atol=1e-2)
    assert 0 < sum(passes) < sum(map(len, docs))
    assert 0 < sum(path.stat().st_size for path in files(tmp_path / "part")) <= size / 2


def test_features_of_encoders_that_are_not_used_make_room(bert, docs, tmp_path):
    write_encoder(tmp_path / "other", seed=1)
    cache = tmp_path / "cache"
    compute(make(tmp_path / "other", cache, docs), docs)
    [old], size = list(cache.iterdir()), sum(path.stat().st_size for path in files(cache))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compute(make(bert, cache, docs, cache_gb=1.5 * size / GB), docs)
    assert not old.exists()
    assert sum(path.stat().st_size for path in files(cache)) == size


def test_what_else_is_in_the_folder_is_neither_counted_nor_removed(bert, docs, tmp_path):
    write_encoder(tmp_path / "other", seed=1)
    whole = tmp_path / "whole"
    compute(make(tmp_path / "other", whole, docs), docs)
    size = sum(path.stat().st_size for path in files(whole))
    cache = tmp_path / "cache"
    (cache / "corpus").mkdir(parents=True)
    (cache / "corpus" / "train.spacy").write_bytes(bytes(10 * size))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in (tmp_path / "other", bert):
            compute(make(name, cache, docs, cache_gb=1.5 * size / GB), docs)
    assert len(list(cache.iterdir())) == 2  # the features of one encoder made room
    assert (cache / "corpus" / "train.spacy").stat().st_size == 10 * size


def test_an_encoder_whose_features_are_only_read_is_in_use(bert, docs, tmp_path):
    cache, folders = tmp_path / "cache", []
    for seed, name in enumerate((bert, tmp_path / "unused")):
        if seed:
            write_encoder(name, seed=seed)
        compute(make(name, cache, docs), docs)
        [new] = set(cache.iterdir()) - set(folders)
        folders.append(new)
        os.utime(new, (seed, seed))
    size = sum(path.stat().st_size for path in files(cache)) / 2
    compute(make(bert, cache, docs), docs)
    compute(
        make(write_encoder(tmp_path / "new", seed=2), cache, docs, cache_gb=2.5 * size / GB), docs
    )
    assert [folder.exists() for folder in folders] == [True, False]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES])
def test_a_disk_that_cannot_be_written_is_an_error(bert, docs, tmp_path, monkeypatch, error):
    model = make(bert, tmp_path, docs)

    def fail(self, data):
        raise OSError(error, "the disk is full")

    before = files(tmp_path)
    with (
        monkeypatch.context() as patch,
        pytest.raises(InputError, match=r"cannot be written \(the"),
    ):
        patch.setattr(Path, "write_bytes", fail)
        compute(model, docs)
    assert files(tmp_path) == before
    compute(model, docs)


def test_a_file_in_place_of_the_folder_is_an_error(bert, docs, tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        compute(make(bert, tmp_path / "cache", docs), docs)


def _compute(model, docs, barrier):
    torch.set_num_threads(1)
    barrier.wait(60)
    model.begin_update(docs)


def test_processes_share_it(bert, docs, passes, tmp_path):
    model = make(bert, tmp_path, docs)
    context = get_context("fork")
    barrier = context.Barrier(2)
    both = [context.Process(target=_compute, args=(model, docs, barrier)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
        assert process.exitcode == 0
    passes.clear()
    compute(model, docs)
    assert not passes and not [path for path in files(tmp_path) if path.name.startswith(".")]


def test_its_state_is_not_sent_to_other_processes(tmp_path):
    cache = FeatureCache(str(tmp_path), 1.0)
    cache.in_use = True
    again = pickle.loads(pickle.dumps(cache))
    assert (again.folder, again.size, again.in_use) == (tmp_path, 1.0, False)


def test_a_folder_that_another_process_removes_is_no_error(tmp_path, monkeypatch):
    cache = FeatureCache(str(tmp_path), 1.0)
    rows = numpy.ones((2, 4), "float16")
    replace = os.replace

    def late(*paths):
        for path in files(tmp_path):
            path.unlink()
        replace(*paths)

    monkeypatch.setattr(os, "replace", late)
    cache.save("encoder", ["a", "b"], rows)
    assert cache.load("encoder", ["a", "b"], 4) is None
    monkeypatch.undo()
    cache.save("encoder", ["a", "b"], rows)
    assert numpy.array_equal(cache.load("encoder", ["a", "b"], 4), rows)


def test_each_pass_marks_the_features_as_used(bert, docs, tmp_path):
    model = make(bert, tmp_path, docs)
    compute(model, docs)
    (folder,) = tmp_path.iterdir()
    os.utime(folder, (0, 0))
    compute(model, docs)
    assert folder.stat().st_mtime > 0
