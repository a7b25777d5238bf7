"""The colours of labels differ also for people who do not see red or green."""

import re
from itertools import combinations

import numpy
import pytest

from spacy_psa.studio.server.app import STATIC

COLOURS = 10
# Machado, Oliveira, Fernandes 2009: linear RGB as seen without the cones for red, or for green.
SEEN = {
    "all": numpy.eye(3),
    "without red": numpy.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "without green": numpy.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
TO_XYZ = numpy.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = TO_XYZ.sum(1)


def linear(colour):
    """Linear RGB of a colour such as #0f26ae."""
    part = numpy.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return numpy.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIELAB of linear RGB."""
    x, y, z = (TO_XYZ @ rgb.clip(0, 1)) / WHITE
    x, y, z = (numpy.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return numpy.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(first, second):
    """The contrast of WCAG between two colours."""
    dark, light = sorted(float(TO_XYZ[1] @ linear(c)) + 0.05 for c in (first, second))
    return light / dark


@pytest.fixture(params=[0, 1], ids=["light", "dark"])
def palette(request):
    """The paper and the colours of a scheme, as the style sheet has them."""
    css = (STATIC / "style.css").read_text(encoding="utf8")
    papers = re.findall(r"--paper: (#\w{6})", css)
    colours = dict(re.findall(r"--(label-\d+): (#\w{6})", css.split("--paper:")[1 + request.param]))
    return papers[request.param], [colours[f"label-{i}"] for i in range(COLOURS)]


@pytest.mark.parametrize("eyes", SEEN)
def test_each_two_of_the_first_labels_differ(palette, eyes):
    """A distance of 2.3 in CIELAB is just noticeable; these have 20 and more."""
    seen = [lab(SEEN[eyes] @ linear(colour)) for colour in palette[1]]
    assert min(numpy.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 20


def test_each_colour_stands_out_from_the_paper(palette):
    paper, colours = palette
    assert min(contrast(paper, colour) for colour in colours) >= 3  # WCAG 1.4.11


def test_the_script_knows_how_many_colours_there_are():
    script = (STATIC / "dom.js").read_text(encoding="utf8")
    assert f"const COLOURS = {COLOURS};" in script
