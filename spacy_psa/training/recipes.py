"""Configs for a task, an aim and a corpus: which one to choose, and the steps of its training."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spacy.language import Language
from spacy.util import dot_to_dict, registry
from thinc.api import Config

from spacy_psa.corpora.atomic import write_text
from spacy_psa.corpora.corpus_check import LAYERS
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.corpora.layouts import LAYOUTS
from spacy_psa.corpora.marked_text import INCORRECT
from spacy_psa.corpora.own_corpus import CHECK, was_cut
from spacy_psa.corpora.readers import blank
from spacy_psa.errors import InputError
from spacy_psa.loading import vocab_with_vectors
from spacy_psa.training.layers import batch_unit, fit_epochs, layered, set_log, with_settings

Task = Literal["ner", "chunker", "tagger", "parser", "spans"]
ENCODERS = {"bert": "bert-base-cased"}
"""Short names of encoders."""
Aim = Literal["accuracy", "efficiency", "memory", "base", "frozen"]
CONFIGS = Path(__file__).parents[1] / "configs"
"""The configs; in the repository a link to `configs/`, in an installed package a copy."""


class Recipe(NamedTuple):
    """A config, and the settings that are changed in it."""

    config: str
    """Its path below `configs/`."""
    changes: dict[str, Any] = {}  # noqa: RUF012
    """Settings that replace those of the config, by their path in it."""
    evaluations: int = 1
    """The number of evaluations in a pass over the corpus that the config was made for."""


def _half(task: str) -> dict[str, Any]:
    """Halve the units, which is twice as fast and a few tenths of a point less accurate."""
    tok2vec = f"components.{task}.model.tok2vec"
    return {f"{tok2vec}.embed.*.characters.hidden": 50, f"{tok2vec}.encode.hidden": 150}


RECIPES: dict[tuple[Task, Aim], Recipe] = {
    ("ner", "accuracy"): Recipe("ner/best.cfg"),
    ("ner", "efficiency"): Recipe("ner/bilstm_crf.cfg"),
    ("ner", "memory"): Recipe("ner/bilstm_crf.cfg", _half("ner")),
    ("ner", "base"): Recipe("ner/pretrained.cfg"),
    ("ner", "frozen"): Recipe("ner/frozen.cfg"),
    ("chunker", "accuracy"): Recipe("chunker/best.cfg"),
    ("chunker", "efficiency"): Recipe("chunker/bilstm_crf.cfg"),
    ("chunker", "memory"): Recipe("chunker/bilstm_crf.cfg", _half("chunker")),
    ("chunker", "base"): Recipe("chunker/pretrained.cfg"),
    ("chunker", "frozen"): Recipe("chunker/frozen.cfg"),
    ("tagger", "accuracy"): Recipe("tagger/best.cfg"),
    ("tagger", "efficiency"): Recipe("tagger/bilstm_crf.cfg"),
    ("tagger", "memory"): Recipe("tagger/bilstm_crf.cfg", _half("tagger")),
    ("tagger", "base"): Recipe("tagger/pretrained.cfg"),
    ("tagger", "frozen"): Recipe("tagger/frozen.cfg"),
    ("parser", "accuracy"): Recipe("parser/best.cfg"),
    ("parser", "efficiency"): Recipe("parser/small.cfg", evaluations=2),
    ("parser", "memory"): Recipe("parser/sample.cfg"),
    ("parser", "base"): Recipe("parser/pretrained.cfg"),
    ("parser", "frozen"): Recipe("parser/frozen.cfg"),
    ("spans", "accuracy"): Recipe("spans/best.cfg"),
    ("spans", "efficiency"): Recipe("spans/bilstm.cfg"),
    ("spans", "memory"): Recipe("spans/bilstm.cfg"),
    ("spans", "base"): Recipe("spans/pretrained.cfg"),
    ("spans", "frozen"): Recipe("spans/frozen.cfg"),
}
"""A config for each task and aim; `base` and `frozen` are over a pretrained encoder."""

LEAST = 100
"""The fewest updates that count as one pass; a smaller corpus is passed over several times."""
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
"""Settings that are then added to a config of `SMALL`, so that missed entities cost more."""


def choose(task: Task, aim: Aim, words: int, vectors: bool, in_entities: float = 1.0) -> Recipe:
    """Choose a config.

    Args:
        task: the annotation to learn.
        aim: the most important property, or "base" or "frozen" for a pretrained encoder.
        in_entities: the share of these words that is in entities.
    """
    few = words < FEW_WORDS and aim not in ("base", "frozen")
    small = SMALL.get((task, vectors)) if few else None
    if small and in_entities < RARE:
        small = small._replace(changes=small.changes | MISSED)
    return small or RECIPES[task, aim]


def make_config(
    task: Task,
    train: Path,
    dev: Path,
    vectors: str | None = None,
    optimize: Aim = "accuracy",
    base: str | None = None,
    lang: str = "en",
    sentencizer: bool = False,
    frozen: bool = False,
) -> tuple[Config, str]:
    """Make a config that is counted for a corpus; the arguments are those of `init config`.

    Returns:
        The config, and a line that describes it.
    """
    if frozen and base is None:
        raise InputError("--frozen is for a pretrained encoder: name it with --base")
    nlp = blank(lang)
    for path in (train, dev):
        _check(nlp, task, path)
    words, share = _count_words(nlp, train)
    aim = optimize if base is None else "frozen" if frozen else "base"
    recipe = choose(task, aim, words, vectors is not None, share)
    config = _read(recipe)
    config["paths"].update(train=str(train), dev=str(dev), vectors=vectors)
    config["nlp"]["lang"] = lang
    if base is not None:
        base = ENCODERS.get(base, base)
        config["paths"]["encoder"] = base
        _use_encoder(config, base)
    if vectors is not None:
        _use_vectors(config, vectors, recipe)
    if task in ("ner", "spans"):
        _use_partial(config["components"][task], nlp, train)
    if sentencizer:
        config["nlp"]["pipeline"].insert(0, "sentencizer")
        config["components"]["sentencizer"] = {"factory": "sentencizer"}
        # Scores of sentences choose no model.
        config["training"]["score_weights"].update(sents_f=None, sents_p=None, sents_r=None)
    examples, batches = _count(config, nlp)
    passes = count_steps(config["training"], recipe.evaluations, batches)
    changed = "".join(f", {key} = {value}" for key, value in recipe.changes.items())
    counted = f"counted for {examples:,} training examples: {passes}"
    return config, f"configs/{recipe.config}{changed}, {counted}"


def project_config(
    corpus: str, source: Path, task: Task, config: str, target: Path, values: Mapping[str, str]
) -> tuple[Config, str, str]:
    """Make the config of a project.

    Args:
        corpus: the name of the corpus, or a folder with own files.
        source: the folder that `prepare` has written.
        config: the name of a config of the task, for a known corpus; "" for "psa", or for "best"
            where there is none.
        target: the file to write, for errors.
        values: settings that replace those of the config, by dotted path.

    Returns:
        The config, a comment that describes it, and a message for the user.
    """
    if corpus in LAYOUTS:
        config = config or ("best" if task == "spans" else "psa")
        base, settings = (
            Path(f"configs/{name}.cfg") for name in (f"{task}/{config}", f"corpora/{corpus}")
        )
        return layered(base, [settings], values), "", f"{base} + {settings} -> {target}"
    train, dev = (source / f"{part}.spacy" for part in ("train", "dev"))
    made, line = make_config(task, train, dev, sentencizer=was_cut(source / CHECK))
    return with_settings(made, values, target), line, f"{target}: {line}"


def write_config(config: Config, output: Path, line: str = "", log: Path | None = None) -> None:
    """Write a config, with a first line that describes it, and the file of its log."""
    if log is not None:
        set_log(config, log)
    text = config.to_str(interpolate=False)
    write_text(output, f"# {line}\n\n{text}" if line else text)


def count_steps(training: dict[str, Any], evaluations: int, batches: int) -> str:
    """Convert the steps of a config to those of a corpus.

    Updates of a pass over its corpus become updates of a pass over this one. A pass of fewer than
    100 updates is repeated, so that a small corpus is learned from as often as one of 1,000
    sentences.

    Args:
        training: the section, which is changed.
        evaluations: the number of its evaluations in a pass.

    Examples:
        >>> training = {
        ...     "batcher": {"size": 10}, "eval_frequency": 1405, "patience": 14050,
        ...     "max_epochs": 60, "max_steps": 0, "optimizer": {"learn_rate": 0.1},
        ... }  # fmt: skip
        >>> print(count_steps(training, 1, batches=200))
        60 epochs of 200 updates, an evaluation after each 200, patience 2000
        >>> training["eval_frequency"], training["patience"]
        (200, 2000)
    """
    old = {**training, "optimizer": dict(training["optimizer"])}
    size = training["batcher"]["size"]
    unit = batch_unit(training["batcher"])
    base = old["eval_frequency"] * evaluations
    counted = max(batches, LEAST)
    fit_epochs(training, {**old, "eval_frequency": base}, {unit: counted * size})
    training["eval_frequency"] = max(1, old["eval_frequency"] * counted // base)
    if isinstance(old["max_steps"], int):
        training["max_steps"] = old["max_steps"] * counted // base
    training["max_epochs"] = math.ceil(old["max_epochs"] * counted / batches)
    steps = training["max_steps"]
    if not isinstance(steps, int):  # a variable, which stands for the steps of the learning rate
        steps = training["optimizer"]["learn_rate"]["total_steps"]
    whole = steps or training["max_epochs"] * batches
    return (
        f"{round(whole / batches)} epochs of {batches} updates, an evaluation after each "
        f"{training['eval_frequency']}, patience {training['patience'] or 'to the end'}"
    )


def _read(recipe: Recipe) -> Config:
    config = Config().from_disk(CONFIGS / recipe.config, interpolate=False)
    return config.merge(dot_to_dict(recipe.changes))


def _use_vectors(config: dict[str, Any], vectors: str, recipe: Recipe) -> None:
    """Let the embedders of a config read the vectors, in their width."""
    if not _set_width(config, vocab_with_vectors(vectors).vectors_length):
        raise InputError(f"--vectors {vectors}: configs/{recipe.config} reads none; leave it out")


def _use_partial(component: dict[str, Any], nlp: Language, train: Path) -> None:
    """Let a component learn from the groups that `init corpus` writes next to its spans."""
    groups = {key for doc in read_docbin(train, nlp.vocab) for key in doc.spans}
    if INCORRECT in groups:
        component["incorrect_spans_key"] = INCORRECT


def _set_width(section: dict[str, Any], width: int) -> int:
    """Set the width of the embedders that read vectors, and count them."""
    name, pretrained = section.get("@architectures"), section.get("pretrained", True)
    reads = name == "spacy-psa.WordEmbed.v1" and pretrained
    if reads:
        section["width"] = width
    return bool(reads) + sum(_set_width(s, width) for s in section.values() if isinstance(s, dict))


def _use_encoder(config: dict[str, Any], name: str) -> None:
    """Adapt the embedders of a config to the layers, longest input and tokenizer of an encoder."""
    from torch import device

    from spacy_psa.modules.pretrained import PretrainedEncoder
    from spacy_psa.modules.pretrained_files import read_pretrained

    files = read_pretrained(name)
    with device("meta"):  # without memory for the weights
        module = PretrainedEncoder(files.config, files.tokenizer, window=1, context=0)
    tokenizer = module.tokenizer
    reads_capitals = tokenizer.encode("Ada").ids != tokenizer.encode("ada").ids
    depth = module.net.config.num_hidden_layers
    for embed in _concatenated(config["components"]):
        encoder = embed["encoder"]
        if encoder["window"] > module.longest:  # as much context in proportion
            encoder.update(window=module.longest, context=module.longest // 6)
        if encoder["frozen"]:  # the upper layers, and those below them
            groups = [range(max(1, top - 3), top + 1) for top in (depth, depth - 4)]
            encoder["layers"] = [list(group) for group in groups if group]
        elif reads_capitals:
            for other in [other for other in embed if other != "encoder"]:
                del embed[other]


def _concatenated(section: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a config whose embedders are concatenated and have an encoder."""
    for key, value in section.items():
        if isinstance(value, dict):
            if key == "*" and "encoder" in value:
                yield value
            yield from _concatenated(value)


