"""`spacy-psa init config`: a training config that is counted for a corpus."""

import math
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_psa.cli.recipes import CONFIGS, Recipe, choose
from spacy_psa.errors import InputError
from spacy_psa.training.layers import batch_unit, fit_epochs

if TYPE_CHECKING:
    from spacy.language import Language
    from thinc.api import Config

LEAST = 100
"""The fewest updates that count as one pass; a smaller corpus is passed over several times."""


class TaskChoice(str, Enum):
    """What is learned."""

    ner = "ner"
    chunker = "chunker"
    tagger = "tagger"
    parser = "parser"


class Aim(str, Enum):
    """What counts most."""

    accuracy = "accuracy"
    efficiency = "efficiency"
    memory = "memory"


def init_config(
    output: Annotated[Path, typer.Argument(metavar="OUT.cfg", help="Config to write.")],
    train: Annotated[Path, typer.Option(help="Training data, a .spacy file.")],
    dev: Annotated[Path, typer.Option(help="Development data, a .spacy file.")],
    task: Annotated[TaskChoice, typer.Option(help="What is learned.")] = TaskChoice.ner,
    vectors: Annotated[
        str | None, typer.Option(help="Pipeline with word vectors, of `spacy init vectors`.")
    ] = None,
    optimize: Annotated[Aim, typer.Option(help="What counts most.")] = Aim.accuracy,
    base: Annotated[
        str | None,
        typer.Option(help="Pretrained transformer: bert, or a name or folder of Hugging Face's."),
    ] = None,
    lang: Annotated[str, typer.Option(help="Language code, as for spacy.blank.")] = "en",
    sentencizer: Annotated[
        bool,
        typer.Option("--sentencizer", help="Add a component in front that finds sentences."),
    ] = False,
) -> None:
    """Write a training config for your corpus.

    Epochs, patience, evaluations and schedules of OUT.cfg are counted for the number of training
    examples. OUT.cfg trains as it is, with the command that is printed. Entities of fewer than
    75,000 words are learned by a config for little data, whatever counts most. Where they are rare
    there, in fewer than a tenth of the words, training makes missed entities dearer.

    \b
    Example:
      spacy-psa init config config.cfg --train corpus/train.spacy --dev corpus/dev.spacy
      spacy-psa train config.cfg --output training
    """
    config, told = make_config(task, train, dev, vectors, optimize, base, lang, sentencizer)
    write_config(config, told, output)
    typer.echo(f"Next: spacy-psa train {output} --output training")


def make_config(
    task: TaskChoice,
    train: Path,
    dev: Path,
    vectors: str | None = None,
    optimize: Aim = Aim.accuracy,
    base: str | None = None,
    lang: str = "en",
    sentencizer: bool = False,
) -> tuple["Config", str]:
    """Make a config that is counted for a corpus; the options are those of `init_config`.

    Returns:
        The config, and a line that says what it is.

    Raises:
        InputError: if there is no such config, or the corpus does not fit it.
    """
    nlp = _blank(lang)
    for path in (train, dev):
        _check(nlp, task.value, path)
    words, share = _count_words(nlp, train)
    aim = "base" if base is not None else optimize.value
    recipe = choose(task.value, aim, words, vectors is not None, share)  # type: ignore[arg-type]
    if recipe is None:
        raise InputError(
            f"--base {base}: there is no config of a {task.value} over a transformer; leave it out"
        )
    config = _read(recipe)
    config["paths"].update(train=str(train), dev=str(dev), vectors=vectors)
    config["nlp"]["lang"] = lang
    if base is not None:
        config["bert"]["name"] = {"bert": "bert-base-cased"}.get(base, base)
    elif vectors is not None:
        _use_vectors(config, vectors, recipe)
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


def write_config(config: "Config", told: str, output: Path) -> None:
    """Write a config, with a first line that says what it is, and print the line."""
    from spacy_psa.corpora.atomic import atomic_path

    with atomic_path(output) as temporary:
        text = config.to_str(interpolate=False)
        temporary.write_text(f"# {told}\n\n{text}", encoding="utf8")
    typer.echo(f"{output}: {told}")


def count_steps(training: dict[str, Any], evaluations: int, batches: int) -> str:
    """Convert the steps of a config to those of a corpus.

    Updates of a pass over its corpus become updates of a pass over this one. A pass of fewer than
    100 updates is taken several times, so that a small corpus is learned from as often as one of
    1,000 sentences.

    Args:
        training: the section, which is changed.
        evaluations: how often it evaluates in a pass.
        batches: the number of batches in a pass over the corpus.

    Returns:
        What is counted, for the user.

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


def _read(recipe: Recipe) -> "Config":
    from spacy.util import dot_to_dict
    from thinc.api import Config

    config = Config().from_disk(CONFIGS / recipe.config, interpolate=False)
    return config.merge(dot_to_dict(recipe.changes))


def _use_vectors(config: dict[str, Any], vectors: str, recipe: Recipe) -> None:
    """Let the embedders of a config read the vectors, in their width."""
    from spacy_psa.loading import load_pipeline

    width = load_pipeline(vectors).vocab.vectors_length
    if not width:
        raise InputError(f"{vectors}: has no word vectors; give a pipeline of `spacy init vectors`")
    if not _set_width(config, width):
        raise InputError(f"--vectors {vectors}: configs/{recipe.config} reads none; leave it out")


def _set_width(section: dict[str, Any], width: int) -> int:
    found = 0
    if section.get("@architectures") == "spacy-psa.WordEmbed.v1" and section.get(
        "pretrained", True
    ):
        section["width"] = width
        found = 1
    return found + sum(_set_width(s, width) for s in section.values() if isinstance(s, dict))


def _blank(lang: str) -> "Language":
    import spacy

    try:
        return spacy.blank(lang)
    except ImportError as error:
        raise InputError(f"--lang {lang}: spaCy cannot make such a pipeline ({error})") from error


def _check(nlp: "Language", task: str, path: Path) -> None:
    """Check that the data in a file is annotated for a task."""
    from spacy_psa.corpora.corpus_check import LAYERS
    from spacy_psa.corpora.docbin import read_docbin

    layer = {"ner": "entities", "chunker": "chunks", "tagger": "parts of speech"}
    read = LAYERS[layer.get(task, "constituents")]
    if not any(read(doc) for doc in read_docbin(path, nlp.vocab)):
        raise InputError(
            f"{path}: has nothing to learn a {task} from; give another --task or other data"
        )


def _count_words(nlp: "Language", path: Path) -> tuple[int, float]:
    """Count the words in a file, and the share of the annotated ones that is in entities."""
    from spacy_psa.corpora.docbin import read_docbin

    words = annotated = inside = 0
    for doc in read_docbin(path, nlp.vocab):
        tags = doc.to_array(["ENT_IOB"])
        words += len(doc)
        annotated += int((tags != 0).sum())
        inside += sum(map(len, doc.ents))
    return words, inside / annotated if annotated else 1.0


def _count(config: "Config", nlp: "Language") -> tuple[int, int]:
    """Count the training examples that the reader of a config makes, and the batches of a pass.

    A batch has fewer examples than its size in words says where examples are longer than that.
    """
    from spacy.util import registry

    whole = config.interpolate()
    corpora = registry.resolve({"corpora": whole["corpora"]})["corpora"]
    batcher = registry.resolve({"batcher": whole["training"]["batcher"]})["batcher"]
    examples = [example for example in corpora["train"](nlp) if len(example.reference)]
    return len(examples), sum(1 for _ in batcher(examples))
