"""Train Flair's SequenceTagger over a fine-tuned encoder, for `benchmarks.pretrained.peers`.

The script runs in an environment of its own, with Flair and without spaCy and spacy-psa:

    python -m benchmarks.pretrained.flair_worker FOLDER ENCODER SEED PASSES BATCH RATE

FOLDER has train.json and dev.json: [words, entities (start, end, label)] of sentences. After the
training, the script prints a line of JSON: `dev`, the F1 after each pass. Then it reads lines from
stdin, the words of some sentences as JSON, and prints their `entities`, also as JSON.
"""

import json
import sys
from pathlib import Path

if "--help" in sys.argv:
    print(__doc__)
    sys.exit()

import flair
import torch
from flair.data import Corpus, Sentence
from flair.datasets import FlairDatapointDataset
from flair.embeddings import TransformerWordEmbeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer


def read(path: Path) -> FlairDatapointDataset:
    sentences = []
    for words, entities in json.loads(path.read_text(encoding="utf8")):
        sentence = Sentence(words)
        for start, end, label in entities:
            sentence[start:end].add_label("ner", label)
        sentences.append(sentence)
    return FlairDatapointDataset(sentences)


def main() -> None:
    folder, encoder = Path(sys.argv[1]), sys.argv[2]
    seed, passes, batch = map(int, sys.argv[3:6])
    flair.device = torch.device("cpu")
    flair.set_seed(seed)
    train, dev = (read(folder / f"{part}.json") for part in ("train", "dev"))
    corpus = Corpus(train=train, dev=dev, sample_missing_splits=False)
    tagger = SequenceTagger(
        hidden_size=256,
        embeddings=TransformerWordEmbeddings(model=encoder, fine_tune=True, use_context=False),
        tag_dictionary=corpus.make_label_dictionary("ner", add_unk=False),
        tag_type="ner",
        use_crf=False,
        use_rnn=False,
        reproject_embeddings=False,
    )
    trainer = ModelTrainer(tagger, corpus)
    settings = {"learning_rate": float(sys.argv[6]), "mini_batch_size": batch}
    trainer.fine_tune(folder, max_epochs=passes, save_final_model=False, **settings)
    header, *rows = (
        line.split("\t") for line in (folder / "loss.tsv").read_text(encoding="utf8").splitlines()
    )
    column = header.index("DEV_F1")
    print(json.dumps({"dev": [float(row[column]) for row in rows]}), flush=True)
    for line in sys.stdin:
        sentences = [Sentence(words) for words in json.loads(line)]
        tagger.predict(sentences, mini_batch_size=batch)
        entities = [
            [(span[0].idx - 1, span[-1].idx, span.tag) for span in sentence.get_spans("ner")]
            for sentence in sentences
        ]
        print(json.dumps({"entities": entities}), flush=True)


if __name__ == "__main__":
    main()
