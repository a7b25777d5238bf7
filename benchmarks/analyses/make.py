"""Make the analyses of the papers once, as records and pictures.

- `positions`: Yan2019 Figs. 3 and 4; no model
- `convergence`: Yan2019 Fig. 5, from the records of trainings on CoNLL-2003
- `gates`, `attention`: Wei2020 Table 13 and Fig. 6, with the first `psa_all` of
  benchmarks/conll2003/settings_quarter.toml
- `lengths`: Wei2020 Fig. 4, with all `psa_all` and `baseline_all`, on development data
- `blocks`, `heads`: Li2019 Tables 3 and 4, Figs. 2 and 3, with the model of models.toml

Run it where these plans were trained. The record of NAME is benchmarks/analyses/results/NAME.json,
its picture docs/pictures/analyses-NAME.svg; `lengths` has no picture. Results (kind "figures"): the
figures of `spacy-psa analyze`, by sentence if there are several. Those of `positions` are, by
width: `moved`, the largest change of a product if both places move by 37; `mirrored`, the largest
change if the distance changes its sign; and `rising`, the distances at which the product rises.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.lookup import Lookup
from benchmarks.record import write_record
from benchmarks.script import BOTH_MODES, PICTURES, script_parser
from spacy_psa.analysis.figures import save_figure
from spacy_psa.laboratory.analyses import analyze
from spacy_psa.laboratory.analyses.convergence import convergence, draw_convergence
from spacy_psa.laboratory.analyses.position_encodings import products

OWN = "analyses"
SELF_ATTENTIVE = "analyses/models/self_attentive"
PSA, BASELINE = (f"conll2003/settings_quarter/{name}_all" for name in ("psa", "baseline"))
TEST, DEV = (Path(f"corpus/conll2003/{name}.spacy") for name in ("test", "dev"))
WIDTHS, DISTANCE, MOVE = (128, 512), 100, 37
TRAININGS = {
    "BiLSTM": "conll2003/bilstm_crf",
    "ID-CNN": "systems/conll2003-idcnn",
    "Transformer": "systems/conll2003-transformer",
    "TENER": "systems/conll2003-tener-75_epochs",
}
"""The records of the systems of Yan2019 Fig. 5."""
GATED = "Results of Asian Cup group C matches played on Friday :"
"""A sentence of Wei2020 Table 13."""
FOCUS = {
    "lower": "The market opened sharply lower , with the Nikkei average down nearly 600 after 20 "
    "minutes",
    "hit": "But the rally was largely confined to the blue-chip stocks , which had been hard hit "
    "during Friday 's selling frenzy",
}
"""Sentences of Wei2020 Fig. 6, and the word whose attention is of interest."""
HEADS = "They held a meeting at the White House on Saturday ."
"""Like the sentence of Li2019 Fig. 2, of which the paper has a part."""

Result = tuple[Any, Any, list[Path]]


def model(name: str, seed: int = 1) -> str:
    """The folder of a model."""
    return f"training/{name}/seed-{seed}/model-best"


def positions() -> Result:
    """The figures, the picture and the data of an analysis, as of all functions below."""
    figures = {}
    for width in WIDTHS:
        values, moved = (products(width, DISTANCE, place) for place in (0, MOVE))
        right = values[DISTANCE:]
        figures[str(width)] = {
            "moved": max(abs(a - b) for a, b in zip(values, moved, strict=True)),
            "mirrored": max(abs(a - b) for a, b in zip(values, values[::-1], strict=True)),
            "rising": [k for k in range(1, DISTANCE + 1) if right[k] > right[k - 1]],
        }
    return figures, analyze.positions(WIDTHS, DISTANCE).picture, []


def curves() -> Result:
    records = Lookup(OWN)
    figures = {name: convergence(records.raw(f"{at}:dev")[0]) for name, at in TRAININGS.items()}
    picture = draw_convergence(figures)
    picture.axes[0].set_ylim(84, 96)
    return figures, picture, []


def gates() -> Result:
    made = analyze.gates(model(PSA), GATED, None)
    return made.figures, made.picture, []


def attention() -> Result:
    made = {w: analyze.attention(model(PSA), text, w, None) for w, text in FOCUS.items()}
    return {word: each.figures for word, each in made.items()}, made["hit"].picture, []


def lengths() -> Result:
    runs = {"psa": PSA, "bilstm_crf": BASELINE}
    models = {f"{row} {n}": model(run, n) for n in range(1, 6) for row, run in runs.items()}
    made = analyze.lengths(DEV, models, None, None)
    return made.figures, None, [DEV]


def blocks() -> Result:
    made = analyze.blocks(model(SELF_ATTENTIVE), TEST, None)
    return made.figures, made.picture, [TEST]


def heads() -> Result:
    made = analyze.attention(model(SELF_ATTENTIVE), HEADS, None, None)
    return made.figures, made.picture, []


ANALYSES: dict[str, Callable[[], Result]] = {
    "positions": positions,
    "convergence": curves,
    "gates": gates,
    "attention": attention,
    "lengths": lengths,
    "blocks": blocks,
    "heads": heads,
}


def main() -> None:
    options = script_parser(globals())
    options.add_argument("names", nargs="+", choices=ANALYSES, metavar="NAME", help="the analyses")
    given = options.parse_args()
    settings: Any = {**BOTH_MODES, "svg.hashsalt": OWN}
    matplotlib.rcParams.update(settings)
    for name in given.names:
        figures, picture, data = ANALYSES[name]()
        write_record(name, OWN, figures, data=data)
        if picture is not None:
            save_figure(picture, PICTURES / f"analyses-{name}.svg")


if __name__ == "__main__":
    main()
