"""The distances that sinusoidal position encodings express (Yan2019 section 3.1, Figs. 3 and 4)."""

from collections.abc import Sequence
from typing import Any

import torch

from spacy_psa.analysis.figures import Figure, colours, new_figure
from spacy_psa.errors import check_sizes
from spacy_psa.modules.sinusoids import sinusoids


def products(width: int, distance: int, place: int = 0, weight: torch.Tensor | None = None) -> list:
    """Multiply the encodings of two places, for each distance from -`distance` to `distance`.

    Without a weight the product PE_t · PE_{t+k} is Σ_i cos(c_i k), which depends on neither the
    place t nor the sign of k (Yan2019 Eqs. 10 to 15). A projection W between them, as attention
    has it, PE_t W PE_{t+k}, breaks both.

    Args:
        width: d, the width of the encoding.
        distance: the largest distance.
        place: t.
        weight: W (d, d); None for none.

    Examples:
        >>> [round(value, 2) for value in products(width=2, distance=2)]
        [-0.42, 0.54, 1.0, 0.54, -0.42]
    """
    check_sizes(width=width, distance=distance)
    steps = torch.arange(place - distance, place + distance + 1)
    encodings, own = sinusoids(steps, width), sinusoids(torch.tensor([place]), width)
    projected = own if weight is None else own @ weight.double()
    values: list[float] = (projected @ encodings.T)[0].tolist()
    return values


def compare_encodings(
    widths: Sequence[int], distance: int, draws: int = 2, seed: int = 0
) -> dict[str, Any]:
    """Compute the curves of Yan2019 Figs. 3 and 4, up to the distance k.

    Fig. 4 has the first of the widths d, and `draws` random projections of normal numbers / √d. The
    result has `distances`; `plain`, the products by width; and `projected`, those of each draw.
    """
    check_sizes(draws=draws, least=0)
    check_sizes(width=min(widths))
    generator = torch.Generator().manual_seed(seed)
    size = widths[0]
    weights = [torch.randn(size, size, generator=generator) / size**0.5 for _ in range(draws)]
    return {
        "distances": list(range(-distance, distance + 1)),
        "plain": {str(width): products(width, distance) for width in widths},
        "projected": [products(size, distance, weight=weight) for weight in weights],
    }


def draw_encodings(curves: dict[str, Any]) -> Figure:
    """Draw the curves of `compare_encodings`, Fig. 3 above and Fig. 4 below."""
    figure = new_figure(6.5, 5.6)
    above, below = figure.subplots(2, 1, sharex=True)
    for (width, values), colour in zip(curves["plain"].items(), colours(len(curves["plain"]))):
        above.plot(curves["distances"], values, color=colour, label=f"d = {width}")
    for number, values in enumerate(curves["projected"], 1):
        (colour,) = colours(len(curves["plain"]) + number)[-1:]
        below.plot(curves["distances"], values, color=colour, label=f"random W {number}")
    above.set(ylabel="PE(t) · PE(t + k)")
    below.set(ylabel="PE(t) W PE(t + k)", xlabel="distance k")
    for axes in (above, below):
        axes.grid(alpha=0.3)
        axes.legend(loc="upper right")
    return figure
