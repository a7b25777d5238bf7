"""Shards annotated one by one, as a worker does it."""

import gzip
import json
import pickle

import pytest

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
from pyarrow import parquet  # noqa: E402

from spacy_psa.annotation.row_annotator import RowAnnotator  # noqa: E402
from spacy_psa.annotation.shard_annotator import (  # noqa: E402
    MESSAGES,
    ROW_GROUP,
    ShardAnnotator,
)
from spacy_psa.annotation.shards import Place, find_shards  # noqa: E402
from tests.helpers.commands import command  # noqa: E402

run = command("annotate")
ADA = {"start": 0, "end": 12, "label": "PER", "text": "Ada Lovelace"}
LINES = [
    {"id": 1, "text": "Ada Lovelace left."},
    {"id": "\ud800", "text": "in London"},
    {"text": ""},
]


class Worker:
    """Annotates the files of a folder, in this process."""

    def __init__(self, model, folder):
        self.model = model
        self.source, self.target = folder / "in", folder / "out"
        self.source.mkdir()

    def put(self, name, content):
        (self.source / name).write_bytes(content)

    def put_lines(self, name, rows):
        self.put(name, "".join(json.dumps(row) + "\n" for row in rows).encode())

    def put_table(self, name, table):
        parquet.write_table(table, self.source / name)

    def __call__(self, suffix=None, skip_bad=False, **settings):
        places = Place.of(str(self.source)), Place.of(str(self.target))
        work = RowAnnotator(self.model, **settings)
        annotator = ShardAnnotator(*places, work, "auto", skip_bad)
        annotator = pickle.loads(pickle.dumps(annotator))
        return [annotator(shard) for shard in find_shards(places[0], suffix, "auto")]

    def names(self):
        return sorted(path.name for path in self.target.rglob("*") if path.is_file())

    def lines(self, name):
        return [json.loads(line) for line in (self.target / name).read_bytes().splitlines()]


@pytest.fixture
def worker(model, tmp_path):
    return Worker(model, tmp_path)


def test_lines_are_written_as_annotate_writes_them(worker, tmp_path):
    worker.put_lines("a.jsonl", LINES)
    worker.put("b.txt", b"\xef\xbb\xbfAda Lovelace left.\r\n\nin London")
    worker.put("c.txt.gz", gzip.compress(b"in London\n"))
    reports = worker(tokens=True)
    assert [(report.docs, report.error) for report in reports] == [(3, None), (3, None), (1, None)]
    assert sum(report.words for report in reports) == 4 + 2 + 4 + 2 + 2
    for name, made in (("a.jsonl", "a.jsonl"), ("b.txt", "b.jsonl"), ("c.txt.gz", "c.jsonl")):
        alone = tmp_path / "alone.jsonl"
        assert run(worker.model, worker.source / name, alone, "--tokens").exit_code == 0
        assert (worker.target / made).read_bytes() == alone.read_bytes()


def test_lines_can_become_a_table(worker):
    worker.put_lines("a.jsonl", LINES)
    worker.put("b.txt", b"in London\n")
    worker(".parquet")
    first, second = (parquet.read_table(worker.target / f"{name}.parquet") for name in "ab")
    assert first.schema == second.schema
    assert first.schema.names == ["text", "meta", "ents", "spans", "tokens"]
    assert first.column("meta").to_pylist() == ['{"id": 1}', '{"id": "\\ud800"}', None]
    assert first.column("text").to_pylist() == ["Ada Lovelace left.", "in London", ""]
    assert first.column("ents").to_pylist()[0] == [ADA]


def test_a_table_keeps_its_columns_and_their_types(worker):
    table = pyarrow.table(
        {
            "id": pyarrow.array([1, 2, 3], pyarrow.uint16()),
            "body": pyarrow.array(["Ada Lovelace left.", "in London", ""], pyarrow.large_string()),
            "day": pyarrow.array([0, None, 2], pyarrow.timestamp("ns")),
            "ents": ["old"] * 3,
        }
    )
    worker.put_table("a.parquet", table)
    (report,) = worker(text_key="body")
    assert (report.docs, report.replaced, report.error) == (3, ["ents"], None)
    found = parquet.read_table(worker.target / "a.parquet")
    assert found.select(["id", "body", "day"]) == table.select(["id", "body", "day"])
    assert found.schema.names == ["id", "body", "day", "ents", "spans", "tokens"]
    assert [len(ents) for ents in found.column("ents").to_pylist()] == [1, 1, 0]


