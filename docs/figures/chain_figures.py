"""Figures of the taggers: overview, PSA, its bias, convolutions, LSTMs and characters."""

import math

from drawing import Drawing


def overview() -> Drawing:
    d = Drawing(640, 400, "From a doc over embedder, encoder and head to exact answers")
    steps = [
        ("Doc", "tokens, sentence by sentence", "plain"),
        ("embed", "word vectors, characters, shapes, tags", "blue"),
        ("encode", "PSA-BiLSTM, BiLSTM, TENER, ID-CNN, …", "blue"),
        ("head", "a log potential for each part", "orange"),
        ("distribution", "linear chain of tags, or tree of spans", "purple"),
    ]
    for i, (name, what, colour) in enumerate(steps):
        top = 14 + 77 * i
        d.box(14, top, 300, 54, f"{name}\n{what}", colour, bold=True)
        if i:
            d.arrow((164, top - 23), (164, top - 2))
    answers = [
        ("best analysis", "doc.ents, token.tag_, doc.spans"),
        ("probability of every span", "span._.confidence"),
        ("k best analyses", "kbest(doc, k)"),
        ("uncertainty of a doc", "doc._.ner_uncertainty"),
        ("best analysis given evidence", "what you know is kept"),
    ]
    for i, (name, how) in enumerate(answers):
        top = 14 + 77 * i
        d.box(378, top, 250, 54, f"{name}\n{how}", "green")
        d.arrow((346, 349), (346, top + 27), (376, top + 27))
    d.line((314, 349), (346, 349))
    return d


def psa_bilstm_crf() -> Drawing:
    d = Drawing(700, 560, "PSA-BiLSTM-CRF: the stack, and what one attention layer does")
    left = 150
    d.box(14, 14, 128, 44, "word vector\nfine-tuned", "blue")
    d.box(158, 14, 128, 44, "characters\nBiLSTM", "blue")
    d.arrow((78, 58), (78, 78), (left - 8, 78), (left - 8, 92))
    d.arrow((222, 58), (222, 78), (left + 8, 78), (left + 8, 92))
    stack = [
        ("x  =  word ; characters", "dropout 0.55", "grey"),
        ("PSA + fusion", "bottom", "purple"),
        ("BiLSTM", "300 units each way, dropout 0.55", "blue"),
        ("PSA + fusion", "top", "purple"),
        ("W[y′, y] · z + b[y′, y]", "a weight vector for each pair of tags", "orange"),
        ("linear chain", "only legal sequences of BIOES tags", "green"),
    ]
    for i, (name, what, colour) in enumerate(stack):
        top = 94 + 77 * i
        d.box(24, top, 252, 50, f"{name}\n{what}", colour)
        if i:
            d.arrow((left, top - 27), (left, top - 2))
    d.line((276, 196), (330, 96), colour="plain")
    d.line((276, 350), (330, 546), colour="plain")
    d.box(330, 14, 356, 532, "", "plain", dashed=True)
    d.text(508, 36, "PSA + fusion, for token i", bold=True)
    d.text(508, 58, "input x₁ … xₙ", muted=True, size=13)
    d.box(350, 80, 200, 60, "wᵀ tanh(W₁ xᵢ + W₂ xⱼ + b)\ncontent", "grey", size=13)
    d.box(566, 80, 104, 60, "Ψ(i, j)\nposition", "purple", size=13)
    d.arrow((450, 140), (450, 158), (496, 158), (496, 174))
    d.arrow((618, 140), (618, 158), (520, 158), (520, 174))
    d.box(400, 176, 216, 40, "softmax over j", "grey", size=13)
    d.arrow((508, 216), (508, 242))
    d.box(400, 244, 216, 40, "s  =  Σⱼ a(i, j) xⱼ ,  dropout 0.2", "grey", size=13)
    d.arrow((508, 284), (508, 310))
    d.box(400, 312, 216, 40, "s̃  =  tanh(W₄ tanh(W₃ s + b))", "grey", size=13)
    d.arrow((508, 352), (508, 378))
    d.box(376, 380, 264, 54, "gate λ\nsigmoid(W₇ tanh(W₅ xᵢ + W₆ s̃))", "orange", size=13)
    d.arrow((508, 434), (508, 460))
    d.box(376, 462, 264, 44, "λ xᵢ + (1 − λ) s̃", "green", size=14)
    d.arrow((360, 58), (342, 58), (342, 407), (374, 407), dashed=True)
    d.arrow((342, 407), (342, 484), (374, 484), dashed=True)
    d.text(508, 528, "output, as wide as the input", muted=True, size=13)
    return d


