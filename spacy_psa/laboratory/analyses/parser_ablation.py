"""The attention that a trained parser relies on (Kitaev2018 section 4, Tables 1 and 2).

The parser is scored without content or position in some layers, and with attention that is limited
to a window. Nothing is trained again. Kitaev2018 Table 3 is about parsers that are trained with
windows; each of these is a config of its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.training import Example

from spacy_psa.analysis.figures import Figure, colours, new_figure
from spacy_psa.architectures.sentencewise import listeners, upstream_name
from spacy_psa.bridge.optimizer import torch_modules
from spacy_psa.errors import InputError
from spacy_psa.modules.factored_transformer import FactoredTransformer
from spacy_psa.pipeline.parser.parser import ConstituencyParser

WINDOWS = (5, 10, 15, 20, 30, 40)
FIGURES = ("p", "r", "f", "exact")


class Setup(NamedTuple):
    """Limits of attention; by default there are none."""

    disable_content: tuple[int, ...] = ()
    """The layers, numbered from 0, that score without content."""
    disable_position: tuple[int, ...] = ()
    """The layers, numbered from 0, that score without position."""
    window: int | None = None
    """The largest distance that attention spans, in tokens; None for no limit."""
    relaxed: bool = True
    """Whether the window exempts the first two and the last two tokens, counting START and STOP."""


class Row(NamedTuple):
    """A setup and its scores."""

    setup: Setup
    scores: dict[str, float]
    """`p`, `r`, `f` and `exact`, from 0 to 1."""


def encoder(nlp: Language, parser: ConstituencyParser | None = None) -> FactoredTransformer:
    """Find the trained FactoredTransformer.v1 of a parser (the first), or of what it listens to."""
    parser = parser or _first_parser(nlp)
    above = {upstream_name(node) for node in listeners(parser.model)}
    shared = [pipe for name, pipe in nlp.pipeline if above & {name, "*"}]
    models = [parser.model, *(pipe.model for pipe in shared if isinstance(pipe, TrainablePipe))]
    nodes = (node for model in models for node in model.walk())
    for module in (module for node in nodes for module in torch_modules(node)):
        if isinstance(module, FactoredTransformer):
            return module
    raise InputError(
        f"{parser.name}: has no trained FactoredTransformer.v1: use a parser that was trained "
        "from configs/parser/factored.cfg"
    )


def _first_parser(nlp: Language) -> ConstituencyParser:
    for _, pipe in nlp.pipeline:
        if isinstance(pipe, ConstituencyParser):
            return pipe
    raise InputError(f"no constituency_parser among the components {', '.join(nlp.pipe_names)}")


@contextmanager
def limited(module: FactoredTransformer, setup: Setup) -> Iterator[None]:
    """Limit the attention of an encoder within the context, and lift its other limits."""
    content, position = set(setup.disable_content), set(setup.disable_position)
    if (content or position) and not module.factored:
        raise InputError("content and position can be left out only if factored = true")
    if unknown := sorted((content | position) - set(range(len(module.layers)))):
        raise InputError(f"there is no layer {unknown[0]}: use 0 to {len(module.layers) - 1}")
    if setup.window is not None and setup.window < 1:
        raise InputError(f"window is {setup.window}: use 1 or more")
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
    """List the sets of layers of Kitaev2018 Table 1.

    These are all layers, and the first and the last quarter, half and three quarters of them.
    """
    every = tuple(range(layers))
    parts = sorted({max(1, layers * quarter // 4) for quarter in (1, 2, 3)} - {layers})
    return [every, *(every[:n] for n in parts), *(every[layers - n :] for n in parts)]


def setups(module: FactoredTransformer, windows: Sequence[int] = WINDOWS) -> list[Setup]:
    """List the setups of Kitaev2018 Tables 1 and 2, the setup without limits first.

    Those of Table 1 are left out if the encoder does not keep content and position apart.
    """
    limits = [Setup()]
    if module.factored:
        for layers in layer_sets(len(module.layers)):
            limits += [Setup(disable_content=layers), Setup(disable_position=layers)]
    for window in windows:
        limits += [Setup(window=window, relaxed=relaxed) for relaxed in (False, True)]
    return limits


def ablate(
    nlp: Language,
    examples: Iterable[Example],
    limits: Iterable[Setup] | None = None,
    parser: ConstituencyParser | None = None,
) -> Iterator[Row]:
    """Score the parser of a pipeline under each of some limits, by its own scorer.

    Args:
        nlp: the pipeline.
        examples: predicted docs and references with gold constituents; see
            `spacy-psa.TreeCorpus.v1`.
        limits: the setups; None for all `setups`.
        parser: the parser; None for the first one of the pipeline.

    Yields:
        Each setup with its scores, as soon as it is done.

    Raises:
        InputError: as `encoder` and `limited`, and if no example has constituents.
    """
    parser = parser or _first_parser(nlp)
    module = encoder(nlp, parser)
    examples = list(examples)
    for setup in setups(module) if limits is None else limits:
        with limited(module, setup):
            docs = nlp.pipe([example.predicted.copy() for example in examples])
            pairs = zip(docs, examples, strict=True)
            annotated = [Example(doc, example.reference) for doc, example in pairs]
        scores = parser.score(annotated)
        if scores.get("tree_f") is None:
            raise InputError(
                "there are no gold trees to compare with: use examples with "
                f'doc.spans["{parser.spans_key}"] and a parser with a scorer of this group'
            )
        yield Row(setup, {figure: scores[f"tree_{figure}"] for figure in FIGURES})


def record(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Convert rows for JSON; layers are numbered from 0."""
    return [{**row.setup._asdict(), **row.scores} for row in rows]


