"""Measure training steps of configs, and the minimum time for their linear layers.

Each ROW is NAME=CONFIG, with random weights; the first is the baseline. All rows do the same
training steps in turn, as in `spacy-psa benchmark speed`. In the same process, the script measures
the fastest of `RUNS` runs of each of these, for every linear layer of the encoder:

- "products": x Wᵀ, and backward dy W and dyᵀ x, with the rows of a mean batch
- "conversions", for a layer in bfloat16: W, x and dy to bfloat16, the results back to float32
- "optimizer": the pass of fused SGD with momentum over W, its gradient and its velocity

Their sum is the minimum time of the layers if each is computed by itself, without attention
weights, sums, gates, norms and dropout. A row with the LSTM of the baseline needs at least the step
of the baseline and this sum. Any other row needs at least this sum and the time of the baseline
outside of its encoder, as in `spacy-psa benchmark profile`.

For position-aware attention, the script also measures the layers of attention by themselves on a
batch of about the mean number of words, forward and backward and without the products above, and
what they need at least: a tanh for each pair of words and feature, its product with w, and the
products of attention weights and values, one forward and two back.

Results (kind "figures"): `batch`, `words` of a mean batch; `encoder_share`, the share of the
encoder in a step of the baseline; `rows` {NAME: {"steps": a summary of `performance.timing`;
"ratio": the median of baseline / row in processor time; "layers", their number; "multiplications"
with weights per word; "least" {"products", "conversions", "optimizer"}: milliseconds; "attention"
{"now", "least"}: milliseconds, 0 without it; "bound": the largest possible ratio}}.
"""

import json
from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time
from timeit import repeat
from typing import Any

import torch
from spacy.util import minibatch
from torch import Tensor, nn

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.speed.int8 import shims
from benchmarks.worker import faster
from spacy_psa.kernels import gates
from spacy_psa.laboratory.performance.pipelines import Training, named_rows, open_pipelines
from spacy_psa.laboratory.performance.profile import profile_training
from spacy_psa.laboratory.performance.timing import alternate, pin_threads, summary
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.psa import PositionAwareAttention
from spacy_psa.ragged import pad

RUNS = 100


def fastest(function: Callable[[], object]) -> float:
    """Milliseconds of processor time of the fastest run."""
    return 1e3 * min(repeat(function, number=1, repeat=RUNS, timer=process_time))


def least(layer: nn.Linear, rows: int, precision: str) -> dict[str, float]:
    """The minimum time of a linear layer in a training step, in milliseconds."""
    kind = getattr(torch, precision)
    weight = layer.weight.detach()
    x, dy = torch.randn(rows, layer.in_features), torch.randn(rows, layer.out_features)
    w, a, b = weight.to(kind), x.to(kind), dy.to(kind)
    products = sum(map(fastest, (lambda: a @ w.t(), lambda: b @ w, lambda: b.t() @ a)))
    conversions = 0.0
    if precision != "float32":
        conversions = sum(fastest(partial(t.to, kind)) for t in (weight, x, dy))
        conversions += sum(fastest(t.float) for t in (b @ w, a @ w.t(), b.t() @ a))
    copy = nn.Parameter(weight.clone())
    copy.grad = torch.randn_like(weight)
    step = torch.optim.SGD([copy], lr=1e-6, momentum=0.9, fused=True).step
    return {"products": products, "conversions": conversions, "optimizer": fastest(step)}


def attention(layer: PositionAwareAttention, lengths: Tensor) -> dict[str, float]:
    """The time of attention without the products of its layers, now and at least."""
    words, width = int(lengths.sum()), layer.query.in_features
    x, dy = torch.randn(words, width, requires_grad=True), torch.randn(words, width)
    whole = fastest(lambda: layer(x, lengths).backward(dy))
    parts = [least(each, words, layer.precision) for each in (layer.query, layer.key)]
    pairs = torch.randn(int((lengths**2).sum()), width)
    weights = torch.rand(len(lengths), int(lengths.max()), int(lengths.max()))
    values = pad(dy, lengths)
    passes = fastest(lambda: gates.tanh(pairs)), fastest(lambda: pairs @ layer.score.detach())
    return {
        "now": whole - sum(each["products"] + each["conversions"] for each in parts),
        "least": sum(passes) + 3 * fastest(lambda: weights @ values),
    }


