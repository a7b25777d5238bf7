"""Measure the time and the memory for one long sentence, by its length.

DATA has one sentence per Doc; a sentence of n tokens consists of their words. MODEL is a pipeline
or a config, which is initialized with TRAIN (labels and characters) and not trained. Each length
and each task has a process of its own, for its peak memory: "cky" is `nlp(doc)`, "confidence" adds
posteriors, "mbr" is `decode = "mbr"`, "kbest" is `kbest(doc, 1000)`. The first sentence of each
process has 20 tokens and does not count, because it loads compiled code.

Results (kind "figures"): `labels`; `rows`, a list of {"ask", "tokens", "seconds" (processor time of
the process), "megabytes" (peak), "start_megabytes" (peak after the first sentence), "spans" (of the
best tree) or "trees" (their number)}.
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

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.laboratory.performance.pipelines import open_pipeline
from spacy_psa.laboratory.performance.timing import pin_threads

ASKED = {"cky": (100, 301, 600, 1000), "confidence": (1000,), "mbr": (1000,), "kbest": (200,)}


def sentence(data: Path, nlp: Any, tokens: int) -> Doc:
    """Make a sentence of the words of a corpus."""
    words = (token.text for doc in read_docbin(data, nlp.vocab) for token in doc)
    return Doc(nlp.vocab, words=list(islice(words, tokens)))


def peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Measure one sentence in this process."""
    warnings.simplefilter("ignore")
    pin_threads(given.threads)
    nlp = open_pipeline(given.model, given.train, None)
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
    row = {"ask": given.ask, "tokens": given.tokens, "seconds": seconds}
    row |= {"megabytes": peak(), "start_megabytes": begin, "labels": len(parser.labels)}
    return row | {"trees" if given.ask == "kbest" else "spans": count}


def main() -> None:
    options = script_parser(globals(), "MODEL", "DATA.spacy", "OUT.json")
    options.add_argument("--train", type=Path, help="training data to initialize a config with")
    options.add_argument("--threads", type=int, default=1, help="threads (1)")
    options.add_argument("--ask", choices=ASKED, help="measure one row and print it")
    options.add_argument("--tokens", type=int, help="likewise")
    given = options.parse_args()
    if given.ask:
        print(json.dumps(measure(given)))
        return
    rows, labels = [], 0
    with tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        open_pipeline(given.model, given.train, None).to_disk(folder)
        command = [sys.executable, "-m", "benchmarks.parser_speed.long_sentences", folder]
        command += [str(given.data), str(given.out), "--threads", str(given.threads)]
        for ask, tokens in ((ask, n) for ask, lengths in ASKED.items() for n in lengths):
            task = ["--ask", ask, "--tokens", str(tokens)]
            done = subprocess.run([*command, *task], capture_output=True, text=True, check=True)
            row = json.loads(done.stdout.splitlines()[-1])
            labels = row.pop("labels")
            print(row)
            rows.append(row)
    write_record(given.out, "parser_speed", {"labels": labels, "rows": rows}, data=[given.data])


if __name__ == "__main__":
    main()
