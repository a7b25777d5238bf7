"""The list of shards, and outputs that appear whole or not at all."""

import pickle

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem, _MockFileSystem

from spacy_psa.annotation.row_annotator import RowAnnotator
from spacy_psa.annotation.shard_annotator import ShardAnnotator
from spacy_psa.annotation.shards import Place, check_apart, find_shards, finished, whole_file
from spacy_psa.errors import InputError


def fill(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")


def named(folder, suffix=None, wanted="auto"):
    shards = find_shards(Place.of(str(folder)), suffix, wanted)
    return {shard.source: shard.target for shard in shards}


def test_each_file_of_a_folder_is_a_shard_with_an_output(tmp_path):
    fill(tmp_path, "b.txt", "a.JSONL", "c/d.ndjson.gz", "c/e.parquet", "part-00", "v1.2.txt")
    fill(tmp_path, "_SUCCESS", ".hidden.txt", "_temporary/x.txt")
    assert named(tmp_path) == {
        "a.JSONL": "a.jsonl",
        "b.txt": "b.jsonl",
        "c/d.ndjson.gz": "c/d.jsonl",
        "c/e.parquet": "c/e.parquet",
        "part-00": "part-00.jsonl",
        "v1.2.txt": "v1.2.jsonl",
    }
    assert set(named(tmp_path, ".parquet").values()) == {
        "a.parquet",
        "b.parquet",
        "c/d.parquet",
        "c/e.parquet",
        "part-00.parquet",
        "v1.2.parquet",
    }


def test_one_file_is_one_shard(tmp_path):
    fill(tmp_path, "a.txt")
    (shard,) = find_shards(Place.of(str(tmp_path / "a.txt")), None, "auto")
    assert (shard.source, shard.target, shard.size) == ("", "a.jsonl", 2)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["a.txt", "a.jsonl"], "a.jsonl and a.txt would have one output, a.jsonl"),
        (["a.csv"], "a.csv: cannot tell the format from the name"),
        (["a.spacy"], "a.spacy: shards are text, JSON lines or Parquet"),
        (["_SUCCESS"], "there is no file in this folder"),
    ],
)
def test_a_folder_that_cannot_be_annotated_is_an_error(tmp_path, names, reason):
    fill(tmp_path, *names)
    with pytest.raises(InputError, match=reason):
        named(tmp_path)


def test_a_place_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(InputError, match="there is no such file or folder"):
        named(tmp_path / "nothing")
    with pytest.raises(InputError, match="there is no file system for it"):
        Place.of("nowhere://bucket/folder")


def test_names_without_a_format_are_taken_for_the_format_that_is_given(tmp_path):
    fill(tmp_path, "a.csv")
    assert named(tmp_path, wanted="text") == {"a.csv": "a.jsonl"}


@pytest.mark.parametrize("target", [".", "out", "deep/out"])
def test_an_output_inside_the_input_is_an_error(tmp_path, target):
    fill(tmp_path, "a.jsonl")
    source = Place.of(str(tmp_path))
    shards = find_shards(source, None, "auto")
    with pytest.raises(InputError, match="choose another folder for the output"):
        check_apart(source, Place.of(str(tmp_path / target)), shards)
    check_apart(source, Place.of(f"{tmp_path}-out"), shards)


def test_an_output_that_would_replace_its_input_is_an_error(tmp_path):
    fill(tmp_path, "a.jsonl", "b.txt")
    for name, clash in (("a.jsonl", True), ("b.txt", False)):
        source = Place.of(str(tmp_path / name))
        shards = find_shards(source, None, "auto")
        if clash:
            with pytest.raises(InputError, match="choose another folder"):
                check_apart(source, Place.of(str(tmp_path)), shards)
        else:
            check_apart(source, Place.of(str(tmp_path)), shards)


def filesystems(tmp_path):
    return [
        Place(LocalFileSystem(), tmp_path.as_posix()),
        Place.of(tmp_path.as_uri()),
        Place(SubTreeFileSystem(str(tmp_path), LocalFileSystem()), "folder"),
        Place(_MockFileSystem(), "folder"),
    ]


def names_of(place):
    from pyarrow.fs import FileSelector, FileType

    found = place.filesystem.get_file_info(FileSelector(place.path, recursive=True))
    return {
        info.path.removeprefix(f"{place.path}/") for info in found if info.type is FileType.File
    }


@pytest.mark.parametrize("number", range(4))
def test_a_file_appears_whole_or_not_at_all(tmp_path, number):
    target = filesystems(tmp_path)[number]
    for content in (b"1", b"22"):  # the second time it replaces the first
        with whole_file(target.below("sub/a.jsonl")) as stream:
            stream.write(content)
    with pytest.raises(RuntimeError), whole_file(target.below("b.jsonl")) as stream:
        stream.write(b"3")
        raise RuntimeError
    assert names_of(target) == {"sub/a.jsonl"} == finished(target)
    with target.filesystem.open_input_stream(target.below("sub/a.jsonl").path) as stream:
        assert stream.read() == b"22"


def test_what_killed_workers_left_is_removed_and_nothing_else(tmp_path):
    left = f".a.jsonl.{'0f' * 16}.tmp"
    fill(tmp_path, "a.jsonl", left, f"sub/{left}", ".notes.tmp", "b.tmp")
    target = Place.of(str(tmp_path))
    assert finished(target) == {"a.jsonl", ".notes.tmp", "b.tmp"} == names_of(target)
    assert finished(target.below("nothing")) == set()
    with pytest.raises(InputError, match="is a file; choose a folder"):
        finished(target.below("a.jsonl"))


def test_places_can_be_pickled(tmp_path):
    place = Place.of(tmp_path.as_uri())
    assert pickle.loads(pickle.dumps(place)) == place


@pytest.fixture
def bucket(monkeypatch):
    """The address of a folder in an object store of this machine, and what follows it."""
    needed = "moto is missing, or too old for pyarrow: pip install 'moto[s3,server]>=5.2.2'"
    pytest.importorskip("moto", minversion="5.2.2", reason=needed)
    pytest.importorskip("moto.server", reason=needed)
    from moto.server import ThreadedMotoServer

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "anything")
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    query = f"?scheme=http&region=us-east-1&endpoint_override={host}:{port}"
    Place.of(f"s3://bucket{query}&allow_bucket_creation=true").filesystem.create_dir("bucket")
    yield lambda name: f"s3://bucket/{name}{query}"
    server.stop()


def test_shards_of_an_object_store_are_annotated_and_appear_whole(model, bucket):
    source, target = Place.of(bucket("in")), pickle.loads(pickle.dumps(Place.of(bucket("out"))))
    for name, content in (("a.jsonl", b'{"text": "in London"}\n'), ("b.jsonl", b"no\n")):
        with whole_file(source.below(name)) as stream:
            stream.write(content)
    shards = find_shards(source, None, "auto")
    check_apart(source, target, shards)
    annotator = ShardAnnotator(source, target, RowAnnotator(model))
    first, second = map(pickle.loads(pickle.dumps(annotator)), shards)
    assert first.docs == 1 and second.error.startswith("b.jsonl:1: not JSON")
    assert names_of(target) == {"a.jsonl"} == finished(target)
    with pytest.raises(InputError, match="choose another folder"):
        check_apart(source, source.below("out"), shards)