def test_a_table_can_become_lines(worker):
    day = pyarrow.array([0], pyarrow.date32())
    worker.put_table("a.parquet", pyarrow.table({"text": ["in London"], "day": day, "ents": [1]}))
    worker(".jsonl")
    (row,) = worker.lines("a.jsonl")
    assert (row["day"], row["text"]) == ("1970-01-01", "in London")
    assert [ent["text"] for ent in row["ents"]] == ["London"]


def test_large_tables_are_read_in_batches_and_written_in_groups(worker):
    count = 2 * ROW_GROUP + 5
    table = pyarrow.table({"id": list(range(count)), "text": ["x"] * count})
    worker.put_table("a.parquet", table)
    worker(batch_size=1000)
    found = parquet.ParquetFile(worker.target / "a.parquet")
    assert found.read(["id"]).column("id") == table.column("id")
    assert 2 <= found.num_row_groups <= 3


def test_empty_shards_give_empty_outputs(worker):
    worker.put("a.txt", b"")
    worker.put_table("b.parquet", pyarrow.table({"text": pyarrow.array([], pyarrow.string())}))
    assert [(report.docs, report.error) for report in worker()] == [(0, None), (0, None)]
    assert worker.lines("a.jsonl") == []
    assert parquet.read_table(worker.target / "b.parquet").num_rows == 0


def test_an_output_that_is_there_is_kept(worker):
    worker.put("a.txt", b"in London\n")
    worker()
    (worker.target / "a.jsonl").write_text("mine\n")
    (report,) = worker()
    assert report.kept and (worker.target / "a.jsonl").read_text() == "mine\n"


def test_bad_documents_are_named_and_left_out(worker):
    worker.put("a.jsonl", b'{"text": "in London"}\nno\n{"text": 3}\n')
    worker.put_table("b.parquet", pyarrow.table({"id": [1, 2], "text": [None, "in London"]}))
    first, second = worker(skip_bad=True)
    assert (first.docs, first.bad, first.failed) == (1, 2, 0)
    assert [message.partition(":")[2][0] for message in first.messages] == ["2", "3"]
    assert second.messages == ["b.parquet: row 1: skipped: the text is a NoneType, not a string"]
    assert len(worker.lines("a.jsonl")) == 1
    assert parquet.read_table(worker.target / "b.parquet").column("id").to_pylist() == [2]


def test_documents_that_fail_are_left_out(worker):
    worker.put("a.txt", b"x" * 1_000_001 + b"\nin London\n")
    (report,) = worker()
    assert (report.docs, report.failed, report.error) == (1, 1, None)
    assert report.messages[0].startswith("a.txt:1: not annotated: ValueError")


def test_a_report_does_not_grow_with_the_number_of_bad_documents(worker):
    worker.put("a.jsonl", b"no\n" * 5000 + b'{"text": "x"}\n')
    (report,) = worker(skip_bad=True)
    assert report.bad == 5000 and len(report.messages) == MESSAGES


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.jsonl", b'{"text": "x"}\nno\n', "a.jsonl:2: not JSON"),
        ("a.jsonl", b'{"body": "x"}\n', 'a.jsonl:1: not an object with a string under "text"'),
        ("a.txt", b"\xff\n", "a.txt:1: not UTF-8"),
        (
            "a.txt.gz",
            gzip.compress(b"x\n" * 10000, mtime=0)[:-20],
            "a.txt.gz: the gzip file is broken",
        ),
        ("a.parquet", b"PAR1 or not", "a.parquet: is not a Parquet file, or is broken"),
    ],
)
def test_a_shard_that_is_broken_is_not_written_and_the_others_are(worker, name, content, reason):
    worker.put(name, content)
    worker.put("b.txt", b"in London\n")
    first, second = worker()
    assert first.error.startswith(reason) and not first.fatal
    assert second.error is None and worker.names() == ["b.jsonl"]


def test_a_shard_without_the_text_or_without_any_good_document_is_not_written(worker):
    worker.put("a.jsonl", b"no\nno\n")
    worker.put_table("b.parquet", pyarrow.table({"body": ["x"]}))
    errors = [report.error for report in worker(skip_bad=True)]
    assert errors == [
        "a.jsonl: none of 2 docs was annotated",
        "b.parquet: there is no column text among body; choose another --text-key",
    ]
    assert worker.names() == []


def test_an_output_that_cannot_be_written_is_in_the_report(worker):
    worker.put("a.txt", b"in London\n")
    worker.target.write_text("a file")
    (report,) = worker()
    assert report.error.startswith("a.txt: cannot be read or written") and not report.fatal


def test_a_pipeline_that_cannot_be_opened_ends_all(worker, tmp_path):
    worker.model = str(tmp_path / "nothing")
    worker.put("a.txt", b"in London\n")
    (report,) = worker()
    assert report.fatal and "no pipeline to open" in report.error and worker.names() == []
