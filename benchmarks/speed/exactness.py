"""The fast paths against the plain ones on a trained model: the same figures, the same entities.

usage: python benchmarks/exactness.py MODEL DATA.spacy OUT.json [--pipe NAME]

Annotates DATA twice, each time in a process of its own: as users do, with compiled kernels,
equal words and rows computed once, and remembered word vectors; and with all of that off:
SPACY_PSA_KERNELS=0, one sentence at a time, nothing remembered. Reports the largest
differences of potentials and of log partitions, and the documents whose entities differ. The
exit status is 1 where potentials differ by more than 1e-5 of the largest one, or an entity
differs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy

TOLERANCE = 1e-5


def annotate(model: str, pipe: str, data: Path, plain: bool, out: Path) -> None:
    """Write potentials, log partitions and entities of a file."""
    import spacy
    import torch
    from spacy.tokens import Doc

    from spacy_psa.architectures.word_cache import caches
    from spacy_psa.corpora.docbin import read_docbin

    torch.set_num_threads(1)
    nlp = spacy.load(model)
    component: Any = nlp.get_pipe(pipe)
    texts = [[token.text for token in doc] for doc in read_docbin(data, nlp.vocab)]
    docs = [Doc(nlp.vocab, words=words) for words in texts]
    size = 1 if plain else nlp.batch_size
    potentials: list[Any] = []
    partitions: list[float] = []
    for start in range(0, len(docs), size):
        batch = docs[start : start + size]
        if plain:
            for cache in caches(component.model):
                cache.forget()
        potentials += [numpy.asarray(array).ravel() for array in component.model.predict(batch)]
        partitions += component.distribution(batch).log_partition.tolist()
    entities = [
        [[ent.start, ent.end, ent.label_] for ent in doc.ents]
        for doc in nlp.pipe(docs, batch_size=size)
    ]
    numpy.savez(out, potentials=numpy.concatenate(potentials), partitions=partitions)
    out.with_suffix(".json").write_text(json.dumps(entities), encoding="utf8")


def elsewhere(arguments: argparse.Namespace, plain: bool, folder: Path) -> tuple[Any, Any]:
    """What a new process finds: arrays, and entities."""
    out = folder / ("plain.npz" if plain else "fast.npz")
    command = [sys.executable, __file__, arguments.model, str(arguments.data), str(out)]
    settings = {"SPACY_PSA_KERNELS": "0"} if plain else {}
    subprocess.run(
        [*command, "--pipe", arguments.pipe, "--run", "plain" if plain else "fast"],
        env={**os.environ, **settings},
        check=True,
    )
    return numpy.load(out), json.loads(out.with_suffix(".json").read_text(encoding="utf8"))


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        fast, entities = elsewhere(arguments, False, Path(folder))
        plain, expected = elsewhere(arguments, True, Path(folder))
        largest = float(abs(plain["potentials"]).max())
        difference = float(abs(fast["potentials"] - plain["potentials"]).max())
        partitions = float(abs(fast["partitions"] - plain["partitions"]).max())
    return {
        "documents": len(expected),
        "entities": sum(map(len, expected)),
        "documents_that_differ": sum(a != b for a, b in zip(entities, expected, strict=True)),
        "largest_potential": largest,
        "largest_difference_of_potentials": difference,
        "largest_difference_of_log_partitions": partitions,
    }


def main(arguments: argparse.Namespace) -> int:
    if arguments.run:
        annotate(
            arguments.model, arguments.pipe, arguments.data, arguments.run == "plain", arguments.out
        )
        return 0
    from record import write_record

    record = compare(arguments)
    write_record(arguments.out, record, [arguments.data])
    print(json.dumps(record))
    near = record["largest_difference_of_potentials"] <= TOLERANCE * record["largest_potential"]
    return int(not near or record["documents_that_differ"] > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pipe", default="ner")
    parser.add_argument("--run", choices=["plain", "fast"], help=argparse.SUPPRESS)
    sys.exit(main(parser.parse_args()))
