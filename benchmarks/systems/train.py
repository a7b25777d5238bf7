"""Train systems of the papers on real corpora, one after the other, and record them.

usage: python benchmarks/systems.py NAME ... [--seed 0]

NAMEs are those of benchmarks/systems.yml. In a project's folder, whose `assets` and `convert`
have made the corpora; models come into training/NAME. Writes benchmarks/results/NAME.json.
What has a result, or is being trained by another process, is left out, so that two
processes can share one list; a training that was cut short leaves training/NAME behind, to
be removed before it is begun again.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import srsly

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def run(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", *map(str, words)], check=True)


def record(name: str, system: dict[str, Any], seed: int) -> None:
    out, corpus = Path("training", name), Path("corpus", system["corpus"])
    base = f"configs/{system['task']}/{system['config']}.cfg"
    laid_over = f"configs/corpora/{system['corpus']}.cfg"
    config, log = out / "config.cfg", out / "log.jsonl"
    run("spacy_psa", "merge-config", base, laid_over, config, *system["settings"], "--log", log)
    paths = "--paths.train", corpus / "train.spacy", "--paths.dev", corpus / "dev.spacy"
    run("spacy", "train", config, "--output", out, *paths, "--system.seed", str(seed))
    model, test = out / "model-best", corpus / "test.spacy"
    data = "--data", Path("assets", system["corpus"]), "--data", corpus
    run("spacy_psa", "report", model, test, "--output", out / name, "--log", log, *data)
    (out / f"{name}.json").replace(RESULTS / f"{name}.json")


def main() -> None:
    systems = srsly.read_yaml(HERE / "systems.yml")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", choices=sorted(systems), metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for corpus in {systems[name]["corpus"] for name in given.names}:
        if not Path("corpus", corpus).exists():
            parser.error(
                f"corpus/{corpus} is not there: python -m spacy project run assets (then convert) "
                f". --vars.corpus {corpus}"
            )
    for name in given.names:
        if (RESULTS / f"{name}.json").exists():
            print(f"{name}: there is a result")
            continue
        try:
            Path("training", name).mkdir(parents=True)
        except FileExistsError:
            print(f"{name}: training/{name} is there already")
            continue
        record(name, systems[name], given.seed)


if __name__ == "__main__":
    main()
