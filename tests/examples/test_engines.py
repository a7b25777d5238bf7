"""The examples for data engines, where the engine is installed."""

import json
import shutil
import subprocess
import sys

import pytest
import spacy
from spacy.tokens import DocBin

from tests.helpers.paths import ROOT
from tests.helpers.patience import PATIENCE
from tests.helpers.pipelines import make_examples
from tests.helpers.trainings import make_config

COUNT = 60
EXAMPLES = ROOT / "examples"


@pytest.fixture
def model(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "LOC", "pattern": "London"}])
    nlp.to_disk(tmp_path / "model")
    return tmp_path / "model"


def rows():
    texts = ["in London", "nowhere", None]
    return [{"id": number, "text": texts[number % 3]} for number in range(COUNT)]


def run(name, model, folder):
    command = [sys.executable, EXAMPLES / name, model, folder / "in", folder / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def check(found):
    """All rows are there once, with their annotation."""
    found = sorted(found, key=lambda row: row["id"])
    assert [row["id"] for row in found] == list(range(COUNT))
    for row in found:
        if row["text"] is None:
            assert row["ents"] is None and "not a string" in row["error"]
        else:
            names = [(ent["start"], ent["label"], ent["text"]) for ent in row["ents"]]
            assert names == ([(3, "LOC", "London")] if row["text"] == "in London" else [])
            assert row["error"] is None


def write_parquet(folder):
    import pyarrow
    from pyarrow import parquet

    (folder / "in").mkdir()
    for number in range(3):
        part = pyarrow.Table.from_pylist(rows()[20 * number : 20 * number + 20])
        parquet.write_table(part, folder / "in" / f"{number}.parquet")


def read_parquet(folder):
    from pyarrow import parquet

    return parquet.read_table(folder / "out").to_pylist()


@pytest.mark.usefixtures("on_ray")
def test_ray_data(model, tmp_path):
    write_parquet(tmp_path)
    run("annotate_ray.py", model, tmp_path)
    check(read_parquet(tmp_path))


def test_spark(model, tmp_path):
    pytest.importorskip("pyspark", reason="Spark is not installed: pip install pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    write_parquet(tmp_path)
    run("annotate_spark.py", model, tmp_path)
    check(read_parquet(tmp_path))


def test_dask(model, tmp_path):
    pytest.importorskip("dask", reason="Dask is not installed: pip install dask")
    (tmp_path / "in").mkdir()
    for number in range(3):
        lines = [json.dumps(row) for row in rows()[20 * number : 20 * number + 20]]
        (tmp_path / "in" / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
    run("annotate_dask.py", model, tmp_path)
    outputs = sorted((tmp_path / "out").glob("*.jsonl"))
    check([json.loads(line) for path in outputs for line in path.read_text().splitlines()])


@pytest.mark.usefixtures("on_ray")
def test_seeds_as_tasks_of_ray(tmp_path):
    docs = [example.reference for example in make_examples(spacy.blank("en"))]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    config = make_config(tmp_path / "train.spacy", max_steps=8, eval_frequency=4)
    config["training"]["logger"]["output_file"] = None
    config["system"]["seed"] = 0
    config["training"]["seed"] = "${system.seed}"
    config.to_disk(tmp_path / "tiny.cfg", interpolate=False)
    command = [sys.executable, EXAMPLES / "train_ray.py", tmp_path / "tiny.cfg", tmp_path / "out"]
    done = subprocess.run(
        [*command, "1,2"], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    assert [line.partition(":")[0] for line in lines] == ["seed 1", "seed 2"]
    weights = {(tmp_path / f"out/seed-{n}/model-best/ner/model").read_bytes() for n in (1, 2)}
    assert len(weights) == 2
