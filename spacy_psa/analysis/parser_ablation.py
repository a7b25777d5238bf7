"""What a trained parser's attention lives on (Kitaev2018 section 4, Tables 1 and 2): its F1 with
content or position left out of some layers, and with attention kept to a window.

Nothing is trained again. Table 3 is of parsers trained with windows, each a config.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.modules.factored_transformer import FactoredTransformer
from spacy_psa.scoring.parseval_scorer import score_constituents

WINDOWS = (5, 10, 15, 20, 30, 40)
FIGURES = ("p", "r", "f", "exact")


class Setup(NamedTuple):
    """Limits of attention; as it stands, none.

    disable_content, disable_position: layers from 0 whose scores do without that part.
    window: the largest distance that attention spans. relaxed: not for the first two and
    last two tokens, START and STOP counted.
    """

    disable_content: tuple[int, ...] = ()
    disable_position: tuple[int, ...] = ()
    window: int | None = None
    relaxed: bool = True


class Row(NamedTuple):
    """A setup and its scores, fractions of 1: `p`, `r`, `f`, `exact`."""

    setup: Setup
    scores: dict[str, float]


def encoder(nlp: Language) -> FactoredTransformer:
    """The trained FactoredTransformer.v1 of a pipeline, in whichever component it is.

    Errors: InputError where there is none.
    """
    for _, pipe in nlp.pipeline:
        for node in pipe.model.walk() if hasattr(pipe, "model") else ():
            for shim in node.shims:
                module = getattr(shim, "_model", None)
                if isinstance(module, FactoredTransformer):
                    return module
    raise InputError(
        f"The pipeline {nlp.pipe_names} has no trained FactoredTransformer.v1: give one that "
        "was trained from configs/parser/factored.cfg"
    )


@contextmanager
def limited(module: FactoredTransformer, setup: Setup) -> Iterator[None]:
    """Within the context, attention has the limits of `setup` and no other.

    Errors: InputError for layers that are not there, for a window below 1, and for parts
    of an encoder that does not keep them apart.
    """
    content, position = set(setup.disable_content), set(setup.disable_position)
    if (content or position) and not module.factored:
        raise InputError("content and position can be left out where factored = true alone")
    if unknown := sorted((content | position) - set(range(len(module.layers)))):
        raise InputError(f"there is no layer {unknown[0]}, the last is {len(module.layers) - 1}")
    if setup.window is not None and setup.window < 1:
        raise InputError(f"window is {setup.window}: take 1 or more, or None")
    names = ("disable_content", "disable_position", "window", "relaxed")
    before = [getattr(module, name) for name in names]
    after = (content, position, setup.window, setup.relaxed)
    try:
        for name, value in zip(names, after, strict=True):
            setattr(module, name, value)
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(module, name, value)


def layer_sets(layers: int) -> list[tuple[int, ...]]:
    """All layers, then the first and the last quarter, half and three quarters of them."""
    every = tuple(range(layers))
    parts = sorted({max(1, layers * quarter // 4) for quarter in (1, 2, 3)} - {layers})
    return [every, *(every[:n] for n in parts), *(every[layers - n :] for n in parts)]


def setups(module: FactoredTransformer, windows: Sequence[int] = WINDOWS) -> list[Setup]:
    """No limit, then those of Kitaev2018 Table 1, if content and position are apart, and Table 2."""
    found = [Setup()]
    if module.factored:
        for layers in layer_sets(len(module.layers)):
            found += [Setup(disable_content=layers), Setup(disable_position=layers)]
    for window in windows:
        found += [Setup(window=window, relaxed=relaxed) for relaxed in (False, True)]
    return found


def ablate(
    nlp: Language, examples: Iterable[Example], limits: Iterable[Setup] | None = None
) -> Iterator[Row]:
    """Score the pipeline's parser under each limit, yielding each as it is done.

    examples: with gold constituents; see `spacy-psa.TreeCorpus.v1`.
    limits: by default `setups`.

    Errors: InputError as `encoder` and `limited`, and where no example has constituents.
    """
    module = encoder(nlp)
    examples = list(examples)
    for setup in setups(module) if limits is None else limits:
        with limited(module, setup):
            docs = nlp.pipe([example.predicted.copy() for example in examples])
            pairs = zip(docs, examples, strict=True)
            found = [Example(doc, example.reference) for doc, example in pairs]
        scores = score_constituents(found, spans_key="constituents")
        if scores["constituents_f"] is None:
            raise InputError('no gold trees to compare with: doc.spans["constituents"] is missing')
        yield Row(setup, {name: scores[f"constituents_{name}"] for name in FIGURES})


def record(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows for JSON; layers count from 0."""
    return [{**row.setup._asdict(), **row.scores} for row in rows]


def markdown(rows: Iterable[Row]) -> str:
    """Both tables in F1 (percent), with the difference from no limit; layers count from 1."""
    found = {row.setup: 100 * row.scores["f"] for row in rows}
    full = found.get(Setup())

    def cell(setup: Setup) -> str:
        if setup not in found:
            return ""
        change = "" if full is None or setup == Setup() else f" ({found[setup] - full:+.2f})"
        return f"{found[setup]:.2f}{change}"

    lines = [f"Without limits: {cell(Setup())} F1.", ""]
    layers = [s.disable_content or s.disable_position for s in found]
    if sets := [each for each in dict.fromkeys(layers) if each]:
        lines += ["| layers | without content | without position |", "| --- | --- | --- |"]
        for each in sets:
            name = f"{each[0] + 1}-{each[-1] + 1}" if len(each) > 1 else f"{each[0] + 1}"
            lines.append(
                f"| {name} | {cell(Setup(disable_content=each))} "
                f"| {cell(Setup(disable_position=each))} |"
            )
        lines.append("")
    if windows := list(dict.fromkeys(s.window for s in found if s.window)):
        lines += ["| window | strict | relaxed |", "| --- | --- | --- |"]
        for window in windows:
            strict, relaxed = (cell(Setup(window=window, relaxed=way)) for way in (False, True))
            lines.append(f"| {window} | {strict} | {relaxed} |")
        lines.append("")
    return "\n".join(lines)
