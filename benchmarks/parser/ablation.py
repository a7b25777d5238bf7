"""Score a trained parser without content or position in some layers, and with windows.

Repeats Tables 1 and 2 of Kitaev2018 on DATA, which has gold trees.

Results (kind "figures"): `model`, its path; `gold_tags`; `sentences`; `rows`, each with the limits
`disable_content`, `disable_position`, `window` and `relaxed` of `analyses.parser_ablation.Setup`
(layers count from 0), and the scores `p`, `r`, `f` and `exact`.
"""

import json

import torch

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.tree_corpus import read_tree_corpus
from spacy_psa.laboratory.analyses.parser_ablation import ablate, markdown, record
from spacy_psa.loading import load_pipeline


def main() -> None:
    options = script_parser(globals(), "MODEL", "DATA.spacy", "OUT.json")
    options.add_argument("--gold-tags", action="store_true", help="use the tags of DATA")
    given = options.parse_args()
    torch.set_num_threads(1)
    nlp = load_pipeline(given.model)
    examples = list(read_tree_corpus(given.data, gold_tags=given.gold_tags)(nlp))
    rows = []
    for row in ablate(nlp, examples):
        rows.append(row)
        print(json.dumps(record([row])[0]), flush=True)
    print(markdown(rows))
    figures = {
        "model": given.model,
        "gold_tags": given.gold_tags,
        "sentences": len(examples),
        "rows": record(rows),
    }
    seed = nlp.config.interpolate()["training"].get("seed")
    write_record(given.out, "parser", figures, data=[given.data], seed=seed)


if __name__ == "__main__":
    main()
