"""Pipelines that are trained on a GPU, and what they predict there and on the CPU."""

import subprocess
import sys
from itertools import islice

import pytest
import spacy
import torch
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import Doc
from spacy.training.initialize import init_nlp
from spacy.util import load_config, registry, resolve_dot_names
from thinc.api import use_ops

from spacy_psa.pipeline.prepared import Prepared
from spacy_psa.training import loop
from tests.helpers.paths import CONFIGS, ROOT

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SYSTEMS = (
    "ner/best", "ner/tener", "ner/idcnn", "ner/context", "ner/psa_arxiv", "ner/intnet",
    "chunker/best", "tagger/best", "parser/best", "parser/small", "parser/factored",
)  # fmt: skip


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    command = [sys.executable, "-m", "spacy_psa", "prepare", "sample", "assets", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT)
    return folder


def train(system, sample, updates=6):
    """The pipeline of a config after some updates on a GPU, and the words of held-out docs."""
    paths = {f"paths.{part}": str(sample / f"{part}.spacy") for part in ("train", "dev")}
    nlp = init_nlp(load_config(CONFIGS / f"{system}.cfg", paths, interpolate=False), use_gpu=0)
    config = nlp.config.interpolate()
    settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    corpus, dev = resolve_dot_names(config, [settings["train_corpus"], settings["dev_corpus"]])
    examples, losses = list(islice(corpus(nlp), 10 * updates)), []
    for start in range(0, len(examples), 10):
        found = nlp.update(examples[start : start + 10], sgd=settings["optimizer"], losses={})
        losses.append(sum(found.values()))
    assert all(loss == loss for loss in losses)
    return nlp, [[token.text for token in eg.reference] for eg in islice(dev(nlp), 30)]


def test_a_training_reads_its_steps_ahead(sample, tmp_path, monkeypatch):
    updates, update = [], Prepared.update

    def noted(self, *arguments):
        updates.append(len(self))
        update(self, *arguments)

    monkeypatch.setattr(Prepared, "update", noted)
    paths = {f"paths.{part}": str(sample / f"{part}.spacy") for part in ("train", "dev")}
    overrides = {**paths, "training.max_steps": 4, "training.eval_frequency": 2}
    with use_ops("cupy"):
        nlp = init_nlp(load_config(CONFIGS / "ner" / "best.cfg", overrides, False), use_gpu=0)
        model = loop.train(nlp, tmp_path, use_gpu=0)
    assert len(updates) == 5 and spacy.load(model).pipe_names == ["ner"]


def annotated(nlp, words):
    docs = list(nlp.pipe(Doc(nlp.vocab, words=each) for each in words))
    return [doc.to_json() for doc in docs], docs


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_pipeline_of_a_gpu_predicts_the_same_on_the_cpu(system, sample, tmp_path):
    with use_ops("cupy"):
        nlp, words = train(system, sample)
        there, _ = annotated(nlp, words)
        nlp.to_disk(tmp_path / "model")
    with use_ops("numpy"):
        here, _ = annotated(spacy.load(tmp_path / "model"), words)
    same = sum(one == other for one, other in zip(here, there, strict=True))
    assert same >= len(here) - 1  # of two nearly equal analyses, rounding may choose the other
    with use_ops("cupy"):
        again, _ = annotated(spacy.load(tmp_path / "model"), words)
    assert again == there


def test_probabilities_and_further_analyses_come_from_a_gpu(sample, tmp_path):
    with use_ops("cupy"):
        nlp, words = train("ner/best", sample)
        nlp.to_disk(tmp_path / "model")
    found = []
    for ops in ("cupy", "numpy"):
        with use_ops(ops):
            pipe = spacy.load(tmp_path / "model").get_pipe("ner")
            doc = Doc(pipe.vocab, words=words[0])
            found.append([score for score, _ in pipe.kbest(doc, 5)])
    assert found[0] == pytest.approx(found[1], abs=1e-3)
    assert len(found[0]) == 5