class Step:
    """The sum of the minimum times of the layers of a row; `lengths` are those of a batch."""

    def __init__(self, encoder: nn.Module, rows: int, lengths: Tensor):
        layers = [module for module in encoder.modules() if isinstance(module, nn.Linear)]
        precisions = {getattr(module, "precision", None) for module in encoder.modules()}
        precision = "bfloat16" if "bfloat16" in precisions else "float32"
        self.contains_baseline = any(isinstance(m, BiLSTM) for m in encoder.modules())
        shapes = [tuple(layer.weight.shape) for layer in layers]
        times = {s: least(layer, rows, precision) for s, layer in zip(shapes, layers)}
        names = ("products", "conversions", "optimizer")
        attentions = [
            attention(module, lengths)
            for module in encoder.modules()
            if isinstance(module, PositionAwareAttention)
        ]
        self.figures: dict[str, Any] = {
            "layers": len(layers),
            "multiplications": sum(a * b for a, b in shapes),
            "least": {name: round(sum(times[s][name] for s in shapes), 3) for name in names},
            "attention": {
                name: round(sum(each[name] for each in attentions), 3) for name in ("now", "least")
            },
        }

    def bound(self, baseline: float, encoder_share: float) -> float | None:
        """The largest possible ratio to a baseline with steps of so many milliseconds."""
        layers = sum(self.figures["least"].values())
        rest = baseline * (1.0 if self.contains_baseline else 1.0 - encoder_share)
        return round(baseline / (layers + rest), 3) if layers else None


def encoder_of(nlp: Any) -> nn.Module:
    """The torch module with most weights in linear layers or LSTMs, which is the encoder."""

    def size(module: nn.Module) -> int:
        parts = [m for m in module.modules() if isinstance(m, (nn.Linear, nn.LSTM))]
        return sum(p.numel() for m in parts for p in m.parameters())

    return max((shim.module for shim in shims(nlp)), key=size)


def main() -> None:
    options = script_parser(globals(), "TRAIN.spacy", "OUT.json")
    options.add_argument("rows", nargs="+", metavar="NAME=CONFIG", help="the baseline first")
    options.add_argument("--vectors", help="pipeline with word vectors")
    options.add_argument("--batch", type=int, default=10, help="docs in a batch (10)")
    options.add_argument("--steps", type=int, default=40, help="steps in a run (40)")
    options.add_argument("--repeats", type=int, default=5, help="runs of each (5)")
    given = options.parse_args()
    pin_threads(1)
    nlps = open_pipelines(named_rows(given.rows), given.train, given.vectors)
    rows = [Training(n, nlp, given.train, given.steps, given.batch) for n, nlp in nlps.items()]
    words = round(sum(map(len, rows[0].references)) / given.steps)
    batches = [[len(doc) for doc in batch] for batch in minibatch(rows[0].references, given.batch)]
    lengths = torch.tensor(min(batches, key=lambda batch: abs(sum(batch) - words)))
    encoders = {name: Step(encoder_of(nlp), words, lengths) for name, nlp in nlps.items()}
    timed = alternate(rows, given.repeats)
    first = timed[rows[0].name]
    baseline = 1e3 * median(t.cpu_seconds / t.amount for t in first)
    profile = profile_training(rows[0].nlp, given.train, given.steps, given.batch, given.repeats)
    share = round(profile.rooms()["encoder"] / profile.total, 3)
    figures = {
        name: {
            "steps": summary(timings),
            "ratio": faster(timings, first),
            **encoders[name].figures,
            "bound": encoders[name].bound(baseline, share),
        }
        for name, timings in timed.items()
    }
    brief = {n: {k: v for k, v in row.items() if k != "steps"} for n, row in figures.items()}
    print(f"{words} words, baseline {baseline:.1f} ms, encoder {share:.0%}")
    print(json.dumps(brief, indent=1))
    results = {"batch": given.batch, "words": words, "encoder_share": share, "rows": figures}
    write_record(given.out, "speed", results, data=[given.train])


if __name__ == "__main__":
    main()
