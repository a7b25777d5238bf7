"""Figures of the chart parser, its encoder and its trees."""

from itertools import pairwise

from drawing import Drawing

WORDS = ["She", "met", "Ada", "Brown"]


def chart_parser() -> Drawing:
    d = Drawing(700, 600, "The chart parser: from words over a factored encoder to span scores")
    names = ["START", *WORDS, "STOP"]
    xs = [60 + 116 * i for i in range(6)]
    for x, name in zip(xs, names, strict=True):
        d.text(x, 20, name, bold=name not in ("START", "STOP"), size=13)
        d.box(x - 40, 36, 40, 28, "content", "blue", size=9, radius=3)
        d.box(x, 36, 42, 28, "position", "purple", size=9, radius=3)
        d.arrow((x, 64), (x, 84))
    d.box(16, 86, 668, 92, "", "grey")
    d.text(350, 104, "factored self-attention, 8 layers", bold=True)
    d.box(
        40, 118, 300, 46, "content:  q·k and values of content\nweights of its own", "blue", size=12
    )
    d.box(
        360,
        118,
        300,
        46,
        "position:  q·k and values of position\nweights of its own",
        "purple",
        size=12,
    )
    d.text(350, 141, "+", size=16)
    for x in xs:
        d.arrow((x, 178), (x, 198))
        d.box(x - 40, 200, 40, 26, "y→", "grey", size=11, radius=3)
        d.box(x, 200, 40, 26, "←y", "grey", size=11, radius=3)
    posts = [(a + b) / 2 for a, b in pairwise(xs)]
    for i, (x, a, b) in enumerate(zip(posts, xs, xs[1:], strict=False)):
        d.arrow((a - 20, 226), (x - 5, 262))
        d.arrow((b + 20, 226), (x + 5, 262))
        d.dot(x, 276, 13, "orange", f"F{'₀₁₂₃₄'[i]}")
    d.text(692, 276, "fenceposts", size=12, muted=True, anchor="end")
    steps = ("Fⱼ − Fᵢ", "linear", "LayerNorm, relu", "linear", "a score for each label")
    d.text(350, 312, "span (i, j):   " + "   →   ".join(steps), size=13)
    side, left, top = 44, 60, 345
    d.text(left + 2.6 * side, top + 4.9 * side, "chart of all spans", size=12, muted=True)
    chosen = {(0, 4): "S", (0, 1): "NP", (1, 4): "VP", (2, 4): "NP"}
    for i in range(4):
        for j in range(i + 1, 5):
            x, y = left + (j - 1) * side, top + i * side
            label = chosen.get((i, j), "")
            d.box(x, y, side - 3, side - 3, label, "green" if label else "plain", size=13, radius=3)
        d.text(left - 16, top + i * side + 20, str(i), size=12, muted=True)
    for j in range(1, 5):
        d.text(left + (j - 1) * side + 20, top - 10, str(j), size=12, muted=True)
    d.arrow((280, 430), (350, 430))
    d.text(315, 412, "CKY", size=13)
    _tree(d, 370, 350)
    return d


def _tree(d: Drawing, x: float, y: float) -> None:
    leaves = [x + 30 + 80 * i for i in range(4)]
    nodes = {
        "S": (leaves[0] + 90, y + 10),
        "NP": (leaves[0], y + 70),
        "VP": (leaves[1] + 70, y + 70),
        "NP2": ((leaves[2] + leaves[3]) / 2, y + 130),
    }
    for a, b in (("S", "NP"), ("S", "VP"), ("VP", "NP2")):
        d.line((nodes[a][0], nodes[a][1] + 12), (nodes[b][0], nodes[b][1] - 12))
    for name, leaf in (("NP", 0), ("VP", 1), ("NP2", 2), ("NP2", 3)):
        d.line((nodes[name][0], nodes[name][1] + 12), (leaves[leaf], y + 188))
    for name, (a, b) in nodes.items():
        d.box(a - 20, b - 13, 40, 26, name.rstrip("2"), "green", size=13)
    for leaf, word in zip(leaves, WORDS, strict=True):
        d.text(leaf, y + 200, word, size=13)


FIGURES = {"chart_parser": chart_parser}
