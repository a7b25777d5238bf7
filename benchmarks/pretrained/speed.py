"""Time recognisers over a pretrained encoder, next to the encoder itself and other pipelines.

All rows annotate the first documents of CoNLL-2003's test set, in turn, on one thread:

- `bare ...`: only the pass of Hugging Face's `AutoModel`, over the windows of wordpieces that the
  others read, in the same groups. It has no tokenizer, no Doc and no tags
- `finetuned ...`, `frozen ...`: the runs of `train.py` of this encoder
- `best`: configs/ner/best.cfg, without an encoder
- PACKAGE, `PACKAGE, entities`: a package of spaCy with all its components, or only with `tok2vec`
  and `ner`. It gets the words without sentence boundaries

Only the packages are trained: the work of ours does not depend on the weights above the encoder.
They are initialized with the development data.

The rows of training make a step for each of the first documents of the training set: ours, in
both precisions, and `bare ...`, Hugging Face's encoder with torch's AdamW over the same windows,
whose loss is the sum of its vectors. A first run, which does not count, fills the cache from which
`frozen ...` reads its features.

Each pipeline is also opened in a process of its own, once for the time and once for the memory
while it annotates `--memory-words` words. Run this in the folder of `train.py`. The record of the
kind "speed" is benchmarks/pretrained/results/speed-ENCODER.json.
"""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModel

from benchmarks.pretrained.train import MINILM, MPNET, RUNS
from benchmarks.record import save_record
from benchmarks.script import script_parser
from benchmarks.systems.train import run
from benchmarks.wrap import wrap
from spacy_psa.bridge.shim import shim_of
from spacy_psa.corpora.documents import read_document_corpus
from spacy_psa.laboratory.performance.pipelines import (
    Annotation,
    Training,
    named_rows,
    open_pipeline,
)
from spacy_psa.laboratory.performance.processes import Loading
from spacy_psa.laboratory.performance.sections import memory, record, timed
from spacy_psa.laboratory.performance.timing import Row, Timing, pin_threads, stopwatch, summary
from spacy_psa.loading import load_pipeline
from spacy_psa.modules.pretrained import PretrainedEncoder, groups
from spacy_psa.modules.products import Precision, products
from spacy_psa.scoring.provenance import command
from spacy_psa.trained.quantization import quantize

CORPUS = Path("corpus/conll2003")
TRAIN = CORPUS / "train.spacy"
FOLDER = Path("training/pretrained/speed")
ENCODERS = {"minilm": MINILM, "mpnet": MPNET}
PRECISIONS: tuple[Precision, ...] = "float32", "bfloat16"


class Documents(Annotation):
    """Annotates documents whose sentences are known."""

    def __init__(self, name: str, nlp: Language, gold: list[Doc]):
        super().__init__(name, nlp, [[token.text for token in doc] for doc in gold])
        self.starts: list[list[Any]] = [[t.is_sent_start for t in doc] for doc in gold]

    def docs(self) -> list[Doc]:
        """Make the documents, without caches from before."""
        made = zip(super().docs(), self.starts, strict=True)
        return [
            Doc(doc.vocab, words=[token.text for token in doc], sent_starts=starts)
            for doc, starts in made
        ]


class Bare:
    """Runs only an encoder over the windows that a pipeline reads."""

    def __init__(self, encoder: PretrainedEncoder, gold: list[Doc], precision: Precision):
        self.name, self.precision, self.net = f"bare {precision}", precision, encoder.net
        self.words, self.batches = sum(map(len, gold)), batches_of(encoder, gold)

    def run(self) -> Timing:
        """Run the encoder once."""
        self.net.eval()
        with stopwatch(self.words) as timings, torch.inference_mode():
            for batch in self.batches:
                run_encoder(self.net, batch, self.precision)
        return timings[0]


class BareTraining:
    """Trains only Hugging Face's own encoder, with one step for each document."""

    def __init__(
        self, encoder: PretrainedEncoder, path: str, gold: list[Doc], precision: Precision
    ):
        self.name, self.precision, self.words = f"bare {precision}", precision, sum(map(len, gold))
        self.steps = [windows(encoder, [doc]) for doc in gold]
        self.net = AutoModel.from_pretrained(path, add_pooling_layer=False).train()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-6)

    def run(self) -> Timing:
        """Make the steps once."""
        with stopwatch(self.words) as timings:
            for batch in self.steps:
                run_encoder(self.net, batch, self.precision).float().sum().backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
        return timings[0]


class DocumentTraining(Training):
    """Makes a training step for each of the first documents of the training set."""

    def __init__(self, name: str, nlp: Language, documents: int):
        super().__init__(name, nlp, TRAIN, steps=0)
        self.documents = documents

    def batches(self) -> list[list[Example]]:
        """Read the documents, so that nothing from the last run is left on them."""
        return [[example] for example in first(TRAIN, self.nlp, self.documents)]

    def run(self) -> Timing:
        """Make the steps once."""
        batches = self.batches()
        with stopwatch(sum(len(example.reference) for [example] in batches)) as timings:
            self.make_steps(batches)
        return timings[0]


def first(path: Path, nlp: Language, documents: int) -> list[Example]:
    """Read the first documents of a file."""
    return list(islice(read_document_corpus(path)(nlp), documents))


def windows(encoder: PretrainedEncoder, docs: list[Doc]) -> list[torch.Tensor]:
    """Return the wordpieces of each window of documents."""
    ids, lengths, _, _ = encoder.inputs([token.text for token in doc] for doc in docs)
    return list(ids.split(lengths.tolist()))


