"""Compare the speed of our parser with SuPar's CRF constituency parser, with random weights.

DATA has one sentence with its tree per Doc. Each config is initialized with it and not trained.
SuPar (supar 1.1.4, the model of `crf-con-en`: a BiLSTM with characters, a tree CRF, first-order
decoding) gets as many parameters, apart from its table of words, and the same sentences and trees.
Its rows only time its model; ours time all of `nlp.pipe` and `nlp.update`. All rows run in turn,
each system in a process of its own.

Results (kind "figures"): `sentences`, `words`, `threads`, `batch` (sentences of a training step);
`sizes` {row: parameters}; `hidden` {row of SuPar: units in each direction}; `parsing` (sentences
per second) and `training` (steps per second): {row: a summary of `performance.timing`}.
"""

import json
import tempfile
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from spacy.vocab import Vocab

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.worker import DocRow, Worker, WorkerRow, annotate, doc_maker
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.laboratory.performance.pipelines import Training
from spacy_psa.laboratory.performance.timing import Row, alternate, pin_threads, summary
from spacy_psa.pipeline.parser.constituents import gold_trees
from spacy_psa.structs.span_cells import normal_form

ENCODE = "components.parser.model.tok2vec.encode.precision"


def opened(config: str, data: Path, precision: str) -> Language:
    overrides = {"paths.train": str(data), "paths.dev": str(data), ENCODE: precision}
    return init_nlp(load_config(config, overrides=overrides, interpolate=False))


def parameters(nlp: Language) -> int:
    pipe: Any = nlp.get_pipe("parser")
    shims = [shim for node in pipe.model.walk() for shim in node.shims]
    return sum(weights.numel() for shim in shims for weights in shim.module.parameters())


def trees(data: Path, nlp: Language) -> list[Any]:
    """The words and the nodes of a binary tree of each sentence."""
    labels = {label: i for i, label in enumerate(nlp.pipe_labels["parser"], 1)}
    examples: list[Any] = []
    for doc in read_docbin(data, nlp.vocab):
        (tree,) = gold_trees(doc, doc, "constituents")
        if tree and tree[0][:2] == (0, len(doc)):
            chart = [(start, end, labels[label]) for start, end, label in tree]
            nodes = normal_form(chart, len(doc), len(labels) + 1)
            examples.append([[token.text for token in doc], [list(node) for node in nodes]])
    return examples


def main() -> None:
    options = script_parser(globals(), "DATA.spacy", "OUT.json")
    options.add_argument("configs", nargs="+", metavar="CONFIG", help="configs of parsers")
    options.add_argument("--supar", required=True, metavar="PYTHON", help="has supar 1.1.4")
    options.add_argument("--precision", choices=["float32", "bfloat16"], action="append")
    options.add_argument("--threads", type=int, default=2, help="threads and processors (2)")
    options.add_argument("--repeats", type=int, default=5, help="runs of each (5)")
    options.add_argument("--steps", type=int, default=8, help="training steps of a run (8)")
    options.add_argument("--sentences", type=int, help="the first of DATA; all, if not given")
    options.add_argument("--batch", type=int, default=50, help="sentences of a step (50)")
    given = options.parse_args()
    pin_threads(given.threads)
    script = Path(__file__).with_name("supar_worker.py")
    parsing: list[Row] = []
    training: list[Row] = []
    sizes: dict[str, int] = {}
    hidden: dict[str, int] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        data = folder / "data.spacy"
        write_docbin(islice(read_docbin(given.data, Vocab()), given.sentences), data)
        for config in given.configs:
            name = Path(config).stem
            for precision in given.precision or ["float32", "bfloat16"]:
                nlp = opened(config, data, precision)
                row = f"{name}, {precision}"
                sizes[row] = parameters(nlp)
                texts = trees(data, nlp)
                make = doc_maker(nlp, [words for words, _ in texts])
                parsing.append(DocRow(row, make, partial(annotate, nlp)))
                training.append(Training(row, nlp, data, given.steps, given.batch))
            file = folder / f"{name}.json"
            file.write_text(json.dumps(texts), encoding="utf8")
            command = [given.supar, str(script), str(file), str(given.threads), str(sizes[row])]
            worker = stack.enter_context(Worker(command))
            row = f"SuPar, as large as {name}"
            about = worker.answer()
            sizes[row], hidden[row] = about["parameters"], about["hidden"]
            parsing.append(WorkerRow(worker, row, "parse"))
            training.append(WorkerRow(worker, row, f"train {given.steps} {given.batch}"))
        timed = {
            part: {row: summary(timings) for row, timings in alternate(rows, given.repeats).items()}
            for part, rows in (("parsing", parsing), ("training", training))
        }
    for part, rows in timed.items():
        for row, figures in rows.items():
            print(f"{part}: {row}: {figures['per_second']['median']} a second")
    results = {
        "sentences": len(texts),
        "words": sum(len(words) for words, _ in texts),
        "threads": given.threads,
        "batch": given.batch,
        "sizes": sizes,
        "hidden": hidden,
        **timed,
    }
    write_record(given.out, "parser_speed", results, data=[given.data])


if __name__ == "__main__":
    main()
