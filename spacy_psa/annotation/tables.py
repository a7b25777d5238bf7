"""Annotation as columns of Arrow tables and pandas data frames."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow

_SPAN = [
    ("start", pyarrow.int64()),
    ("end", pyarrow.int64()),
    ("label", pyarrow.string()),
    ("text", pyarrow.string()),
]
_SCORED = pyarrow.struct([*_SPAN, ("score", pyarrow.float64())])
_TOKEN = pyarrow.struct([*_SPAN[:2], ("tag", pyarrow.string())])

ANNOTATION_SCHEMA = pyarrow.schema(
    [
        ("ents", pyarrow.list_(pyarrow.struct(_SPAN))),
        ("spans", pyarrow.map_(pyarrow.string(), pyarrow.list_(_SCORED))),
        ("tokens", pyarrow.list_(_TOKEN)),
    ]
)
"""The columns that have the annotation."""

ARROW_SCHEMA = ANNOTATION_SCHEMA.append(pyarrow.field("error", pyarrow.string()))
"""The columns that `RowAnnotator` adds to a table."""

SPARK_SCHEMA = (
    "ents array<struct<start: bigint, end: bigint, label: string, text: string>>, "
    "spans map<string, array<struct<"
    "start: bigint, end: bigint, label: string, text: string, score: double>>>, "
    "tokens array<struct<start: bigint, end: bigint, tag: string>>, "
    "error string"
)
"""The same columns in the notation of Spark, for the schema that `mapInPandas` needs."""

DOCBIN_SCHEMA = pyarrow.schema([("docbin", pyarrow.binary()), ("error", pyarrow.string())])
"""The columns that `RowAnnotator(docbin=True)` adds to a table."""


def with_columns(batch: Any, rows: Sequence[Mapping[str, Any]], schema: pyarrow.Schema) -> Any:
    """Add columns to a `pandas.DataFrame`, a `pyarrow.Table` or a `pyarrow.RecordBatch`.

    `rows` are the values to add to each row; a missing key is null. The columns of `schema` come
    last; former ones of their names are replaced.
    """
    columns = {name: [row.get(name) for row in rows] for name in schema.names}
    if type(batch).__module__.partition(".")[0] == "pandas":
        import pandas

        kept = batch.drop(columns=[name for name in columns if name in batch.columns])
        # As objects, or pandas would make a column of None one of numbers.
        return kept.assign(
            **{
                name: pandas.Series(column, index=batch.index, dtype=object)
                for name, column in columns.items()
            }
        )
    kept = batch.select([name for name in batch.schema.names if name not in columns])
    for field in schema:
        kept = kept.append_column(field, pyarrow.array(columns[field.name], field.type))
    return kept
