"""Score a trained parser without content or position in some layers, and in windows.

Makes Tables 1 and 2 of Kitaev2018 on DATA, whose trees are gold.

Results (kind "figures"): `model`, its path; `gold_tags`; `sentences`; `rows`, each with the limits
`disable_content`, `disable_position`, `window` and `relaxed` of
`analyses.parser_ablation.Setup`, layers from 0, and the scores `p`, `r`, `f` and `exact`.
"""

import json
from pathlib import Path

import torch

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.tree_corpus import read_tree_corpus
from spacy_psa.laboratory.analyses.parser_ablation import ablate, markdown, record
from spacy_psa.loading import load_pipeline


def main() -> None:
    options = script_parser("benchmarks.parser.ablation", __doc__)
    options.add_argument("model", metavar="MODEL")
    options.add_argument("data", type=Path, metavar="DATA.spacy")
    options.add_argument("out", type=Path, metavar="OUT.json")
    options.add_argument(
        "--gold-tags", action="store_true", help="give the parser the parts of speech of DATA"
    )
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
