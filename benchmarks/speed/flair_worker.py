"""Time Flair's SequenceTagger on the words of `benchmarks.speed.side_by_side`.

The script runs in an environment of its own, with Flair and without spaCy and spacy-psa, so it does
not import this package:

    python benchmarks/speed/flair_worker.py FOLDER THREADS

FOLDER has vectors.npz (`words`, `data`), annotate.json (the words of sentences) and train.json
([words, entities (start, end, label)] of sentences). The script trains the tagger for 200 steps,
which is enough to predict entities. Then it reads lines from stdin, "annotate" or "train STEPS",
and prints a line of JSON for each: `amount`, `seconds`, `cpu_seconds`, `entities`.
"""

import json
import os
import sys
import time
from pathlib import Path

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


def clock() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def main() -> None:
    flair.device = torch.device("cpu")
    flair.set_seed(0)
    torch.set_num_threads(THREADS)
    vectors = numpy.load(FOLDER / "vectors.npz")
    texts = json.loads((FOLDER / "annotate.json").read_text(encoding="utf8"))
    train = json.loads((FOLDER / "train.json").read_text(encoding="utf8"))
    labels = Dictionary(add_unk=False)
    for label in sorted({label for _, entities in train for *_, label in entities}):
        labels.add_item(label)
    labels.span_labels = True
    tagger = SequenceTagger(
        embeddings=FixedVectors(vectors["words"].tolist(), vectors["data"]),
        tag_dictionary=labels,
        tag_type="ner",
        hidden_size=256,
        rnn_layers=1,
        use_crf=True,
    )
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

    steps(STEPS)
    for line in sys.stdin:
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
