"""Time Flair's SequenceTagger, for `benchmarks.speed.side_by_side` and `benchmarks.growth.measure`.

The script runs in an environment of its own, with Flair and without spaCy and spacy-psa:

    python -m benchmarks.speed.flair_worker FOLDER THREADS

FOLDER has vectors.npz (`words`, `data`), annotate.json (the words of sentences) and train.json
([words, entities (start, end, label)] of sentences). The script trains the tagger for 200 steps,
which is enough to predict entities. Then it reads lines from stdin, "annotate", "train STEPS" or
the JSON of a task of `benchmarks.growth.measure`, and prints a line of JSON for each: `amount`,
`seconds`, `cpu_seconds`; and `entities`, or for a task `bytes`.
"""

import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

if "--help" in sys.argv:
    print(__doc__)
    sys.exit()
FOLDER, THREADS = Path(sys.argv[1]), int(sys.argv[2])
for library in ("OMP", "MKL", "OPENBLAS"):
    os.environ[f"{library}_NUM_THREADS"] = str(THREADS)
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import flair  # noqa: E402 - the libraries read the variables on import
import numpy  # noqa: E402
import torch  # noqa: E402
from flair.data import Dictionary, Sentence  # noqa: E402
from flair.embeddings import TokenEmbeddings  # noqa: E402
from flair.models import SequenceTagger  # noqa: E402

from benchmarks.apart import Work, apart  # noqa: E402

STEPS = 200
BATCH = 10


class FixedVectors(TokenEmbeddings):
    """Word vectors from a table: that of the word, or of its lower-cased form, or zeros."""

    def __init__(self, words: list[str], data: numpy.ndarray) -> None:
        super().__init__()
        self.name = "vectors"
        self.static_embeddings = True
        self.rows = {word: i for i, word in enumerate(words, 1)}
        table = numpy.vstack([numpy.zeros((1, data.shape[1]), dtype="float32"), data])
        self.table = torch.nn.Embedding.from_pretrained(torch.from_numpy(table), freeze=True)
        self.eval()

    @property
    def embedding_length(self) -> int:
        return self.table.embedding_dim

    @property
    def embedding_type(self) -> str:
        return "word-level"

    def _add_embeddings_internal(self, sentences: list[Sentence]) -> None:
        tokens = [token for sentence in sentences for token in sentence.tokens]
        rows = [self._row(token.text) for token in tokens]
        vectors = self.table(torch.tensor(rows))
        for token, vector in zip(tokens, vectors):
            token.set_embedding(self.name, vector)

    def _row(self, word: str) -> int:
        return self.rows.get(word) or self.rows.get(word.lower(), 0)


def annotated(words: list[str], entities: list[tuple[int, int, str]]) -> Sentence:
    sentence = Sentence(words)
    for start, end, label in entities:
        sentence[start:end].add_label("ner", label)
    return sentence


def make_tagger(embeddings: TokenEmbeddings, labels: list[str]) -> SequenceTagger:
    tags = Dictionary(add_unk=False)
    for label in labels:
        tags.add_item(label)
    tags.span_labels = True
    return SequenceTagger(
        embeddings=embeddings,
        tag_dictionary=tags,
        tag_type="ner",
        hidden_size=256,
        rnn_layers=1,
        use_crf=True,
    )


def clock() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def main() -> None:
    flair.device = torch.device("cpu")
    flair.set_seed(0)
    torch.set_num_threads(THREADS)
    vectors = numpy.load(FOLDER / "vectors.npz")
    texts = json.loads((FOLDER / "annotate.json").read_text(encoding="utf8"))
    train = json.loads((FOLDER / "train.json").read_text(encoding="utf8"))
    embeddings = FixedVectors(vectors["words"].tolist(), vectors["data"])
    labels = sorted({label for _, entities in train for *_, label in entities})
    tagger = make_tagger(embeddings, labels)
    optimizer = torch.optim.SGD([p for p in tagger.parameters() if p.requires_grad], lr=0.1)

    def steps(count: int) -> None:
        tagger.train()
        for i in range(count):
            first = i * BATCH % max(len(train) - BATCH, 1)
            batch = [annotated(*item) for item in train[first : first + BATCH]]
            loss, number = tagger.forward_loss(batch)
            (loss / number).backward()
            torch.nn.utils.clip_grad_norm_(tagger.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()
        tagger.eval()

    def prepare(task: dict[str, Any]) -> Work:
        sentences = [Sentence(words) for words in task["texts"]]
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        torch.set_num_threads(task.get("threads", 1))
        own = tagger
        if "labels" in task:
            own = make_tagger(embeddings, [f"L{i}" for i in range(task["labels"])])
            own.eval()

        def work() -> int:
            batch = task.get("batch", 32)
            own.predict(sentences, mini_batch_size=batch, embedding_storage_mode="none")
            return sum(map(len, sentences))

        return work

    steps(STEPS)
    for line in sys.stdin:
        if line.startswith("{"):
            timing = apart(
                lambda: tagger.predict([Sentence("A b")]), partial(prepare, json.loads(line))
            )
            print(json.dumps(timing), flush=True)
            continue
        task, *count = line.split()
        sentences = [Sentence(words) for words in texts] if task == "annotate" else []
        amount = sum(len(sentence) for sentence in sentences) or int(count[0])
        wall, processor = clock()
        if task == "annotate":
            tagger.predict(sentences, embedding_storage_mode="none")
        else:
            steps(amount)
        after = clock()
        entities = sum(len(sentence.get_spans("ner")) for sentence in sentences)
        timing = {"seconds": after[0] - wall, "cpu_seconds": after[1] - processor}
        print(json.dumps({"amount": amount, **timing, "entities": entities}), flush=True)


if __name__ == "__main__":
    main()
