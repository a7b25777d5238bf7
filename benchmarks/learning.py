"""Train a pipeline in this process as `spacy train` does, and keep the best weights."""

import time
from collections.abc import Callable
from typing import Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches, train_while_improving
from spacy.util import fix_random_seed, registry
from thinc.api import Config

KEYS = ("ents_p", "ents_r", "ents_f")


def score(nlp: Language, examples: list[Example]) -> dict[str, float]:
    """Precision, recall and F1 of a pipeline on examples."""
    scores = nlp.evaluate(examples, batch_size=256)
    return {key: scores[key] or 0.0 for key in KEYS}


def learn(
    config: Config, dev: Callable[[Language], list[Example]], limit: float | None = None
) -> tuple[Language, dict[str, Any], dict[str, Any]]:
    """Train a pipeline.

    Args:
        dev: makes the development data of the pipeline.
        limit: the maximum processor time in seconds, without that of evaluations.

    Returns:
        The pipeline with the weights of its best evaluation, the scores of that evaluation, and the
        `steps` and `seconds` of the training.
    """
    fix_random_seed(config["system"]["seed"])
    nlp = init_nlp(config)
    whole = nlp.config.interpolate()
    training = registry.resolve(whole["training"], schema=ConfigSchemaTraining)
    corpus = registry.resolve(whole["corpora"])["train"]
    examples = dev(nlp)
    evaluating = 0.0

    def evaluate() -> tuple[float, dict[str, float]]:
        nonlocal evaluating
        started = time.process_time()
        scores = score(nlp, examples)
        evaluating += time.process_time() - started
        return scores["ents_f"], scores

    steps = train_while_improving(
        nlp,
        training["optimizer"],
        create_train_batches(nlp, corpus, training["batcher"], training["max_epochs"]),
        evaluate,
        dropout=training["dropout"],
        eval_frequency=training["eval_frequency"],
        accumulate_gradient=1,
        patience=training["patience"],
        max_steps=training["max_steps"],
        exclude=[],
        annotating_components=[],
        before_update=None,
    )
    best, scores, seconds = b"", {}, 0.0
    started = time.process_time()
    for _, info, is_best in steps:
        if is_best:
            best, scores = nlp.to_bytes(exclude=["vocab", "tokenizer"]), info["other_scores"]
        seconds = time.process_time() - started - evaluating
        if limit is not None and seconds > limit and scores:
            break
    nlp.from_bytes(best, exclude=["vocab", "tokenizer"])
    return nlp, scores, {"steps": info["step"], "seconds": round(seconds, 1)}
