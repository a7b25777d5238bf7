"""The reliability diagram of a recorded calibration (benchmarks/calibration/results)."""

import json
from pathlib import Path

from drawing import Drawing

RECORD = Path(__file__).parents[2] / "benchmarks/calibration/results/psa.json"


def reliability() -> Drawing:
    record = json.loads(RECORD.read_text(encoding="utf8"))["results"]
    d = Drawing(680, 350, "Reliability of PSA-BiLSTM-CRF on CoNLL-2003's test set")
    for p, when in enumerate(("before", "after")):
        x0, y0, side = 50 + 330 * p, 50, 250
        scores = record["data"]["test"][when]
        temperature = record["temperature"][when]
        d.text(
            x0 + side / 2, 16, f"{when}: T = {temperature:.2f}, ECE {scores['ece']:.3f}", bold=True
        )
        d.box(x0, y0, side, side, "", "plain", radius=0)
        for bar in scores["bins"]:
            if not bar["size"]:
                continue
            left = x0 + side * bar["lower"]
            width = side * (bar["upper"] - bar["lower"])
            height = side * bar["accuracy"]
            d.box(left + 1, y0 + side - height, width - 2, height, "", "blue", radius=0)
        d.line((x0, y0 + side), (x0 + side, y0), colour="orange", width=2)
        for share in (0, 0.5, 1):
            d.text(x0 + side * share, y0 + side + 14, f"{share:g}", size=12, muted=True)
            d.text(x0 - 8, y0 + side * (1 - share), f"{share:g}", size=12, muted=True, anchor="end")
        d.text(x0 + side / 2, y0 + side + 34, "confidence", size=13)
        d.text(x0, y0 - 12, "share of correct spans", size=13, anchor="start")
    return d


FIGURES = {"reliability": reliability}
