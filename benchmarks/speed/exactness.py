"""Compare the potentials and entities of a trained model by the fast and by the plain paths.

Annotates DATA twice, each time in a process of its own. The first process works as usual, with
compiled kernels, equal words and rows computed once, and cached word vectors. The second process
has all of that off: SPACY_PSA_KERNELS=0, one sentence at a time, no caches. The exit status is 1 if
potentials differ by more than 1e-5 of the largest one, or if an entity differs.

Results (kind "figures"): the numbers of `documents`, of `entities` and of `documents_that_differ`
in their entities; `largest_potential`; `largest_difference_of_potentials`;
`largest_difference_of_log_partitions`.
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

from benchmarks.record import write_record
from benchmarks.script import script_parser

TOLERANCE = 1e-5


def annotate(model: str, pipe: str, data: Path, plain: bool, out: Path) -> None:
    """Write the potentials, log partitions and entities of a file to OUT.npz and OUT.json."""
    import spacy
    import torch
    from spacy.tokens import Doc

    from spacy_psa.architectures.distinct_words import caches
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
    """The arrays and the entities of a new process."""
    out = folder / ("plain.npz" if plain else "fast.npz")
    script = [sys.executable, "-m", "benchmarks.speed.exactness"]
    command = [*script, arguments.model, str(arguments.data), str(out)]
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


def main() -> int:
    options = script_parser(globals(), "MODEL", "DATA.spacy", "OUT.json")
    options.add_argument("--pipe", default="ner", help="component to compare (ner)")
    options.add_argument("--run", choices=["plain", "fast"], help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.run:
        plain = arguments.run == "plain"
        annotate(arguments.model, arguments.pipe, arguments.data, plain, arguments.out)
        return 0
    results = compare(arguments)
    print(json.dumps(results))
    write_record(arguments.out, "speed", results, data=[arguments.data])
    near = results["largest_difference_of_potentials"] <= TOLERANCE * results["largest_potential"]
    return int(not near or results["documents_that_differ"] > 0)


if __name__ == "__main__":
    sys.exit(main())