def batches_of(encoder: PretrainedEncoder, docs: list[Doc]) -> list[list[torch.Tensor]]:
    """Return the windows of documents in the groups that the pipeline computes together."""
    pieces = windows(encoder, docs)
    return [[pieces[i] for i in group] for group in groups(list(map(len, pieces)), encoder.group)]


def run_encoder(net: Any, batch: list[torch.Tensor], precision: Precision) -> torch.Tensor:
    """Run an encoder over padded windows. The vectors are (W, n, D)."""
    ids, mask = (
        pad_sequence(each, batch_first=True)
        for each in (batch, [torch.ones_like(window) for window in batch])
    )
    with products(precision, next(net.parameters())):
        return net(input_ids=ids, attention_mask=mask).last_hidden_state


def make(folder: Path, base: str, corpus: Path, changes: list[str]) -> Path:
    """Make a pipeline of a config for a corpus, and write it to a folder."""
    if not folder.exists():
        config = folder.with_suffix(".cfg")
        config.parent.mkdir(parents=True, exist_ok=True)
        parts = base, f"configs/corpora/{corpus.name}.cfg"
        run("spacy_psa", "merge-config", *parts, config, *changes)
        nlp = open_pipeline(str(config), corpus / "dev.spacy", str(corpus / "vectors"))
        nlp.to_disk(folder)
    return folder


def in_precision(folder: Path, precision: Precision) -> Language:
    """Open a pipeline whose layers all compute in a precision."""
    nlp = spacy.load(folder)
    for _, pipe in nlp.pipeline:
        for node in pipe.model.walk():  # type: ignore[attr-defined]
            for module in (part for shim in node.shims for part in shim.module.modules()):
                if hasattr(module, "precision"):
                    module.precision = precision
    return nlp


def measure(encoder: str, packages: Mapping[str, str], options: Any) -> dict[str, Any]:
    pin_threads(1)
    blank = spacy.blank("en")
    gold = [eg.reference for eg in first(CORPUS / "test.spacy", blank, options.documents)]
    taught = [eg.reference for eg in first(TRAIN, blank, options.documents)]
    paths: dict[str, str] = {}
    rows: list[Row] = []
    trained: list[Row] = []
    for base in ("finetuned", "frozen"):
        name = f"{base}_{encoder}"
        config, changes = RUNS[name]
        folder = make(FOLDER / name, config, CORPUS, changes)
        rounded = FOLDER / f"{folder.name}-int8"
        if not rounded.exists():
            quantize(str(folder), rounded)
        opened = {precision: in_precision(folder, precision) for precision in PRECISIONS}
        if not rows:
            model: Any = opened["float32"].get_pipe("ner").model  # type: ignore[attr-defined]
            [node] = [each for each in model.walk() if each.name == "pretrained"]
            net: Any = shim_of(node).module
            rows += [Bare(net, gold, precision) for precision in PRECISIONS]
            own = ENCODERS[encoder][0].partition("=")[2]
            trained += [BareTraining(net, own, taught, precision) for precision in PRECISIONS]
        rows += [Documents(f"{base} {name}", nlp, gold) for name, nlp in opened.items()]
        rows.append(Documents(f"{base} int8", load_pipeline(str(rounded)), gold))
        paths |= {base: str(folder), f"{base} int8": str(rounded)}
        for precision in PRECISIONS:
            nlp = in_precision(folder, precision)  # another one, since training changes weights
            trained.append(DocumentTraining(f"{base} {precision}", nlp, options.documents))
    paths["best"] = str(make(FOLDER / "best", "configs/ner/best.cfg", CORPUS, []))
    rows.append(Documents("best", load_pipeline(paths["best"]), gold))
    trained.append(DocumentTraining("best", load_pipeline(paths["best"]), options.documents))
    for name, path in packages.items():
        paths[name] = path
        words = [[token.text for token in doc] for doc in gold]
        rows.append(Annotation(name, load_pipeline(path), words))
        entities = load_pipeline(path)
        entities.select_pipes(enable=["tok2vec", "ner"])
        rows.append(Annotation(f"{name}, entities", entities, words))

    def tell(name: str, number: int) -> None:
        print(number, name, flush=True)

    timed(trained, 1)  # the first run fills the cache, and compiles
    sections = {
        "training": {"words": sum(map(len, taught)), "rows": timed(trained, options.repeats, tell)},
        "annotation": {"words": sum(map(len, gold)), "rows": timed(rows, options.repeats, tell)},
        "loading": {"rows": {n: summary([Loading(n, path).run()]) for n, path in paths.items()}},
        "memory": memory(paths, CORPUS / "test.spacy", [options.memory_words], []),
    }
    settings = {"threads": 1, "repeats": options.repeats, "documents": options.documents}
    return record(command(), settings, paths, [CORPUS / "test.spacy"], sections)


def main() -> None:
    options = script_parser(globals())
    options.add_argument("encoder", choices=ENCODERS, help="the encoder")
    options.add_argument("packages", nargs="*", metavar="NAME=MODEL", help="packages or folders")
    options.add_argument("--documents", type=int, default=20, help="documents of a run (20)")
    options.add_argument("--repeats", type=int, default=3, help="runs of each row (3)")
    options.add_argument(
        "--memory-words", type=int, default=1000, help="words for the memory (1000)"
    )
    given = options.parse_args()
    product = measure(given.encoder, named_rows(given.packages), given)
    save_record(wrap(product, "pretrained", f"speed-{given.encoder}"))


if __name__ == "__main__":
    main()
