"""Time our parser beside SuPar's CRF constituency parser, with random weights of the same size.

DATA holds one sentence a Doc, with trees. Each config is initialized with it and not trained.
SuPar (supar 1.1.4, `crf-con-en`'s model: a BiLSTM with characters, a tree CRF, first-order
decoding) gets as many parameters, apart from its table of words, and the same sentences and trees.
Its rows time its model alone; ours time `nlp.pipe` and `nlp.update` as a whole. All rows run in
turn, each system in a process of its own.

Results (kind "figures"): `sentences`, `words`, `threads`, `batch` (sentences of a training step);
`sizes` {row: parameters}; `hidden` {row of SuPar: units in each direction}; `parsing` (sentences a
second) and `training` (steps a second): {row: a summary of `performance.timing`}.
"""

import json
import subprocess
import tempfile
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from spacy.vocab import Vocab

from benchmarks.parser_speed.measure import Whole
from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.laboratory.performance.pipelines import Training
from spacy_psa.laboratory.performance.timing import Row, Timing, alternate, pin_threads, summary
from spacy_psa.pipeline.parser.constituents import gold_trees
from spacy_psa.structs.span_cells import normal_form

ENCODE = "components.parser.model.tok2vec.encode.precision"


class SuPar:
    """SuPar's model in a process of its own, which stays open between runs."""

    def __init__(self, process: "subprocess.Popen[str]", name: str, task: str):
        self.process, self.name, self.task = process, name, task

    def run(self) -> Timing:
        assert self.process.stdin is not None
        print(self.task, file=self.process.stdin, flush=True)
        return Timing(**answer(self.process))


def answer(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """The next line of JSON that the worker prints."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
    raise RuntimeError("supar_worker.py ended; its error is above")


def opened(config: str, data: Path, precision: str) -> Language:
    overrides = {"paths.train": str(data), "paths.dev": str(data), ENCODE: precision}
    return init_nlp(load_config(config, overrides=overrides, interpolate=False))


def parameters(nlp: Language) -> int:
    pipe: Any = nlp.get_pipe("parser")
    shims = [shim for node in pipe.model.walk() for shim in node.shims]
    return sum(one.numel() for shim in shims for one in shim.module.parameters())


def trees(data: Path, nlp: Language) -> list[Any]:
    """The words and the nodes of a binary tree of each sentence."""
    labels = {label: i for i, label in enumerate(nlp.pipe_labels["parser"], 1)}
    found: list[Any] = []
    for doc in read_docbin(data, nlp.vocab):
        (tree,) = gold_trees(doc, doc, "constituents")
        if tree and tree[0][:2] == (0, len(doc)):
            chart = [(start, end, labels[label]) for start, end, label in tree]
            nodes = normal_form(chart, len(doc), len(labels) + 1)
            found.append([[token.text for token in doc], [list(node) for node in nodes]])
    return found


def main() -> None:
    options = script_parser(
        "benchmarks.parser_speed.beside_supar", __doc__, "DATA.spacy", "OUT.json"
    )
    options.add_argument("configs", nargs="+", metavar="CONFIG", help="configs of parsers")
    options.add_argument(
        "--supar", required=True, metavar="PYTHON", help="an interpreter with supar 1.1.4"
    )
    options.add_argument("--precision", choices=["float32", "bfloat16"], action="append")
    options.add_argument("--threads", type=int, default=2, help="threads and processors (2)")
    options.add_argument("--repeats", type=int, default=5, help="runs of each (5)")
    options.add_argument("--steps", type=int, default=8, help="training steps of a run (8)")
    options.add_argument("--sentences", type=int, help="the first of DATA; all, if not given")
    options.add_argument("--batch", type=int, default=50, help="sentences of a step (50)")
    given = options.parse_args()
    pin_threads(given.threads)
    worker = Path(__file__).with_name("supar_worker.py")
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
                parsing.append(named(Whole(nlp, [words for words, _ in texts]), row))
                training.append(Training(row, nlp, data, given.steps, given.batch))
            file = folder / f"{name}.json"
            file.write_text(json.dumps(texts), encoding="utf8")
            process = stack.enter_context(
                subprocess.Popen(
                    [given.supar, str(worker), str(file), str(given.threads), str(sizes[row])],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            row = f"SuPar, as large as {name}"
            about = answer(process)
            sizes[row], hidden[row] = about["parameters"], about["hidden"]
            parsing.append(SuPar(process, row, "parse"))
            training.append(SuPar(process, row, f"train {given.steps} {given.batch}"))
        found = {
            part: {row: summary(timings) for row, timings in alternate(rows, given.repeats).items()}
            for part, rows in (("parsing", parsing), ("training", training))
        }
    for part, rows in found.items():
        for row, figures in rows.items():
            print(f"{part}: {row}: {figures['per_second']['median']} a second")
    results = {
        "sentences": len(texts),
        "words": sum(len(words) for words, _ in texts),
        "threads": given.threads,
        "batch": given.batch,
        "sizes": sizes,
        "hidden": hidden,
        **found,
    }
    write_record(given.out, "parser_speed", results, data=[given.data])


def named(row: Any, name: str) -> Any:
    row.name = name
    return row


if __name__ == "__main__":
    main()
