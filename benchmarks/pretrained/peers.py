"""Train the recognisers of other libraries over an encoder, and score them on the four tests.

    python -m benchmarks.pretrained.peers hugging_face --seed 1
    python -m benchmarks.pretrained.peers flair --seed 1 --flair /opt/flair/venv/bin/python

`hugging_face` is token classification by the Trainer of transformers; its weights are those of the
best pass on development data. `flair` is Flair's SequenceTagger over TransformerWordEmbeddings,
trained by `fine_tune`, which keeps the last weights; it runs in an environment of its own (see
flair_worker.py). Both read sentences in batches of 35 in 8 passes, which are nearly as many steps
as those of configs/ner/pretrained.cfg, with its rate for the encoder and without a CRF.

The record of PEER and SEED is benchmarks/four_tests/results/PEER_minilm-SEED.json. Its results are
those of `benchmarks.four_tests.score`, and `dev`, the F1 on development data after each pass.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span

from benchmarks.four_tests.score import TESTS, measure
from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.worker import Worker
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.errors import InputError
from spacy_psa.modules.products import used_precision
from spacy_psa.sentences import sentence_bounds

PASSES, BATCH, RATE = 8, 35, 5e-5
UNSEEN = -100
"""The tag of pieces that do not begin a word, which the loss leaves out."""

Entity = tuple[int, int, str]
Predict = Callable[[list[list[str]]], list[list[Entity]]]
"""Returns the entities of sentences, which are lists of words."""
Sentences = list[tuple[list[str], list[str]]]
"""The words and the tags of each, in the scheme BIO."""


def read(path: Path) -> Sentences:
    sentences = []
    for doc in read_docbin(path, spacy.blank("en").vocab):
        tags = [f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in doc]
        words = [token.text for token in doc]
        sentences += [(words[a:b], tags[a:b]) for a, b in sentence_bounds(doc)]
    return sentences


def entities(tags: Sequence[str]) -> list[Entity]:
    """Read tags as conlleval does, which lets I begin an entity."""
    from seqeval.metrics.sequence_labeling import get_entities

    return [(start, end + 1, label) for label, start, end in get_entities(list(tags))]


def as_pipeline(predict: Predict) -> Language:
    """A pipeline whose entities are predicted sentence by sentence."""

    def annotate(doc: Doc) -> Doc:
        bounds = sentence_bounds(doc)
        predicted = predict([[token.text for token in doc[start:end]] for start, end in bounds])
        doc.ents = [
            Span(doc, start + first, start + last, label)
            for (start, _), spans in zip(bounds, predicted, strict=True)
            for first, last, label in spans
        ]
        return doc

    Language.component("peer", func=annotate)
    nlp = spacy.blank("en")
    nlp.add_pipe("peer")
    return nlp


@contextmanager
def hugging_face(
    encoder: str, train: Sentences, dev: Sentences, seed: int, out: Path
) -> Iterator[tuple[Predict, list[float]]]:
    """Train token classification; yield its predictions and the scores of the passes."""
    from transformers import (
        AutoModelForTokenClassification,
        AutoTokenizer,
        DataCollatorForTokenClassification,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    set_seed(seed)
    names = sorted({tag for _, tags in train for tag in tags})
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    model = AutoModelForTokenClassification.from_pretrained(encoder, num_labels=len(names))

    def encoded(words: list[str]) -> tuple[Any, list[int]]:
        """The pieces of a sentence, and the place of the first piece of each word."""
        pieces = tokenizer(words, is_split_into_words=True)
        ids = pieces.word_ids()
        return pieces, [i for i, word in enumerate(ids) if word is not None and word != ids[i - 1]]

    def prepared(sentences: Sentences) -> list[dict[str, Any]]:
        rows = []
        for words, tags in sentences:
            pieces, firsts = encoded(words)
            labels = numpy.full(len(pieces["input_ids"]), UNSEEN)
            labels[firsts] = [names.index(tag) for tag in tags]
            rows.append({**pieces, "labels": labels.tolist()})
        return rows

    def score(predicted: Any) -> dict[str, float]:
        from seqeval.metrics import f1_score

        best, gold = predicted.predictions.argmax(-1), predicted.label_ids
        guessed, right = (
            [[names[i] for i in row[seen]] for row, seen in zip(tags, gold != UNSEEN, strict=True)]
            for tags in (best, gold)
        )
        return {"f1": float(f1_score(right, guessed))}

    arguments = TrainingArguments(
        output_dir=str(out),
        learning_rate=RATE,
        num_train_epochs=PASSES,
        per_device_train_batch_size=BATCH,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="f1",
        bf16=used_precision("auto", torch.device("cpu")) == "bfloat16",
        use_cpu=True,
        seed=seed,
        report_to=[],
    )
    collate = DataCollatorForTokenClassification(tokenizer, label_pad_token_id=UNSEEN)
    trainer: Any = Trainer(
        model,
        arguments,
        collate,
        train_dataset=prepared(train),
        eval_dataset=prepared(dev),
        compute_metrics=score,
    )
    trainer.train()
    scores = [row["eval_f1"] for row in trainer.state.log_history if "eval_f1" in row]
    model.eval()

    @torch.no_grad()
    def predict(sentences: list[list[str]]) -> list[list[Entity]]:
        by_sentence = []
        for words in sentences:
            pieces, firsts = encoded(words)
            best = model(**pieces.convert_to_tensors("pt", prepend_batch_axis=True)).logits[0]
            by_sentence.append(entities([names[i] for i in best[firsts].argmax(-1).tolist()]))
        return by_sentence

    yield predict, scores


@contextmanager
def flair(
    python: str | None, encoder: str, train: Sentences, dev: Sentences, seed: int, out: Path
) -> Iterator[tuple[Predict, list[float]]]:
    """Train Flair's tagger in another interpreter, which then predicts until the context ends."""
    if python is None:
        raise InputError("flair runs in an environment of its own: name its Python with --flair")
    out.mkdir(parents=True, exist_ok=True)
    for name, sentences in {"train": train, "dev": dev}.items():
        rows = [(words, entities(tags)) for words, tags in sentences]
        (out / f"{name}.json").write_text(json.dumps(rows), encoding="utf8")
    settings = [str(out), encoder, *map(str, (seed, PASSES, BATCH, RATE))]
    with Worker([python, "-m", "benchmarks.pretrained.flair_worker", *settings]) as worker:
        scores = worker.answer()["dev"]
        yield lambda sentences: worker.do(json.dumps(sentences))["entities"], scores


def main() -> None:
    options = script_parser(globals())
    options.add_argument("peer", choices=["hugging_face", "flair"], metavar="PEER")
    options.add_argument("--seed", type=int, default=1, help="seed of the training (1)")
    options.add_argument("--data", type=Path, default=Path("corpus", "conll2003"))
    options.add_argument("--encoder", default="encoders/all-MiniLM-L6-v2", help="folder or name")
    options.add_argument("--flair", metavar="PYTHON", help="interpreter with flair 0.15.1")
    given = options.parse_args()
    name = f"{given.peer}_minilm-{given.seed}"
    out = Path("training", "pretrained", name)
    train, dev = (read(given.data / f"{part}.spacy") for part in ("train", "dev"))
    peer = partial(flair, given.flair) if given.peer == "flair" else hugging_face
    with peer(given.encoder, train, dev, given.seed, out) as (predict, scores):
        results = measure(as_pipeline(predict), given.data)
    print(scores, results["f1"])
    data = [given.data / f"{part}.spacy" for part in ("train", "dev", *TESTS.values())]
    write_record(name, "four_tests", {**results, "dev": scores}, data=data, seed=given.seed)


if __name__ == "__main__":
    main()
