"""Time the parts of annotation on a GPU, for batches of several sizes.

CONFIG is a row of `benchmarks.gpu.speed`, with random weights. The record has `tokenizer`, the
words a second of spaCy's tokenizer, and `batches`: {docs in a batch: {`words`: words a second
of pre-tokenised docs, the fastest of `RUNS`; `one_thread`: the same without the thread that
predicts the next batch; `parts`: {part: microseconds of processor time a word, in one thread}}}.
With --blocking, the program waits for each kernel of the GPU, so its time counts for the part that
started it; then `words` is lower than without.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.language import Language
from thinc.api import get_current_ops

from benchmarks.gpu.speed import ROWS, RUNS, untrained
from benchmarks.gpu.timed import synchronize
from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.laboratory.performance.pipelines import Annotation, Sentences
from spacy_psa.laboratory.performance.profile import profile_annotation
from spacy_psa.pipeline import overlap
from spacy_psa.scoring.provenance import provenance

SIZES = (64, 256, 1024, 4096)
"""The docs in a batch."""
DOCS = 4096


def tokenizer_speed(nlp: Language, sentences: Sentences) -> float:
    """The words a second of the tokenizer, which has not seen the words before."""
    texts = [" ".join(words) for words in sentences]
    begun = time.perf_counter()
    words = sum(len(nlp.tokenizer(text)) for text in texts)
    return words / (time.perf_counter() - begun)


def measure(nlp: Language, sentences: Sentences, sizes: tuple[int, ...] = SIZES) -> dict[str, Any]:
    """Time annotation in batches of several sizes, and its parts."""
    words = sum(map(len, sentences))
    row = Annotation("", nlp, sentences)
    batches: dict[str, Any] = {}
    for size in sizes:
        nlp.batch_size = size
        row.annotate(row.docs())
        rates = {"words": words / fastest(row)}
        with one_thread():
            rates["one_thread"] = words / fastest(row)
            parts = profile_annotation(nlp, sentences, 1).rooms()
        own = {part: round(1e6 * each / words, 3) for part, each in parts.items()}
        batches[str(size)] = {**rates, "parts": own}
    return batches


def fastest(row: Annotation) -> float:
    """The seconds of the fastest of `RUNS`."""
    seconds = []
    for _ in range(RUNS):
        docs, begun = row.docs(), synchronize()
        row.annotate(docs)
        seconds.append(synchronize() - begun)
    return min(seconds)


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside of this, no thread predicts the next batch."""
    before, overlap.AHEAD = overlap.AHEAD, 0
    try:
        yield
    finally:
        overlap.AHEAD = before


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    options.add_argument("config", choices=[*ROWS], metavar="CONFIG")
    options.add_argument("--blocking", action=argparse.BooleanOptionalAction, default=False)
    options.add_argument("--gpu-id", type=int, default=0, help="number of the GPU (0); -1: the CPU")
    given = options.parse_args()
    if given.blocking:
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # CUDA reads it when it starts
    corpus, vectors, _ = ROWS[given.config]
    nlp = untrained(given.config, corpus, vectors, given.gpu_id)
    path = Path("corpus", corpus, "train.spacy")
    docs = islice(read_docbin(path, nlp.vocab), DOCS)
    sentences = [[token.text for token in doc] for doc in docs]
    result = {"config": given.config, "blocking": given.blocking, "device": get_current_ops().name}
    figures = {"tokenizer": tokenizer_speed(nlp, sentences), "batches": measure(nlp, sentences)}
    with atomic_path(given.out) as temporary:
        text = json.dumps({**result, **figures, "source": provenance([path])}, indent=1)
        temporary.write_text(text, encoding="utf8")
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
