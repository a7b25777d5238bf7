"""A training over a pretrained encoder that is killed continues as if it had not been."""

import pytest

from tests.helpers.encoders import pretrained, write_encoder
from tests.helpers.trainings import digests, killed_at, make_config, run


@pytest.mark.parametrize("kind", ["tuned", "updates", "frozen", "cached"])
def test_a_resumed_training_ends_with_the_same_files(tmp_path, monkeypatch, corpus, kind):
    if kind == "updates":
        pytest.importorskip("peft", reason="needs the extra `lora`")
    encoder = write_encoder(tmp_path / "encoder")
    settings = {
        "tuned": {},
        "updates": {"lora_rank": 2},
        "frozen": {"frozen": True},
        "cached": {"frozen": True, "cache": str(tmp_path / "cache")},
    }
    config = make_config(corpus, "adam", max_steps=14)
    model = config["components"]["ner"]["model"]
    model["tok2vec"]["embed"]["*"]["encoder"] = pretrained(encoder, layers=2, **settings[kind])
    whole = digests(run(tmp_path / "whole", config))
    with killed_at(monkeypatch, 10):
        run(tmp_path / "killed", config, save_every=5)
    checkpoint = (tmp_path / "killed" / "checkpoints" / "step-000000010.pt").read_bytes()
    assert (b"net.embeddings" in checkpoint) == (kind in ("tuned", "updates"))
    rest = run(tmp_path / "killed", config, save_every=5, resume=True)
    assert digests(rest) == whole
    assert "model-last/ner/encoder.safetensors" in whole
