"""Train a config with several seeds, each as a task of Ray.

Usage: train_ray.py CONFIG OUTPUT SEED[,SEED...] [further options of `spacy-psa train`]
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import ray


@ray.remote(num_cpus=1, max_retries=3)
def train(config: str, output: str, seed: str, settings: list[str]) -> float:
    """Train with one seed and return the dev score. If the task is killed, a retry resumes it."""
    folder = Path(output, f"seed-{seed}")
    command = [sys.executable, "-m", "spacy_psa", "train", config, "--output", str(folder)]
    subprocess.run(
        [*command, "--resume", "--save-every", "500", "--system.seed", seed, *settings],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    finished = json.loads((folder / "model-best" / "meta.json").read_text(encoding="utf8"))
    scores = finished["performance"]
    return next(score for name, score in scores.items() if name.endswith("_f"))


def main(config: str, output: str, seeds: str, *settings: str) -> None:
    # Runs on this machine; on a cluster with a shared folder, use ray.init(address="auto").
    ray.init(include_dashboard=False, _node_ip_address="127.0.0.1")
    # Workers of a cluster also read the data, so its paths must be absolute.
    names = seeds.split(",")
    place = str(Path(output).resolve())
    tasks = [train.remote(str(Path(config).resolve()), place, seed, settings) for seed in names]
    for seed, score in zip(names, ray.get(tasks), strict=True):
        print(f"seed {seed}: {100 * score:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
