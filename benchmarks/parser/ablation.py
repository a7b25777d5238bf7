"""F1 of a trained parser without content or position in some layers, and in windows.

usage: python benchmarks/parser_ablation.py MODEL DATA.spacy OUT [--gold-tags]

Writes OUT.json and OUT.md: Kitaev2018 Tables 1 and 2 on DATA (its development section). With
--gold-tags, the parser is given the parts of speech of DATA.
"""

import json
import sys
from pathlib import Path

import torch

from spacy_psa.analysis.parser_ablation import ablate, markdown, record
from spacy_psa.corpora.tree_corpus import read_tree_corpus
from spacy_psa.loading import load_pipeline
from spacy_psa.scoring.provenance import checksums, commit, machine, versions


def main(model: str, data: Path, target: Path, gold_tags: bool) -> None:
    sums = checksums([data])
    nlp = load_pipeline(model)
    examples = list(read_tree_corpus(data, gold_tags=gold_tags)(nlp))
    rows = []
    for row in ablate(nlp, examples):
        rows.append(row)
        print(json.dumps(record([row])[0]), flush=True)
    found = {
        "model": model,
        "gold_tags": gold_tags,
        "sentences": len(examples),
        "rows": record(rows),
        "seed": nlp.config["training"].get("seed"),
        "data": sums,
        "versions": versions(),
        "machine": machine(),
        **dict(zip(("commit", "modified"), commit(), strict=True)),
    }
    json_path, table_path = (target.with_name(target.name + end) for end in (".json", ".md"))
    json_path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf8")
    table_path.write_text(markdown(rows), encoding="utf8")
    print(markdown(rows))


if __name__ == "__main__":
    options = [argument for argument in sys.argv[1:] if argument.startswith("--")]
    if len(sys.argv) - len(options) != 4 or set(options) - {"--gold-tags"}:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    model, data, target = (each for each in sys.argv[1:] if each not in options)
    main(model, Path(data), Path(target), bool(options))
