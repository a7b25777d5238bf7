"""Time one installed version of spacy-psa; `benchmarks.speed.versions` starts it.

It only uses the parts of the package that the config names, so that any version can run it. For
each line of its input, it annotates all words once, does the training steps once, and prints a JSON
object {"words": words per second, "steps": training steps per second}.
"""

import json
import sys
import time

import torch
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config, registry

BATCH = 10


def main(config: str, data: str, train: str, vectors: str, steps: int) -> None:
    torch.set_num_threads(1)
    paths = {"paths.train": train, "paths.dev": train, "paths.vectors": vectors}
    nlp = init_nlp(load_config(config, overrides=paths, interpolate=False))
    settings = nlp.config.interpolate()["training"]
    optimizer = registry.resolve(settings, schema=ConfigSchemaTraining)["optimizer"]
    references = list(DocBin().from_disk(train).get_docs(nlp.vocab))
    texts = [[t.text for t in doc] for doc in DocBin().from_disk(data).get_docs(nlp.vocab)]

    def annotate(words: list[list[str]]) -> float:
        docs = [Doc(nlp.vocab, words=each) for each in words]
        start = time.perf_counter()
        for _ in nlp.pipe(docs):
            pass
        return time.perf_counter() - start

    def take_steps(docs: list[Doc]) -> float:
        examples = [Example(Doc(nlp.vocab, words=[t.text for t in doc]), doc) for doc in docs]
        start = time.perf_counter()
        for i in range(0, len(examples), BATCH):
            nlp.update(examples[i : i + BATCH], drop=settings["dropout"], sgd=optimizer, losses={})
        return time.perf_counter() - start

    for _ in sys.stdin:
        words = sum(map(len, texts)) / annotate(texts)
        rate = steps / take_steps(references[: steps * BATCH])
        print(json.dumps({"words": words, "steps": rate}), flush=True)


if __name__ == "__main__":
    config, data, train, vectors, steps = sys.argv[1:]
    main(config, data, train, vectors, int(steps))
