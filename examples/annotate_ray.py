"""Annotate a folder of Parquet with Ray Data."""

import sys

import ray

from spacy_psa.annotation.row_annotator import RowAnnotator


def main(model: str, source: str, target: str) -> None:
    # Runs on this machine; on a cluster, use ray.init(address="auto").
    ray.init(include_dashboard=False, _node_ip_address="127.0.0.1")
    workers = int(ray.cluster_resources()["CPU"]) - 1  # one core is for the writing
    annotated = ray.data.read_parquet(source).map_batches(
        RowAnnotator,
        fn_constructor_args=(model,),
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
    )
    annotated.write_parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
