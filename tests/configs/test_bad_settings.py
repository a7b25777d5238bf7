"""Settings that no model can be made of: one error that names them, before any training."""

import pytest
from confection import ConfigValidationError
from spacy.training.initialize import init_nlp
from spacy.util import load_config, registry

from spacy_psa.errors import InputError
from tests.helpers.paths import CONFIGS

NER = CONFIGS / "ner"
TOK2VEC = {"@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None, "width": 4}
TOK2VEC |= {"depth": 1, "embed_size": 10, "window_size": 1, "maxout_pieces": 1}
TOK2VEC |= {"subword_features": True}

UNKNOWN = [
    ("architectures", "WordEmbed", {"without_vector": "some"}),
    ("architectures", "BigramEmbed", {"without_vector": "some"}),
    ("architectures", "TagEmbed", {"attribute": "HEAD"}),
    ("architectures", "CharBiLSTM", {"pool": "mean"}),
    ("architectures", "CharCNN", {"kernel_width": 4}),
    ("architectures", "CharNgramCNN", {"longest": 30}),
    ("architectures", "PSABiLSTM", {"bottom": "cnn"}),
    ("architectures", "PSABiLSTM", {"middle": "cnn"}),
    ("architectures", "PSABiLSTM", {"top": "cnn"}),
    ("architectures", "PSABiLSTM", {"position": "relative"}),
    ("architectures", "PSABiLSTM", {"version": "third"}),
    ("architectures", "PSABiLSTM", {"activation": "swish"}),
    ("architectures", "PSABiLSTM", {"window": 0}),
    ("architectures", "PSABiLSTM", {"hidden": 0}),
    ("architectures", "PSATransformer", {"position": "relative"}),
    ("architectures", "PSATransformer", {"version": "third"}),
    ("architectures", "PSATransformer", {"heads": 0}),
    ("architectures", "TENER", {"head_width": 0}),
    ("architectures", "Transformer", {"layers": 0}),
    ("architectures", "CRF", {"potentials": "pairs", "tok2vec": TOK2VEC}),
    ("schedules", "cosine", {"max_rate": 0.1, "total_steps": 10, "warmup": 1.0}),
    ("schedules", "triangular", {"max_rate": 0.1, "total_steps": 0}),
    ("schedules", "inverse_decay", {"initial_rate": 0.1, "decay": 0.1, "steps_per_epoch": 0}),
    ("optimizers", "SGD", {"clip_value": -1.0}),
    ("batchers", "bucket_by_length", {"size": 0}),
]
UNDIVIDED = [
    ("architectures", "CharTransformer", {"width": 30, "heads": 4}),
    ("architectures", "CharAdaTrans", {"width": 30, "heads": 4}),
    ("architectures", "SelfAttentiveBiLSTM", {"hidden": 100, "heads": 7}),
]


@pytest.mark.parametrize(("kind", "name", "options"), [*UNKNOWN, *UNDIVIDED])
def test_a_value_that_an_option_does_not_take_is_named(kind, name, options):
    with pytest.raises((InputError, ConfigValidationError)) as error:
        registry.resolve({"part": {f"@{kind}": f"spacy-psa.{name}.v1", **options}})
    message = str(error.value)
    option = list(options)[-1 if (kind, name, options) in UNDIVIDED else 0]
    if kind == "schedules":
        option = list(options)[-1]
    assert option in message
    assert str(options[option]) in message


@pytest.mark.parametrize(
    ("config", "overrides", "named"),
    [
        ("psa", {"components.ner.scheme": "IOB"}, "scheme"),
        ("psa", {"components.ner.reduction": "max"}, "reduction"),
        ("psa", {"components.ner.label_smoothing": 1.5}, "label_smoothing"),
        ("psa", {"components.ner.model.tok2vec.encode.window": 0}, "window"),
        (
            "psa",
            {"components.ner.model.tok2vec.encode.@architectures": "spacy-psa.LSTM.v1"},
            "LSTM",
        ),
        ("self_attentive", {"components.ner.model.tok2vec.encode.heads": 7}, "heads"),
        ("grid", {"grid.word": "${word.lstm}"}, "word"),
    ],
)
def test_no_training_starts_with_it(tmp_path, config, overrides, named):
    """`spacy train` makes the pipeline by `init_nlp`, here without any data at the paths."""
    paths = {f"paths.{part}": str(tmp_path / part) for part in ("train", "dev")}
    with pytest.raises((InputError, ConfigValidationError, ValueError)) as error:
        init_nlp(load_config(NER / f"{config}.cfg", {**paths, **overrides}, interpolate=False))
    assert named in str(error.value)
    assert str(tmp_path) not in str(error.value)
