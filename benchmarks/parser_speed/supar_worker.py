"""Time SuPar's CRF constituency parser on the trees of `benchmarks.parser_speed.beside_supar`.

The script runs in an environment of its own, with supar 1.1.4 and without spaCy and spacy-psa, so
it does not import this package:

    python benchmarks/parser_speed/supar_worker.py TREES.json THREADS PARAMETERS

TREES.json has [words, spans (start, end, label number)] of sentences; the spans form a binary tree.
The BiLSTM gets the number of units that brings the model, without its table of words, closest to
PARAMETERS; 0 means the 400 units in each direction of SuPar's own models. The weights are random.
It only times the model, in batches of sentences of similar length with 5,000 tokens each in
prediction, without reading files and building trees.

The script prints a line of JSON: `parameters`, `hidden` (units in each direction). Then it reads
lines from stdin, "parse" or "train STEPS SENTENCES", and prints a line of JSON for each: `amount`,
`seconds`, `cpu_seconds`.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

if "--help" in sys.argv:
    print(__doc__)
    sys.exit()
TREES, THREADS, PARAMETERS = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for library in ("OMP", "MKL", "OPENBLAS"):
    os.environ[f"{library}_NUM_THREADS"] = str(THREADS)
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import torch  # noqa: E402 - the libraries read the variables on import
from supar.models.const import CRFConstituencyModel  # noqa: E402

BATCH_TOKENS = 5000  # SuPar's own
LETTERS = 20  # of a word


def numbered(items: set[str]) -> dict[str, int]:
    """Number items from 2: 0 is padding and 1 is unknown."""
    return {item: i for i, item in enumerate(sorted(items), 2)}


class Batch:
    """Sentences as tensors, with a word before and after each, as SuPar has them."""

    def __init__(self, sentences: list[Any], words: dict[str, int], letters: dict[str, int]):
        width = max(len(tokens) for tokens, _ in sentences) + 2
        self.words = torch.zeros(len(sentences), width, dtype=torch.long)
        self.letters = torch.zeros(len(sentences), width, LETTERS, dtype=torch.long)
        self.charts = torch.full((len(sentences), width - 1, width - 1), -1)
        lengths = torch.tensor([len(tokens) for tokens, _ in sentences])
        for b, (tokens, spans) in enumerate(sentences):
            tokens = ["<bos>", *tokens, "<eos>"]
            self.words[b, : len(tokens)] = torch.tensor([words.get(t, 1) for t in tokens])
            for i, token in enumerate(tokens):
                numbers = [letters.get(letter, 1) for letter in token[:LETTERS]]
                self.letters[b, i, : len(numbers)] = torch.tensor(numbers)
            for start, end, label in spans:
                self.charts[b, start, end] = label
        posts = torch.arange(width - 1)
        inside = (posts[None, :] <= lengths[:, None]).float()
        upper = torch.ones(width - 1, width - 1).triu(1).bool()
        self.mask = (inside[:, :, None] * inside[:, None, :]).bool() & upper
        self.count = len(sentences)


def batches(sentences: list[Any], words: dict[str, int], letters: dict[str, int]) -> list[Batch]:
    """Batches of sentences of similar length."""
    ordered = sorted(sentences, key=lambda sentence: len(sentence[0]))
    groups: list[list[Any]] = [[]]
    tokens = 0
    for sentence in ordered:
        if tokens + len(sentence[0]) > BATCH_TOKENS and groups[-1]:
            groups.append([])
            tokens = 0
        groups[-1].append(sentence)
        tokens += len(sentence[0])
    return [Batch(some, words, letters) for some in groups]


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    sentences = json.loads(TREES.read_text(encoding="utf8"))
    words = numbered({"<bos>", "<eos>", *(word for tokens, _ in sentences for word in tokens)})
    letters = numbered({letter for word in words for letter in word})
    labels = 1 + max(label for _, spans in sentences for *_, label in spans)

    def made(hidden: int) -> Any:
        return CRFConstituencyModel(
            n_words=len(words) + 2,
            n_labels=labels,
            n_chars=len(letters) + 2,
            feat=["char"],
            n_lstm_hidden=hidden,
        )

    def size_of(model: Any) -> int:
        every = sum(parameter.numel() for parameter in model.parameters())
        return every - model.word_embed.weight.numel()

    def miss(width: int) -> int:
        with torch.device("meta"):  # without storage and starting weights
            return abs(size_of(made(width)) - PARAMETERS)

    hidden = min(range(50, 1201, 50), key=miss) if PARAMETERS else 400
    model = made(hidden)
    print(json.dumps({"parameters": size_of(model), "hidden": hidden}), flush=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    whole = batches(sentences, words, letters)

    def parse() -> None:
        model.eval()
        with torch.no_grad():
            for batch in whole:
                spans, scores = model(batch.words, [batch.letters])
                model.decode(spans, scores, batch.mask)

    for line in sys.stdin:
        task, *numbers = line.split()
        amount = len(sentences)
        steps: list[Batch] = []
        if task == "train":
            amount, size = map(int, numbers)
            for first in range(0, amount * size, size):
                some = [sentences[(first + j) % len(sentences)] for j in range(size)]
                steps.append(Batch(some, words, letters))
        wall, processor = time.perf_counter(), time.process_time()
        if task == "parse":
            parse()
        model.train()
        for batch in steps:
            optimizer.zero_grad()
            loss, _ = model.loss(
                *model(batch.words, [batch.letters]), batch.charts, batch.mask, mbr=False
            )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        seconds, of_cpu = time.perf_counter() - wall, time.process_time() - processor
        print(json.dumps({"amount": amount, "seconds": seconds, "cpu_seconds": of_cpu}), flush=True)


if __name__ == "__main__":
    main()
