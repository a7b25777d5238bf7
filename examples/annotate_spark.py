"""Annotate a folder of Parquet with Spark."""

import sys

from pyspark.sql import SparkSession

from spacy_psa.annotation.row_annotator import RowAnnotator
from spacy_psa.annotation.tables import SPARK_SCHEMA


def main(model: str, source: str, target: str) -> None:
    # Runs on this machine; on a cluster, use spark-submit.
    spark = (
        SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    )
    texts = spark.read.parquet(source)
    columns = [f"`{name}` {kind}" for name, kind in texts.dtypes]
    annotator = RowAnnotator(model)
    annotated = texts.mapInPandas(annotator.stream, ", ".join([*columns, SPARK_SCHEMA]))
    annotated.write.parquet(target)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
