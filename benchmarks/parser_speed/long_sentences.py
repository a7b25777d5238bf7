"""Measure the time and the memory that one long sentence takes, by its length.

DATA holds one sentence a Doc; a sentence of n tokens is made of their words. A config is
initialized with TRAIN (labels and characters) and not trained. Each length and each way to ask is a
process of its own, so that its peak memory is its own: "cky" is `nlp(doc)`, "confidence" adds
posteriors, "mbr" is `decode = "mbr"`, "kbest" is `kbest(doc, 1000)`. The first sentence of each
process has 20 tokens and does not count, since it loads what is compiled.

Results (kind "figures"): `labels`; `rows`, a list of {"ask", "tokens", "seconds" (processor time of
the process), "megabytes" (peak), "start_megabytes" (peak after the first sentence), "spans" (of the
best tree, or "trees" found)}.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.tokens import Doc

from benchmarks.parser_speed.measure import opened
from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.laboratory.performance.timing import pin_threads

ASKED = {"cky": (100, 301, 600, 1000), "confidence": (1000,), "mbr": (1000,), "kbest": (200,)}


def sentence(data: Path, nlp: Any, tokens: int) -> Doc:
    """Make a sentence of the words of a corpus."""
    words = (token.text for doc in read_docbin(data, nlp.vocab) for token in doc)
    return Doc(nlp.vocab, words=list(islice(words, tokens)))


def peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def one(given: argparse.Namespace) -> dict[str, Any]:
    """Measure one sentence in this process."""
    warnings.simplefilter("ignore")
    pin_threads(given.threads)
    nlp = opened(given.model, given.train)
    parser: Any = nlp.get_pipe("parser")
    parser.max_length = max(parser.max_length, given.tokens)
    parser.confidence = given.ask == "confidence"
    parser.decode = "mbr" if given.ask == "mbr" else "cky"

    def ask(doc: Doc) -> int:
        if given.ask == "kbest":
            return len(parser.kbest(doc, 1000)[0])
        return len(nlp(doc).spans["constituents"])

    ask(sentence(given.data, nlp, 20))
    doc, begin = sentence(given.data, nlp, given.tokens), peak()
    started = time.process_time()
    count = ask(doc)
    seconds = round(time.process_time() - started, 2)
    found = {"ask": given.ask, "tokens": given.tokens, "seconds": seconds}
    found |= {"megabytes": peak(), "start_megabytes": begin}
    return found | {
        "labels": len(parser.labels),
        "trees" if given.ask == "kbest" else "spans": count,
    }


def main() -> None:
    options = script_parser("benchmarks.parser_speed.long_sentences", __doc__)
    options.add_argument("model", metavar="MODEL", help="a pipeline, or a config")
    options.add_argument("data", type=Path, metavar="DATA.spacy")
    options.add_argument("out", type=Path, metavar="OUT.json")
    options.add_argument("--train", type=Path, help="training data to initialize a config with")
    options.add_argument("--threads", type=int, default=1, help="threads (1)")
    options.add_argument("--ask", choices=ASKED, help="measure one row and print it")
    options.add_argument("--tokens", type=int, help="likewise")
    given = options.parse_args()
    if given.ask:
        print(json.dumps(one(given)))
        return
    rows, labels = [], 0
    with tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        opened(given.model, given.train).to_disk(folder)
        for ask, lengths in ASKED.items():
            for tokens in lengths:
                command = [sys.executable, "-m", "benchmarks.parser_speed.long_sentences", folder]
                command += [str(given.data), str(given.out), "--threads", str(given.threads)]
                command += ["--ask", ask, "--tokens", str(tokens)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                row = json.loads(done.stdout.splitlines()[-1])
                labels = row.pop("labels")
                print(row)
                rows.append(row)
    write_record(given.out, "parser_speed", {"labels": labels, "rows": rows}, data=[given.data])


if __name__ == "__main__":
    main()
