"""Pictures of attention, gates and recalls (Wei2020 Fig. 6 and Tab. 13, Li2019 Figs. 2 and 3)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from spacy_psa.analysis.attention import View
from spacy_psa.analysis.figures import Figure, colours, new_figure
from spacy_psa.errors import InputError
from spacy_psa.scoring.token_recall import Recall, differences

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

INCHES = 0.28
"""The size of a cell, if there is room for all."""
WIDEST = 40.0
"""The greatest width of the cells of a picture, in inches."""
MOST = 80
"""The greatest number of tokens of a picture."""


def attention_figures(view: View, word: str | None = None) -> dict[str, Any]:
    """The attention over a sentence as plain numbers.

    The result has `words`; `word`, the place of the word at its first occurrence or None; and
    `layers`, for each layer the heads, each (n, n), or (n) of the word: how much a token attends to
    each token.
    """
    words = [token.text for token in view.sentence]
    if word is not None and word not in words:
        raise InputError(f"--word {word}: is not in the sentence; name one of {', '.join(words)}")
    place = None if word is None else words.index(word)
    layers = []
    for layer in view.layers:
        heads = layer.attention if layer.attention.ndim == 3 else layer.attention[None]
        layers.append((heads if place is None else heads[:, place]).tolist())
    return {"words": words, "word": place, "layers": layers}


def gate_figures(view: View) -> dict[str, Any]:
    """The `words` and, as `layers`, the mean gates of each (λ1 and λ2 of Wei2020 Table 13)."""
    gates = [layer.gate for layer in view.layers if layer.gate is not None]
    if not gates:
        raise InputError(
            "the encoder has attention, but no gates: use a pipeline with PSABiLSTM.v1"
        )
    words = [token.text for token in view.sentence]
    return {"words": words, "layers": [gate.mean(1).tolist() for gate in gates]}


def draw_attention(figures: Mapping[str, Any]) -> Figure:
    """Draw `attention_figures`: a row of heat maps for each layer, one for each head.

    Of a single word there is one heat map for each layer, with a row for each head.
    """
    words, layers = figures["words"], figures["layers"]
    _check_length(words)
    heads = max(len(layer) for layer in layers)
    across = 1 if figures["word"] is not None else heads
    cell = min(INCHES, WIDEST / (across * len(words)))
    side = max(cell * len(words), 1.2) + 0.9
    most = max(numpy.max(layer) for layer in layers) or 1.0  # one scale for all
    if figures["word"] is not None:
        figure = new_figure(side + 1.2, len(layers) * (INCHES * heads + 0.6) + 0.9)
        grid = figure.subplots(len(layers), 1, squeeze=False, sharex=True)
        for number, layer in enumerate(layers):
            axes, names = grid[number][0], [f"head {n + 1}" for n in range(len(layer))]
            shown = _heat(
                axes, layer, words if number == len(layers) - 1 else [], names, most, cell
            )
            title = f"layer {number + 1}: " if len(layers) > 1 else ""
            axes.set_title(f"{title}what {words[figures['word']]!r} attends to")
        figure.colorbar(shown, ax=list(grid.flat))
        return figure
    figure = new_figure(heads * side + 0.9, len(layers) * side)
    grid = figure.subplots(len(layers), heads, squeeze=False)
    for row, layer in zip(grid, layers):
        for axes, matrix in zip(row, layer):
            shown = _heat(axes, matrix, words, words, most, cell)
        for axes in row[len(layer) :]:
            axes.axis("off")
    for number, (row, layer) in enumerate(zip(grid, layers), 1):
        for head, axes in enumerate(row[: len(layer)], 1):
            axes.set_title(f"layer {number}" + (f", head {head}" if len(layer) > 1 else ""))
    figure.colorbar(shown, ax=list(grid.flat), shrink=0.6)
    return figure


def draw_gates(figures: Mapping[str, Any]) -> Figure:
    """Draw `gate_figures`: a bar for each token and layer."""
    words, layers = figures["words"], figures["layers"]
    _check_length(words)
    figure = new_figure(max(4.0, 0.55 * len(words) + 1.0), 3.4)
    axes = figure.subplots()
    width = 0.8 / len(layers)
    for number, (gates, colour) in enumerate(zip(layers, colours(len(layers)))):
        places = numpy.arange(len(words)) + (number - (len(layers) - 1) / 2) * width
        axes.bar(places, gates, width, color=colour, label=f"layer {number + 1}")
    axes.set_xticks(range(len(words)), words, rotation=45, ha="right")
    axes.set(ylim=(0, 1), ylabel="mean gate (share of own features)")
    axes.grid(alpha=0.3, axis="y")
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper right", ncols=len(layers))
    return figure


def draw_recalls(tables: Mapping[str, Mapping[str, Mapping[str, Recall]]]) -> Figure:
    """Draw how recalls change if parts of the encoder are replaced with zeros (Li2019 Tabs. 3, 4).

    `tables` are `ablation.recalls` for each kind of classes. The first setup is the whole model.
    """
    sizes = [len(next(iter(table.values()))) for table in tables.values()]
    columns = max(len(table) for table in tables.values())
    figure = new_figure(0.75 * columns + 2.0, 0.4 * sum(sizes) + 1.1 * len(sizes) + 0.3)
    grid = figure.subplots(len(tables), 1, squeeze=False, height_ratios=sizes)
    for (kind, table), (axes,) in zip(tables.items(), grid):
        whole, *others = table
        classes = [*table[whole]]
        changes = [differences(table[whole], table[name]) for name in others]
        rows = numpy.array([[change[name] for change in changes] for name in classes])
        names = [f"{name} {100 * table[whole][name].rate:.1f}" for name in classes]
        axes.imshow(rows, cmap="RdBu", vmin=-100, vmax=100, aspect="auto")
        axes.set_xticks(range(len(others)), others)
        axes.set_yticks(range(len(classes)), names)
        axes.set_title(f"recall by {kind}: {whole} at the left, then changes in points")
        for (y, x), value in numpy.ndenumerate(rows):
            ink = "white" if abs(value) > 60 else "black"
            axes.text(x, y, f"{value:+.1f}", ha="center", va="center", color=ink, fontsize=8)
    return figure


def _heat(
    axes: "Axes",
    matrix: Any,
    columns: Sequence[str],
    rows: Sequence[str],
    most: float,
    width: float,
) -> "AxesImage":
    image = axes.imshow(matrix, cmap="Blues", vmin=0.0, vmax=most, aspect="auto")
    size = min(10.0, 36 * width)
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=size)
    axes.set_yticks(range(len(rows)), rows, fontsize=size)
    return image


def _check_length(words: Sequence[str]) -> None:
    if len(words) > MOST:
        raise InputError(f"{len(words)} tokens are too many for a picture; use {MOST} or fewer")
