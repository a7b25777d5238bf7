"""Annotate a folder of JSON lines with Dask."""

import json
import sys

import dask.bag

from spacy_psa.annotation.row_annotator import RowAnnotator


def main(model: str, source: str, target: str) -> None:
    # Runs in processes on this machine; on a cluster, use dask.distributed.Client(address).
    with dask.config.set(scheduler="processes"):
        rows = dask.bag.read_text(f"{source}/*.jsonl").map(json.loads)
        annotated = rows.map_partitions(RowAnnotator(model))
        annotated.map(json.dumps).to_textfiles(f"{target}/*.jsonl")


if __name__ == "__main__":
    main(*sys.argv[1:])