def position_bias() -> Drawing:
    d = Drawing(640, 300, "The three parts of the position bias for a sentence of nine tokens")
    n, side = 9, 19
    kinds = [
        ("M", "mask", "the token itself is left out", "orange"),
        ("G", "Gaussian", "near tokens count more", "blue"),
        ("P", "token bias", "learned from xᵢ by distance", "purple"),
    ]
    for k, (name, what, why, colour) in enumerate(kinds):
        x0, y0 = 24 + 208 * k, 64
        d.text(x0 + n * side / 2, 22, f"{name}: {what}", bold=True)
        d.text(x0 + n * side / 2, 44, why, size=12, muted=True)
        for i in range(n):
            for j in range(n):
                distance = abs(i - j)
                if name == "M":
                    strength = 1.0 if i == j else 0.0
                elif name == "G":
                    strength = 0.9 * math.exp(-(distance**2) / (2 * 2.2**2))
                else:  # a made-up row for each token, read by clipped distance
                    strength = 0.45 + 0.4 * math.sin(1.7 * i + 0.9 * min(distance, 4))
                d.cell(x0 + j * side, y0 + i * side, side, colour, strength)
        d.text(x0 - 10, y0 + n * side / 2, "i", size=13, muted=True)
        d.text(x0 + n * side / 2, y0 + n * side + 14, "j", size=13, muted=True)
    d.text(320, 276, "Ψ  =  M + α G + (1 − α) P,   α trained, from 0 to 1", size=15)
    return d


def idcnn() -> Drawing:
    d = Drawing(640, 400, "Iterated dilated convolutions: which tokens the middle output sees")
    columns = [70 + 40 * i for i in range(11)]
    rows = [24, 84, 150, 216, 282, 348]
    names = ["tokens", "first convolution", "dilation 1", "dilation 2", "dilation 1", ""]
    steps = [1, 1, 2, 1]
    seen = {5}
    levels = [seen]
    for dilation in reversed(steps):
        seen = {i + s for i in seen for s in (-dilation, 0, dilation)} & set(range(11))
        levels.append(seen)
    levels.reverse()
    for level, step in enumerate(steps):
        for i in sorted(levels[level + 1]):
            for s in (-step, 0, step):
                if i + s in levels[level]:
                    d.line(
                        (columns[i + s], rows[level] + 11), (columns[i], rows[level + 1] - 11),
                        width=1.1,
                    )  # fmt: skip
    for level in range(5):
        colour = "grey" if level == 0 else "blue" if level == 1 else "purple"
        for i, x in enumerate(columns):
            d.dot(x, rows[level], 11, colour if i in levels[level] else "plain")
        d.text(502, rows[level], names[level], anchor="start", size=13)
    d.box(44, 124, 448, 184, "", "plain", dashed=True)
    d.text(502, 312, "the block", anchor="start", size=13, muted=True)
    d.arrow((44, 282), (22, 282), (22, 150), (42, 150))
    d.text(
        270, 336, "The block is applied again to its own output, with the same weights.", size=13
    )
    d.text(
        270,
        358,
        "Each application adds 1 + 2 + 1 tokens on either side to what a token sees.",
        size=13,
        muted=True,
    )
    return d


def lstm_stacks() -> Drawing:
    d = Drawing(700, 420, "Three ways to stack bidirectional LSTMs")
    panels = ["two stacks", "Cross-BiLSTM", "self-attentive BiLSTM"]
    under = ["the directions never meet", "each layer reads both", "two stacks and heads"]
    for p, (name, why) in enumerate(zip(panels, under, strict=True)):
        x = 14 + 228 * p
        d.text(x + 106, 20, name, bold=True)
        d.text(x + 106, 42, why, size=12.5, muted=True)
        d.box(x + 36, 60, 140, 36, "x", "grey")
        for layer in (0, 1):
            top = 136 + 88 * layer
            d.box(x + 6, top, 92, 40, "forward →", "blue", size=13)
            d.box(x + 114, top, 92, 40, "← backward", "blue", size=13)
        d.arrow((x + 76, 96), (x + 52, 134))
        d.arrow((x + 136, 96), (x + 160, 134))
        d.arrow((x + 52, 176), (x + 52, 222))
        d.arrow((x + 160, 176), (x + 160, 222))
        if p == 1:
            d.arrow((x + 66, 176), (x + 146, 222))
            d.arrow((x + 146, 176), (x + 66, 222))
        if p < 2:
            d.arrow((x + 52, 264), (x + 84, 350))
            d.arrow((x + 160, 264), (x + 128, 350))
            d.box(x + 6, 352, 200, 36, "H  =  forward ; backward", "green", size=13)
        else:
            d.box(x + 6, 284, 200, 34, "H  =  forward ; backward", "green", size=13)
            d.arrow((x + 52, 264), (x + 52, 282))
            d.arrow((x + 160, 264), (x + 160, 282))
            d.arrow((x + 106, 318), (x + 106, 336))
            d.box(x + 24, 338, 182, 30, "5 attention heads over H", "purple", size=12.5)
            d.arrow((x + 106, 368), (x + 106, 382))
            d.arrow((x + 12, 318), (x + 12, 382))
            d.box(x, 384, 212, 30, "H ; C¹ ; … ; C⁵", "green", size=13)
    return d


