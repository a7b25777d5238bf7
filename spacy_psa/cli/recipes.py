"""Which config a choice of task and aim takes."""

from pathlib import Path
from typing import Any, Literal, NamedTuple

Task = Literal["ner", "chunker", "tagger", "parser"]
Aim = Literal["accuracy", "efficiency", "memory", "base"]
CONFIGS = Path(__file__).parents[1] / "configs"
"""The configs; in the repository a link to `configs/`, in an installed package a copy."""


class Recipe(NamedTuple):
    """A config, and what is changed in it.

    Examples:
        >>> RECIPES["ner", "efficiency"].config
        'ner/bilstm_crf.cfg'
    """

    config: str
    """Its path below `configs/`."""
    changes: dict[str, Any] = {}  # noqa: RUF012
    """Settings that replace those of the config, by their path in it."""
    evaluations: int = 1
    """How often the config evaluates in a pass over the corpus that it was made for."""


def _half(task: str) -> dict[str, Any]:
    """Give half of the units, which is twice as fast and a few tenths of a point less accurate."""
    tok2vec = f"components.{task}.model.tok2vec"
    return {f"{tok2vec}.embed.*.characters.hidden": 50, f"{tok2vec}.encode.hidden": 150}


RECIPES: dict[tuple[Task, Aim], Recipe] = {
    ("ner", "accuracy"): Recipe("ner/best.cfg"),
    ("ner", "efficiency"): Recipe("ner/bilstm_crf.cfg"),
    ("ner", "memory"): Recipe("ner/bilstm_crf.cfg", _half("ner")),
    ("ner", "base"): Recipe("ner/transformer_crf.cfg"),
    ("chunker", "accuracy"): Recipe("chunker/best.cfg"),
    ("chunker", "efficiency"): Recipe("chunker/bilstm_crf.cfg"),
    ("chunker", "memory"): Recipe("chunker/bilstm_crf.cfg", _half("chunker")),
    ("tagger", "accuracy"): Recipe("tagger/best.cfg"),
    ("tagger", "efficiency"): Recipe("tagger/bilstm_crf.cfg"),
    ("tagger", "memory"): Recipe("tagger/bilstm_crf.cfg", _half("tagger")),
    ("parser", "accuracy"): Recipe("parser/best.cfg"),
    ("parser", "efficiency"): Recipe("parser/small.cfg", evaluations=2),
    ("parser", "memory"): Recipe("parser/sample.cfg"),
    ("parser", "base"): Recipe("parser/transformer.cfg", evaluations=4),
}
"""A config for each task and aim; `base` is a pretrained transformer."""

FEW_WORDS = 75_000
"""Training data of fewer words, about 5,000 sentences, is learned from by `SMALL`."""
SMALL: dict[tuple[Task, bool], Recipe] = {
    ("ner", False): Recipe("ner/small.cfg"),
    ("ner", True): Recipe("ner/small_vectors.cfg"),
}
"""A config for each task and whether there are word vectors (benchmarks/small_data)."""
RARE = 0.1
"""If a smaller share of few words is in entities, a model of `SMALL` misses most of them."""
MISSED = {"components.ner.recall_cost": 3.0}
"""What a config of `SMALL` takes then, so that training makes missed entities dearer."""


def choose(
    task: Task, aim: Aim, words: int, vectors: bool, in_entities: float = 1.0
) -> Recipe | None:
    """Choose a config.

    Args:
        task: what is learned.
        aim: what counts most, or "base" for a pretrained transformer.
        words: the words of the training data.
        vectors: whether there are word vectors.
        in_entities: the share of these words that is in entities.

    Returns:
        The config, or None if there is none for this task and aim.

    Examples:
        >>> choose("ner", "accuracy", words=200_000, vectors=True).config
        'ner/best.cfg'
        >>> choose("ner", "accuracy", words=20_000, vectors=True).config
        'ner/small_vectors.cfg'
        >>> choose("ner", "accuracy", words=20_000, vectors=True, in_entities=0.05).changes
        {'components.ner.recall_cost': 3.0}
    """
    small = SMALL.get((task, vectors)) if words < FEW_WORDS and aim != "base" else None
    if small and in_entities < RARE:
        small = small._replace(changes=small.changes | MISSED)
    return small or RECIPES.get((task, aim))
