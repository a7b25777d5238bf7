"""Measure the words that a server annotates in a second of its processor time, next to FastAPI.

`spacy-psa serve` and a plain FastAPI app of a few lines serve the same texts to several clients, by
turns, each in a process of its own with one thread for the model. A request has one text, or many.

Results (kind "figures"): `texts` and `words` of the data; `clients`; `seconds` of each run; `rows`,
{server and model: {texts in a request: {`per_cpu_second`: words a second of processor time, of the
whole server process, the median; `runs`: the same of each run; `ratio`: the median of the ratios to
FastAPI with `ner` in the same round, with confidences in rows that have them}}}.

spaCy's `ner` has no confidences but those of a beam: the share of an entity's score among all
analyses in it.
"""

import argparse
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from subprocess import PIPE, Popen
from typing import Any
from urllib.parse import urlsplit

import psutil
from spacy.language import Language
from spacy.tokens import Doc, Span

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.child_processes import child_command, child_environment
from spacy_psa.corpora.docbin import read_docbin

SIZES = (1, 32)
"""Texts in a request."""
ROWS = {
    "FastAPI, ner": ("plain", "ner", False),
    "FastAPI, ner with confidences": ("plain", "ner", True),
    "serve, ner": ("serve", "ner", False),
    "FastAPI, crf_ner": ("plain", "crf", False),
    "FastAPI, crf_ner with confidences": ("plain", "crf", True),
    "serve, crf_ner": ("serve", "crf", False),
    "serve, crf_ner with confidences": ("serve", "crf", True),
}
"""The server, the model, and whether answers have confidences."""
BASE = "FastAPI, ner"
BEAM, DENSITY = 16, 1e-4
"""The width of the beam of `ner`, and the least share of the best score in it."""


def with_beam(nlp: Language, texts: list[str]) -> Iterator[tuple[Doc, list[dict[str, Any]]]]:
    """Yield docs and their entities with the scores of a beam, as `ner` has no others."""
    ner: Any = nlp.get_pipe("ner")
    with nlp.select_pipes(disable="ner"):
        docs = [*nlp.pipe(texts)]
    beams = ner.beam_parse(docs, beam_width=BEAM, beam_density=DENSITY)
    for doc, beam in zip(docs, beams, strict=True):
        parses = ner.moves.get_beam_parses(beam)
        best = parses[0][1] if parses else []
        rows = []
        for start, end, label in best:
            score = sum(own for own, ents in parses if (start, end, label) in ents)
            rows.append(span(doc[start:end], label) | {"score": score})
        yield doc, rows


def span(ent: Span, label: str) -> dict[str, Any]:
    """A span as the answers have it."""
    return {"start": ent.start_char, "end": ent.end_char, "label": label, "text": ent.text}


def plain(model: str, confidence: bool) -> None:
    """Serve a pipeline as a user would without this package."""
    import spacy
    import torch
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    from spacy_psa.pipeline.chain.extensions import register
    from spacy_psa.studio.server.serve import open_socket

    torch.set_num_threads(1)
    nlp = spacy.load(model)
    ner: Any = nlp.get_pipe("ner")
    by_beam = confidence and hasattr(ner, "beam_parse")
    if confidence and not by_beam:
        register()
        ner.confidence = True
    app = FastAPI()

    class Texts(BaseModel):
        texts: list[str]

    def row(ent: Span) -> dict[str, Any]:
        score = {"score": ent._.confidence} if confidence else {}
        return span(ent, ent.label_) | score

    @app.post("/api/annotate")
    async def annotate(asked: Texts) -> dict[str, Any]:
        if by_beam:
            pairs = with_beam(nlp, asked.texts)
            return {"docs": [{"text": doc.text, "ents": ents} for doc, ents in pairs]}
        docs = nlp.pipe(asked.texts)
        return {"docs": [{"text": doc.text, "ents": [*map(row, doc.ents)]} for doc in docs]}

    with open_socket("127.0.0.1", 0) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