def characters() -> Drawing:
    d = Drawing(700, 506, "Six ways to make a vector of a word's characters")
    word = "Leeds"

    def letters(x: float, y: float, count: int = 5) -> list[float]:
        places = [x + 26 * i for i in range(count)]
        for place, letter in zip(places, word, strict=False):
            d.box(place, y, 24, 26, letter, "grey", size=13, radius=3)
        return [place + 12 for place in places]

    panels = [
        (14, 14, "CharBiLSTM", "last state of each direction, or maximum"),
        (364, 14, "CharCNN", "the largest value of each filter, then a linear layer"),
        (14, 178, "CharTransformer, CharAdaTrans", "one attention layer, maximum, linear layer"),
        (364, 178, "CharNgramCNN", "filters over 1, 2 and 3 characters of 20"),
        (14, 342, "CharConcat", "the first and the last 8 letters side by side"),
    ]
    for x, y, name, what in panels:
        d.box(x, y, 322, 150, "", "plain", dashed=True)
        d.text(x + 161, y + 18, name, bold=True, size=13.5)
        d.text(x + 161, y + 136, what, size=11.5, muted=True)
    x, y = 14, 14
    places = letters(x + 96, y + 34)
    d.arrow((places[0] - 8, y + 74), (places[-1] + 8, y + 74))
    d.arrow((places[-1] + 8, y + 86), (places[0] - 8, y + 86))
    d.box(x + 230, y + 98, 60, 24, "→ state", "blue", size=12)
    d.box(x + 32, y + 98, 60, 24, "state ←", "blue", size=12)
    d.arrow((places[-1] + 12, y + 74), (x + 260, y + 74), (x + 260, y + 96))
    d.arrow((places[0] - 12, y + 86), (x + 62, y + 86), (x + 62, y + 96))
    x, y = 364, 14
    places = letters(x + 96, y + 34)
    for i in range(5):
        for j in (i - 1, i, i + 1):
            if 0 <= j < 5:
                d.line((places[j], y + 60), (places[i], y + 84), width=1)
        d.dot(places[i], y + 90, 7, "blue")
    d.box(x + 250, y + 78, 54, 24, "max", "green", size=12)
    d.arrow((places[-1] + 12, y + 90), (x + 248, y + 90))
    x, y = 14, 178
    places = letters(x + 96, y + 34)
    for i in range(5):
        for j in range(5):
            d.line((places[j], y + 60), (places[i], y + 84), width=0.7)
        d.dot(places[i], y + 90, 7, "purple")
    d.box(x + 250, y + 78, 54, 24, "max", "green", size=12)
    d.arrow((places[-1] + 12, y + 90), (x + 248, y + 90))
    x, y = 364, 178
    places = letters(x + 34, y + 34)
    for i in range(3):
        d.box(places[-1] + 14 + 26 * i, y + 34, 24, 26, "·", "plain", size=13, radius=3)
    for k, (size, colour) in enumerate(((1, "blue"), (2, "purple"), (3, "orange"))):
        wide = 26 * size - 2
        d.box(places[0] - 12 + 70 * k, y + 70, wide, 14, "", colour, radius=3)
        d.arrow((places[0] - 12 + 70 * k + wide / 2, y + 84), (x + 66 + 90 * k, y + 98))
        d.box(x + 36 + 90 * k, y + 99, 60, 22, "max", "green", size=12)
    x, y = 14, 342
    for i, letter in enumerate("Leeds···"):
        pad = letter == "·"
        d.box(
            x + 18 + 17 * i, y + 40, 16, 24, letter, "plain" if pad else "blue", size=12, radius=3
        )
    for i, letter in enumerate("···Leeds"):
        pad = letter == "·"
        d.box(
            x + 170 + 17 * i, y + 40, 16, 24, letter, "plain" if pad else "blue", size=12, radius=3
        )
    d.text(x + 85, y + 80, "first letters", size=12, muted=True)
    d.text(x + 237, y + 80, "last letters", size=12, muted=True)
    d.text(x + 161, y + 104, "a trained vector fills up short words", size=12, muted=True)
    d.text(525, 380, "Embedders read each distinct word", size=13)
    d.text(525, 400, "of a batch once and hand its vector", size=13)
    d.text(525, 420, "to all tokens that have it.", size=13)
    return d