def draw(rows: Iterable[Row]) -> Figure:
    """Draw F1 by the layers that lack content or position, and by the window.

    A dashed line is the parser without limits.
    """
    f1 = _percent(rows)
    figure = new_figure(9.0, 4.0)
    left, right = figure.subplots(1, 2, sharey=True)
    sets, windows = _places(f1)
    for number, name in enumerate(("content", "position")):
        limits = [Setup(each, ()) if name == "content" else Setup((), each) for each in sets]
        values = [f1.get(setup, float("nan")) for setup in limits]
        places = [place + 0.2 * number - 0.1 for place in range(len(sets))]
        left.plot(places, values, "o", color=colours(2)[number], label=f"without {name}")
    left.set_xticks(range(len(sets)), [_span(each) for each in sets])
    for name, colour in zip(("strict", "relaxed"), colours(2)):
        limits = [Setup(window=each, relaxed=name == "relaxed") for each in windows]
        values = [f1.get(setup, float("nan")) for setup in limits]
        right.plot(range(len(windows)), values, "o-", color=colour, label=name)
    right.set_xticks(range(len(windows)), [str(each) for each in windows])
    left.set(xlabel="layers", ylabel="F1, %")
    right.set(xlabel="window, tokens")
    for axes in (left, right):
        if Setup() in f1:
            axes.axhline(f1[Setup()], color="#444444", linestyle="--", linewidth=1)
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
        if axes.get_legend_handles_labels()[1]:
            axes.legend()
    return figure


def _percent(rows: Iterable[Row]) -> dict[Setup, float]:
    return {row.setup: 100 * row.scores["f"] for row in rows}


def _places(setups: Iterable[Setup]) -> tuple[list[tuple[int, ...]], list[int]]:
    """The sets of layers and the windows of setups, each once."""
    setups = list(setups)
    sets = dict.fromkeys(s.disable_content or s.disable_position for s in setups)
    windows = dict.fromkeys(s.window for s in setups if s.window)
    return [layers for layers in sets if layers], [*windows]


def _span(layers: tuple[int, ...]) -> str:
    """Layers as they are written, numbered from 1."""
    return f"{layers[0] + 1}-{layers[-1] + 1}" if len(layers) > 1 else f"{layers[0] + 1}"


def markdown(rows: Iterable[Row]) -> str:
    """Write both tables in F1 (percent), with differences from no limits; layers count from 1."""
    f1 = _percent(rows)
    full = f1.get(Setup())
    sets, windows = _places(f1)

    def cell(setup: Setup) -> str:
        if setup not in f1:
            return ""
        change = "" if full is None or setup == Setup() else f" ({f1[setup] - full:+.2f})"
        return f"{f1[setup]:.2f}{change}"

    lines = [f"Without limits: {cell(Setup())} F1.", ""]
    if sets:
        lines += ["| layers | without content | without position |", "| --- | --- | --- |"]
        for each in sets:
            lines.append(
                f"| {_span(each)} | {cell(Setup(disable_content=each))} "
                f"| {cell(Setup(disable_position=each))} |"
            )
        lines.append("")
    if windows:
        lines += ["| window | strict | relaxed |", "| --- | --- | --- |"]
        for window in windows:
            strict, relaxed = (cell(Setup(window=window, relaxed=way)) for way in (False, True))
            lines.append(f"| {window} | {strict} | {relaxed} |")
        lines.append("")
    return "\n".join(lines)