@contextmanager
def server(kind: str, model: str, confidence: bool) -> Iterator[tuple[str, psutil.Process]]:
    """The address and the process of a server."""
    if kind == "serve":
        asked = "--confidence" if confidence else "--no-confidence"
        command = child_command("spacy_psa", "serve", model, "--port", "0", asked)
    else:
        command = child_command(
            "benchmarks.speed.serving", *("--plain", str(int(confidence)), model, "-")
        )
    environment = child_environment(OMP_NUM_THREADS="1")
    with Popen(command, stdout=PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield urlsplit(process.stdout.readline().split()[0]).netloc, psutil.Process(process.pid)
        finally:
            process.terminate()


def ask(address: str, bodies: list[bytes], clients: int, seconds: float) -> int:
    """Send bodies one after the other by several clients, and count the answers."""
    left, lock, counts = cycle(bodies), threading.Lock(), [0] * clients
    end = time.monotonic() + seconds

    def client(i: int) -> None:
        connection = HTTPConnection(address)
        while time.monotonic() < end:
            with lock:
                body = next(left)
            connection.request("POST", "/api/annotate", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            assert answer.read() and answer.status == 200
            counts[i] += 1

    threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def base(row: str) -> str:
    """The row that a row is compared with."""
    return f"{BASE} with confidences" if ROWS[row][2] else BASE


def measure(texts: list[str], words: int, given: argparse.Namespace) -> dict[str, Any]:
    """The figures of all rows."""
    rows: dict[str, Any] = {row: {str(size): [] for size in SIZES} for row in ROWS}
    for _ in range(given.repeats):
        for row, (kind, model, confidence) in ROWS.items():
            with server(kind, getattr(given, model), confidence) as (address, process):
                for size in SIZES:
                    # Each body has as many words as any other, but for chance.
                    stream = islice(cycle(texts), size * len(texts))
                    bodies = [
                        json.dumps({"texts": [*islice(stream, size)]}).encode()
                        for _ in range(len(texts))
                    ]
                    ask(address, bodies, given.clients, 2)
                    before = sum(process.cpu_times()[:2])
                    count = ask(address, bodies, given.clients, given.seconds)
                    spent = sum(process.cpu_times()[:2]) - before
                    rows[row][str(size)].append(count * size * words / len(texts) / spent)
                    print(f"{row}, {size}: {rows[row][str(size)][-1]:,.0f} words/s", flush=True)
    return {
        row: {
            size: {
                "per_cpu_second": round(median(runs), 1),
                "runs": [round(r, 1) for r in runs],
                "ratio": round(median(a / b for a, b in zip(runs, rows[base(row)][size])), 3),
            }
            for size, runs in sizes.items()
        }
        for row, sizes in rows.items()
    }


def main() -> None:
    options = script_parser(globals(), "DATA.spacy")
    options.add_argument("out", type=Path, metavar="OUT.json")
    options.add_argument("--ner", help="pipeline with spaCy's ner")
    options.add_argument("--crf", help="pipeline with crf_ner")
    options.add_argument("--clients", type=int, default=8, help="clients at a time (8)")
    options.add_argument("--seconds", type=float, default=10, help="seconds of each run (10)")
    options.add_argument("--repeats", type=int, default=3, help="runs of each row (3)")
    options.add_argument("--plain", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.plain is not None:
        plain(str(given.data), bool(given.plain))
        return
    import spacy

    docs = list(read_docbin(given.data, spacy.blank("en").vocab))
    texts, words = [doc.text for doc in docs], sum(map(len, docs))
    results = {"texts": len(texts), "words": words, "clients": given.clients}
    rows = measure(texts, words, given)
    results |= {"seconds": given.seconds, "rows": rows}
    print(json.dumps(rows, indent=2))
    write_record(given.out, "speed", results, data=[given.data])


if __name__ == "__main__":
    main()
