"""Small parsers, and pipelines that are trained on the trees of `BRACKETS`."""

from collections.abc import Iterable
from typing import Any

import spacy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import Adam

from tests.helpers.pipelines import randomize
from tests.helpers.trees import BRACKETS, tree_doc

ENCODERS: dict[str, dict[str, Any]] = {
    "BiLSTM": {"hidden": 16, "input_dropout": 0.0, "output_dropout": 0.0},
    "FactoredTransformer": {
        "width": 32,
        "heads": 2,
        "head_width": 16,
        "layers": 1,
        "feedforward": 32,
        "max_length": 40,
        "boundaries": True,
        "attention_dropout": 0.0,
        "relu_dropout": 0.0,
        "residual_dropout": 0.0,
    },
}


def chart_model(
    encoder: str = "BiLSTM", *, tag_hidden: int | None = None, **tok2vec: Any
) -> dict[str, Any]:
    """The config of a small chart model; `tok2vec` overrides its embed block."""
    embed = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 16, "rows": 100}
    config: dict[str, Any] = {
        "@architectures": "spacy-psa.ChartParser.v1",
        "hidden": 32,
        "tok2vec": {
            "@architectures": "spacy.Tok2Vec.v2",
            "embed": embed,
            "encode": {"@architectures": f"spacy-psa.{encoder}.v1", **ENCODERS[encoder]},
            **tok2vec,
        },
    }
    return config if tag_hidden is None else {**config, "tag_hidden": tag_hidden}


def make_parser(model: dict[str, Any] | None = None, **settings: Any) -> Any:
    """A blank English pipeline with a small `constituency_parser` named "parser"."""
    nlp = spacy.blank("en")
    config = {"model": model or chart_model(), **settings}
    nlp.add_pipe("constituency_parser", name="parser", config=config)
    return nlp


def make_listening_parser(model: dict[str, Any], **settings: Any) -> Any:
    """A parser without vectors of its own: it listens to a `tok2vec` before it."""
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16}
    nlp = make_parser({**model, "tok2vec": listener}, **settings)
    embed = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 16}
    encode = chart_model()["tok2vec"]["encode"] | {"hidden": 8}
    shared = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    nlp.add_pipe("tok2vec", first=True, config={"model": shared})
    return nlp


def tree_examples(
    nlp: Any, brackets: Iterable[str] = BRACKETS, key: str = "constituents"
) -> list[Example]:
    references = [tree_doc(nlp.vocab, text, key=key) for text in brackets]
    return [Example(Doc(nlp.vocab, words=[t.text for t in r]), r) for r in references]


def train_parser(nlp: Any, steps: int = 0, rate: float = 0.02, examples: Any = None) -> list[float]:
    """Initialize and train with one seed; the loss of each step."""
    fix_random_seed(0)
    examples = examples or tree_examples(nlp)
    optimizer = nlp.initialize(lambda: examples, sgd=Adam(rate))
    return [sum(nlp.update(examples, sgd=optimizer).values()) for _ in range(steps)]


def random_parser(model: dict[str, Any] | None = None, **settings: Any) -> Any:
    """A pipeline with random weights that are large, so that no two trees score alike."""
    nlp = make_parser(model, **settings)
    train_parser(nlp)
    randomize(nlp.get_pipe("parser"))
    return nlp