def _check(nlp: Language, task: str, path: Path) -> None:
    """Check that the data in a file is annotated for a task."""
    layer = {"ner": "entities", "chunker": "chunks", "tagger": "parts of speech", "spans": "spans"}
    read = LAYERS[layer.get(task, "constituents")]
    if not any(read(doc) for doc in read_docbin(path, nlp.vocab)):
        raise InputError(
            f"{path}: has nothing to learn a {task} from; choose another --task or other data"
        )


def _count_words(nlp: Language, path: Path) -> tuple[int, float]:
    """Count the words in a file, and the share of the annotated ones that is in entities."""
    words = annotated = inside = 0
    for doc in read_docbin(path, nlp.vocab):
        tags = doc.to_array(["ENT_IOB"])
        words += len(doc)
        annotated += int((tags != 0).sum())
        inside += sum(map(len, doc.ents))
    return words, inside / annotated if annotated else 1.0


def _count(config: Config, nlp: Language) -> tuple[int, int]:
    """Count the training examples that the reader of a config makes, and the batches of a pass.

    A batch has fewer examples than its size in words where examples are longer than that.
    """
    whole = config.interpolate()
    corpora = registry.resolve({"corpora": whole["corpora"]})["corpora"]
    batcher = registry.resolve({"batcher": whole["training"]["batcher"]})["batcher"]
    examples = [example for example in corpora["train"](nlp) if len(example.reference)]
    return len(examples), sum(1 for _ in batcher(examples))
