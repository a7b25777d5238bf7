"""The annotator that data engines send to their workers."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_psa.annotation.row_annotator import RowAnnotator
from spacy_psa.annotation.rows import json_line
from spacy_psa.errors import InputError, SettingError
from tests.helpers.pipelines import TEXTS, spans_of

ADA = {"start": 0, "end": 12, "label": "PER", "text": "Ada Lovelace"}
ROWS = [{"id": 1, "text": "Ada Lovelace left."}, {"id": 2, "text": None}, {"id": 3, "text": ""}]
NO_TEXT = "the text is a NoneType, not a string"


def test_rows_keep_their_keys_and_get_the_annotation(model):
    assert RowAnnotator(model)(iter(ROWS)) == [
        {"id": 1, "text": "Ada Lovelace left.", "ents": [ADA], "error": None},
        {"id": 2, "text": None, "ents": None, "error": NO_TEXT},
        {"id": 3, "text": "", "ents": [], "error": None},
    ]


def test_annotation_of_an_earlier_run_does_not_stay(model):
    old = {"text": "here", "ents": [ADA], "spans": {"a": []}, "tokens": [], "error": "no"}
    assert RowAnnotator(model)([old]) == [{"text": "here", "ents": [], "error": None}]


def test_a_table_of_arrow_gets_columns_of_one_type_whatever_is_in_it(model):
    pyarrow = pytest.importorskip("pyarrow")
    from spacy_psa.annotation.tables import ARROW_SCHEMA

    table = pyarrow.Table.from_pylist(ROWS)
    found = RowAnnotator(model, tokens=True)(table)
    assert found.schema.names == ["id", "text", *ARROW_SCHEMA.names]
    assert found.column("id").to_pylist() == [1, 2, 3]
    assert found.column("ents").to_pylist() == [[ADA], None, []]
    assert found.column("error").to_pylist() == [None, NO_TEXT, None]
    assert found.column("tokens").to_pylist()[0][0] == {"start": 0, "end": 3, "tag": None}
    assert RowAnnotator(model)(table.slice(1, 1)).schema == found.schema
    assert RowAnnotator(model)(table.slice(0, 0)).schema == found.schema
    assert RowAnnotator(model)(found).schema == found.schema
    (batch,) = table.to_batches()
    assert RowAnnotator(model)(batch).column("ents").to_pylist() == [[ADA], None, []]


def test_a_data_frame_keeps_its_index_and_its_columns(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, index=[7, 5, 7])
    found = RowAnnotator(model)(frame)
    assert list(found.columns) == ["id", "text", "ents", "spans", "tokens", "error"]
    assert list(found.index) == [7, 5, 7] and list(frame.columns) == ["id", "text"]
    assert list(found["ents"]) == [[ADA], None, []]
    stream = RowAnnotator(model).stream(iter([frame, frame]))
    assert [len(each) for each in stream] == [3, 3]


def test_span_groups_come_with_their_scores(trained_path):
    pyarrow = pytest.importorskip("pyarrow")
    nlp = spacy.load(trained_path, config={"components": {"ner": {"confidence": True}}})
    doc = nlp(TEXTS[0])
    path = trained_path.parent / "confident"
    nlp.to_disk(path)
    annotator = RowAnnotator(str(path))
    (row,) = annotator([{"text": TEXTS[0]}])
    assert [span["score"] for span in row["spans"]["ner"]] == pytest.approx(
        list(doc.spans["ner"].attrs["scores"])
    )
    table = annotator(pyarrow.table({"text": [TEXTS[0]]}))
    assert dict(table.column("spans").to_pylist()[0]) == row["spans"]


def test_documents_can_come_as_bytes_of_a_docbin(model):
    pyarrow = pytest.importorskip("pyarrow")
    table = RowAnnotator(model, docbin=True)(pyarrow.Table.from_pylist(ROWS))
    assert table.schema.names == ["id", "text", "docbin", "error"]
    packed, none, _ = table.column("docbin").to_pylist()
    (doc,) = DocBin().from_bytes(packed).get_docs(spacy.blank("en").vocab)
    assert spans_of(doc.ents) == [(0, 2, "PER")] and none is None


def test_the_pipeline_does_not_travel_even_after_it_was_used(model):
    annotator = RowAnnotator(model)
    before = pickle.dumps(annotator)
    assert annotator(ROWS) == pickle.loads(before)(ROWS)
    assert pickle.dumps(annotator) == before and len(before) < 1000


def test_a_worker_in_another_folder_finds_the_pipeline(model, tmp_path, monkeypatch):
    monkeypatch.chdir(Path(model).parent)
    annotator = RowAnnotator(Path(model).name)
    monkeypatch.chdir(tmp_path)
    assert annotator.model == model and len(annotator(ROWS)) == 3


def test_each_process_opens_the_pipeline_once(model, monkeypatch):
    annotator = RowAnnotator(model)
    annotator(ROWS)
    monkeypatch.setattr(spacy, "load", None)
    assert len(pickle.loads(pickle.dumps(annotator))(ROWS)) == 3


def test_words_of_the_input_do_not_stay_in_memory(model):
    from spacy_psa.annotation.row_annotator import open_once

    nlp = open_once(model)
    RowAnnotator(model)([{"text": "warm"}])
    before = len(nlp.vocab.strings)
    RowAnnotator(model, batch_size=10)([{"text": f"word{i}"} for i in range(100)])
    assert len(nlp.vocab.strings) == before


def test_threads_take_turns(model):
    annotator = RowAnnotator(model, batch_size=1)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(annotator, [[{"text": "in London"}] * 20] * 8))
    assert all(row["ents"][0]["text"] == "London" for rows in found for row in rows)


def test_wrong_settings_and_batches_are_errors(model, tmp_path):
    with pytest.raises(SettingError, match="batch_size is 0"):
        RowAnnotator(model, batch_size=0)
    with pytest.raises(InputError, match="text_key ents: the annotation has this key"):
        RowAnnotator(model, text_key="ents")
    with pytest.raises(InputError, match='map_batches with batch_format="pyarrow"'):
        RowAnnotator(model)({"text": ["a"]})
    with pytest.raises(InputError, match="no pipeline to open"):
        RowAnnotator(str(tmp_path / "nothing"))(ROWS)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="there is no column body among id, text"):
        RowAnnotator(model, text_key="body")(pandas.DataFrame(ROWS))


def test_spark_and_arrow_have_the_same_columns():
    types = pytest.importorskip("pyspark.sql.pandas.types", reason="pyspark is not installed")
    from spacy_psa.annotation.tables import ARROW_SCHEMA, SPARK_SCHEMA

    fields = types.from_arrow_schema(ARROW_SCHEMA).fields
    found = ",".join(f"{field.name}{field.dataType.simpleString()}" for field in fields)
    assert found == SPARK_SCHEMA.replace(" ", "")


def test_numbers_that_json_does_not_know_are_null():
    row = {"a": [1.5, float("nan")], "b": {"c": float("-inf")}, "text": "\ud800"}
    assert json.loads(json_line(row)) == {"a": [1.5, None], "b": {"c": None}, "text": "\ud800"}
