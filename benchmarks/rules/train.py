"""Train recognisers on few sentences, and let a list of names suggest entities to them.

CORPUS is a folder with `train.spacy`, `dev.spacy`, `test.spacy` and `vectors`, as the project's
`convert` makes it. The seed draws a sample of the training sentences. Four fifths of it train the
config that `spacy-psa init config` writes for them; the last fifth chooses the weights of the model
and those of the rules, as in Teach. The list of names has every entity of all other training
sentences, with its label. The systems, whose test data is scored once for each training:

- `list`: spaCy's `entity_ruler` with the list, which prefers longer names
- `model`: the model without the list
- `hard`: the `entity_ruler` before the model, which keeps its entities
- `soft`: the list as suggestions (`spacy-psa add-rules`), with the weight that they begin with
- `learned`: the same with learned weights

The record benchmarks/rules/results/CORPUS-SEED.json, or CORPUS-vectors-SEED.json, has `samples`:
{sentences: {system: test `ents_p`, `ents_r`, `ents_f`; `weights`: {label: weight}}}, and `names`,
the length of each list.
"""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import spacy
import srsly
from spacy.tokens import Doc

from benchmarks.learning import learn, score
from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.small_data.train import config_of, sample
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.scoring.result import read_examples
from spacy_psa.training.rules import add_rules, learn_rules

RESULTS = Path(__file__).parent / "results"


def names_of(docs: list[Doc]) -> list[dict[str, str]]:
    """The entities of some docs as patterns, each once."""
    names = {(ent.text, ent.label_) for doc in docs for ent in doc.ents}
    return [{"label": label, "pattern": text} for text, label in sorted(names)]


def run(corpus: Path, size: int, seed: int, vectors: bool, folder: Path) -> dict[str, Any]:
    """Train on one sample, and score all systems."""
    vocab = spacy.blank("en").vocab
    docs = [doc for doc in read_docbin(corpus / "train.spacy", vocab) if len(doc)]
    own = sample(docs, size, seed)
    chosen = set(map(id, own))
    names = names_of([doc for doc in docs if id(doc) not in chosen])
    train, dev, path = folder / "train.spacy", folder / "dev.spacy", folder / "names.jsonl"
    write_docbin([doc for i, doc in enumerate(own) if i % 5], train)
    write_docbin([doc for i, doc in enumerate(own) if i % 5 == 0], dev)
    srsly.write_jsonl(path, names)
    config = config_of("ours", train, dev, corpus / "vectors" if vectors else None, seed)
    nlp, _, _ = learn(config, partial(read_examples, path=dev))
    test = read_examples(nlp, corpus / "test.spacy")
    row: dict[str, Any] = {"names": len(names), "model": score(nlp, test)}
    ruler: Any = nlp.add_pipe("entity_ruler", first=True)
    ruler.add_patterns(names)
    row["hard"] = score(nlp, test)
    with nlp.select_pipes(enable="entity_ruler"):
        row["list"] = score(nlp, test)
    nlp.remove_pipe("entity_ruler")
    add_rules(nlp, "ner", [path])
    row["soft"] = score(nlp, test)
    sources = learn_rules(nlp, "ner", read_examples(nlp, dev))
    row["weights"] = {source.label: source.weight for source in sources}
    row["learned"] = score(nlp, test)
    print(corpus.name, vectors, seed, size, row, flush=True)
    return row


def main() -> None:
    options = script_parser(globals())
    options.add_argument("corpus", type=Path, metavar="CORPUS", help="folder of a corpus")
    options.add_argument("--sizes", type=int, nargs="+", default=(100, 300), help="sentences")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--vectors", action="store_true", help="with the vectors of the corpus")
    given = options.parse_args()
    samples = {}
    for size in given.sizes:
        with tempfile.TemporaryDirectory() as folder:
            row = run(given.corpus, size, given.seed, given.vectors, Path(folder))
        samples[str(size)] = row
    name = f"{given.corpus.name}{'-vectors' * given.vectors}-{given.seed}"
    data = [given.corpus / f"{part}.spacy" for part in ("train", "test")]
    path = RESULTS / f"{name}.json"
    write_record(path, "rules", {"samples": samples}, data=data, seed=given.seed)


if __name__ == "__main__":
    main()
