"""Kill a server in the middle of requests that write, and count what is left of its answers.

A server of `serve --annotate` gets SIGKILL at a random moment while an annotator decides, undoes,
adds labels and exports. Then the next one is started on the same file.

Results (kind "figures"): `kills`, of servers that had answered a first request; `teach`, how many
of them ran a Teach; `confirmed`, the number of answered actions by their kind; `lost`, how many of
them the file lacks; `interrupted`, the number of actions that were not answered, and `saved`, how
many of these are in the file; `unsound`, the number of kills after which the file has an error by
SQLite's check, or rows that nobody asked for.
"""

import json
import os
import random
import signal
import sqlite3
import threading
from collections import Counter
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from benchmarks.record import write_record
from benchmarks.reliability.attacks import TEXT, in_child, make_nlp
from benchmarks.script import script_parser
from spacy_psa.studio.active_learning.store import open_store
from spacy_psa.studio.server.annotate_plan import AnnotatePlan
from spacy_psa.studio.server.guard import Settings
from spacy_psa.studio.server.serve import ServerPlan, serve

WRITING = ("decide", "undo", "labels")


def start(folder: Path) -> tuple[int, str]:
    """Start a server in a copy of this process, and return its number and its address."""
    about = AnnotatePlan(folder / "work.sqlite", folder / "texts.txt", annotator="ann")
    plan = ServerPlan([str(folder / "model")], Settings(), port=0, annotate=about)
    reading, writing = os.pipe()

    def tell(line: str) -> None:
        os.write(writing, line.encode())

    child = in_child(lambda: serve(plan, tell, print))
    os.close(writing)
    line = os.read(reading, 1000).decode()
    os.close(reading)
    assert line, "the server does not start"
    return child, urlsplit(line.split()[0]).netloc


def ask(address: str, method: str, path: str, **body: Any) -> None:
    connection = HTTPConnection(address, timeout=60)
    head = {"Content-Type": "application/json"}
    connection.request(method, f"/api/annotation/{path}", json.dumps(body) if body else None, head)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert answer.status == 200, content


def act(address: str, kind: str, key: str) -> None:
    """Do one action."""
    if kind == "decide":
        made = {"verdict": "accepted", "start": 0, "end": 1, "label": "PER"}
        ask(address, "POST", kind, annotator="ann", key=key, text=1, decisions=[made])
    elif kind == "undo":
        ask(address, "POST", kind, annotator="ann", key=key)
    elif kind == "labels":
        ask(address, "POST", kind, label=key)
    elif kind == "teach":
        ask(address, "POST", kind)
    else:
        ask(address, "GET", "export?form=jsonl")


def missing(path: Path, done: list[tuple[str, str]]) -> int:
    """Count the actions that a file lacks."""
    with open_store(path, reading=True) as store:
        assert store.component is not None
        labels = store.component.labels
        return sum(
            key not in labels if kind == "labels" else store.done("ann", key) is None
            for kind, key in done
            if kind in WRITING
        )


def is_sound(path: Path, least: Counter[str], most: Counter[str]) -> bool:
    """Check the database, and that it has as many rows as were asked for."""
    database = sqlite3.connect(path)
    checked = database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()
    with open_store(path, reading=True) as store:
        rows = zip(store.changes(), ("decide", "undo"), strict=True)
        return checked and all(least[kind] <= count <= most[kind] for count, kind in rows)


def attack(folder: Path, kills: int, teach: int, draw: random.Random) -> dict[str, Any]:
    """Kill servers, the first of them in the middle of a Teach."""
    make_nlp(folder)
    (folder / "texts.txt").write_text(f"{TEXT}\nAda left.\n")
    path = folder / "work.sqlite"
    done: list[tuple[str, str]] = []
    interrupted: list[tuple[str, str]] = []
    unsound = 0
    for number in range(kills):
        child, address = start(folder)
        act(address, "decide", f"{number}")
        done.append(("decide", f"{number}"))
        if number < teach:
            act(address, "teach", "")
        timer = threading.Timer(draw.uniform(0, 0.5), os.kill, (child, signal.SIGKILL))
        timer.start()
        for step in range(1_000_000):
            kind = draw.choices((*WRITING, "export"), (80, 15, 1, 4))[0]
            action = kind, f"{number}-{step}"
            try:
                act(address, *action)
            except (OSError, HTTPException):
                interrupted.append(action)
                break
            done.append(action)
        timer.join()
        os.waitpid(child, 0)
        counts = Counter(kind for kind, _ in done)
        unsound += not is_sound(path, counts, counts + Counter(kind for kind, _ in interrupted))
        print(number, dict(counts), missing(path, done), unsound, flush=True)
    os.kill(start(folder)[0], signal.SIGKILL)
    writing = [action for action in interrupted if action[0] in WRITING]
    return {
        "kills": kills,
        "teach": teach,
        "confirmed": Counter(kind for kind, _ in done),
        "lost": missing(path, done),
        "interrupted": len(writing),
        "saved": len(writing) - missing(path, writing),
        "unsound": unsound,
    }


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    options.add_argument("--kills", type=int, default=100, help="kills of a server (100)")
    options.add_argument("--teach", type=int, default=2, help="kills during a Teach (2)")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    with TemporaryDirectory() as name:
        figures = attack(Path(name), given.kills, given.teach, random.Random(given.seed))
    print(json.dumps(figures, indent=1))
    write_record(given.out, "reliability", figures, seed=given.seed)


if __name__ == "__main__":
    main()
