"""Training reads its corpus in each epoch, which must not take longer than the docs need."""

import spacy
from spacy.tokens import DocBin
from srsly.msgpack import msgpack_decoders, msgpack_encoders

from spacy_psa.training.config import initialize
from spacy_psa.training.loop import train
from tests.helpers.pipelines import make_examples
from tests.helpers.trainings import make_config


def test_packages_are_not_searched_for_each_doc(tmp_path, monkeypatch):
    docs = [eg.reference for eg in make_examples(spacy.blank("en"))] * 10
    for doc in docs:
        doc.spans["chunks"] = [doc[:1]]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    searches = []
    for registry in (msgpack_encoders, msgpack_decoders):
        monkeypatch.delattr(registry, "get_all", raising=False)  # of tests.helpers.registries
        monkeypatch.setattr(registry, "get_entry_points", lambda: searches.append(1) or {})
    config = make_config(tmp_path / "train.spacy", max_steps=2, eval_frequency=2)
    config["training"]["logger"]["output_file"] = str(tmp_path / "log.jsonl")
    train(initialize(tmp_path / "config.cfg", config), tmp_path / "out")
    assert 0 < len(searches) < len(docs)
