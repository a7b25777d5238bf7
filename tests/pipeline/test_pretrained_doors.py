"""Trained pipelines over `Pretrained.v1` behind the doors that other pipelines have."""

from zipfile import ZipFile

import pytest
import spacy
import torch
from spacy.tokens import DocBin
from starlette.testclient import TestClient
from thinc.api import Adam, fix_random_seed

from spacy_psa.errors import InputError
from spacy_psa.laboratory.analyses.analyze import blocks
from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.models import ServedModel
from spacy_psa.trained.publication import Description, package
from spacy_psa.trained.quantization import quantize
from tests.helpers.encoders import pretrained, write_encoder
from tests.helpers.pipelines import TEXTS, make_examples, train

SIZES = {"hidden_size": 128, "intermediate_size": 512}  # layers that are large enough for int8
ENCODE = {"@architectures": "spacy-psa.SelfAttentiveBiLSTM.v1", "hidden": 8, "heads": 2}


@pytest.fixture(scope="module", params=[False, True], ids=["fine-tuned", "frozen"])
def model(request, tmp_path_factory):
    """The folder of a `crf_ner` over a small encoder, with nothing between the two."""
    fix_random_seed(0)  # a fixture of a module is made before `one_seed`
    folder = tmp_path_factory.mktemp("model")
    embed = pretrained(write_encoder(folder / "source", **SIZES), frozen=request.param)
    return save({"@architectures": "spacy-psa.CRF.v1", "tok2vec": embed}, folder / "model")


def save(model, folder):
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    train(nlp, 20, Adam(0.002))
    nlp.to_disk(folder)
    return folder


def entities(nlp):
    return [[(e.start_char, e.end_char, e.label_) for e in doc.ents] for doc in nlp.pipe(TEXTS)]


def buffers(nlp):
    nodes = nlp.get_pipe("ner").model.walk()
    return [b for node in nodes for shim in node.shims for b in shim.module.buffers()]


def test_a_server_answers_as_the_pipeline(model):
    nlp = spacy.load(model)
    with TestClient(create_app([ServedModel("small", nlp)]), "http://localhost") as client:
        rows = client.post("/api/annotate", json={"texts": TEXTS}).json()["docs"]
    answered = [[(e["start"], e["end"], e["label"]) for e in row["ents"]] for row in rows]
    assert answered == entities(nlp)
    assert any(answered)


def test_a_package_has_the_encoder_and_requires_the_extra(model, tmp_path):
    wheel, _ = package(str(model), tmp_path / "dist", Description(), "psa_pretrained", "0.0.1")
    ZipFile(wheel).extractall(tmp_path / "site")
    (config,) = (tmp_path / "site").rglob("config.cfg")
    assert entities(spacy.load(config.parent)) == entities(spacy.load(model))
    (metadata,) = (tmp_path / "site").rglob("METADATA")
    requires = [line for line in metadata.read_text().splitlines() if "Requires-Dist" in line]
    assert [line.partition("<")[0] for line in requires] == ["Requires-Dist: spacy-psa[pretrained]"]


def test_int8_rounds_the_encoder(model, tmp_path):
    quantize(str(model), tmp_path / "int8")
    nlp = spacy.load(tmp_path / "int8")
    assert any(buffer.dtype == torch.int8 for buffer in buffers(nlp))
    assert entities(nlp) == entities(spacy.load(model))


def test_the_blocks_of_an_encoder_above_it_are_analysed(tmp_path):
    embed = pretrained(write_encoder(tmp_path / "source"))
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": ENCODE}
    path = save({"@architectures": "spacy-psa.CRF.v1", "tok2vec": tok2vec}, tmp_path / "model")
    nlp = spacy.load(path)
    DocBin(docs=[eg.reference for eg in make_examples(nlp)]).to_disk(tmp_path / "dev.spacy")
    assert blocks(str(path), tmp_path / "dev.spacy", None)


def test_without_such_an_encoder_there_are_no_blocks(model, tmp_path):
    DocBin(docs=[eg.reference for eg in make_examples(spacy.blank("en"))]).to_disk(
        tmp_path / "dev.spacy"
    )
    with pytest.raises(InputError, match="the pipeline has none"):
        blocks(str(model), tmp_path / "dev.spacy", None)