def transformers() -> Drawing:
    d = Drawing(700, 500, "Transformer, TENER and PSA-Transformer side by side")
    columns = [
        ("Transformer", "+ sinusoids of the position", "q·k / √d", "absolute positions", "grey"),
        ("TENER", "no positions added", "q·k + q·r + u·k + v·r", "r: distance, direction", "blue"),
        (
            "PSA-Transformer",
            "no positions added",
            "q·k / √d + Ψ(i, j)",
            "Ψ: the bias of PSA",
            "purple",
        ),
    ]
    for p, (name, places, score, why, colour) in enumerate(columns):
        x = 14 + 230 * p
        middle = x + 106
        d.text(middle, 20, name, bold=True)
        steps = [
            (44, 40, "token vectors\nword ; characters", "grey"),
            (110, 40, f"linear layer\n{places}", "grey"),
            (186, 54, f"{score}\n{why}", colour),
            (262, 38, "softmax, weighted values", "grey"),
            (322, 34, "add and normalise", "grey"),
            (378, 34, "feed-forward, relu", "grey"),
            (434, 34, "add and normalise", "grey"),
        ]
        for i, (top, height, text, kind) in enumerate(steps):
            d.box(x + 6, top, 200, height, text, kind, size=13)
            if i:
                before = steps[i - 1]
                d.arrow((middle, before[0] + before[1]), (middle, top - 1))
        d.box(x, 168, 212, 312, "", "plain", dashed=True)
        d.text(middle, 490, "× layers", size=12, muted=True)
    return d


def lattice() -> Drawing:
    d = Drawing(700, 330, "All tag sequences of a sentence as paths through a lattice")
    words = ["Ada", "Lovelace", "met", "Leeds"]
    tags = ["O", "B-PER", "E-PER", "S-LOC"]
    xs = [150 + 160 * i for i in range(4)]
    ys = [80 + 62 * i for i in range(4)]
    follows = {0: (0, 1, 3), 1: (2,), 2: (0, 1, 3), 3: (0, 1, 3)}
    first, last = (0, 1, 3), (0, 2, 3)
    best = [1, 2, 0, 3]
    for t in range(3):
        for a, targets in follows.items():
            if t == 0 and a not in first:
                continue
            for b in targets:
                if t == 2 and b not in last:
                    continue
                on = best[t] == a and best[t + 1] == b
                d.line(
                    (xs[t] + 24, ys[a]), (xs[t + 1] - 24, ys[b]),
                    colour="green" if on else "", width=3.2 if on else 0.9,
                )  # fmt: skip
    for t, word in enumerate(words):
        d.text(xs[t], 30, word, bold=True)
        for k, tag in enumerate(tags):
            off = (t == 0 and k not in first) or (t == 3 and k not in last)
            colour = "green" if best[t] == k else "plain" if off else "blue"
            d.dot(xs[t], ys[k], 22, colour)
            d.text(xs[t], ys[k], tag, size=11, muted=off)
    d.text(14, 30, "words", anchor="start", muted=True, size=13)
    d.text(14, ys[0], "tags", anchor="start", muted=True, size=13)
    d.text(
        350,
        312,
        "A path is an analysis. Its log probability is the sum of its edges less log Z.",
        size=13,
    )
    return d


FIGURES = {
    "overview": overview,
    "psa_bilstm_crf": psa_bilstm_crf,
    "position_bias": position_bias,
    "idcnn": idcnn,
    "lstm_stacks": lstm_stacks,
    "characters": characters,
    "transformers": transformers,
    "lattice": lattice,
}
