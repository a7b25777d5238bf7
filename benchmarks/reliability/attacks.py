"""Attack a server and its file of decisions, and note what happens.

- `decisions`: processes that save decisions get SIGKILL at random moments. `acknowledged` is the
  number of decisions that were confirmed to them, `lost` those of them that the file lacks. Then
  the disk is full (a limit of the size of files), the file is locked by another program, may not
  be written, and is cut off; each has the error of the next decision, and whether the decisions of
  before are there afterwards.
- `slow`: clients send the beginning of a request and wait. `seconds` is the time of another request
  meanwhile, `open_files` the number of files of the server before, meanwhile and after.
- `requests`: memory of the server after a tenth of the requests and after all, in bytes; each has a
  word that no other has.
- `swapped`: whether a pipeline that is open annotates the same after its files were overwritten.

Results (kind "figures"): these.
"""

import json
import os
import random
import resource
import signal
import socket
import sqlite3
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy
from spacy.language import Language
from spacy.training import Example

from benchmarks.record import write_record
from benchmarks.script import script_parser
from benchmarks.speed.serving import server
from spacy_psa.errors import InputError
from spacy_psa.studio.active_learning.decisions import Decision
from spacy_psa.studio.active_learning.store import AnnotationStore, open_store
from spacy_psa.studio.active_learning.tokens import Tokens

TEXT = "Ada met Charles Babbage in London."


def saved(path: Path) -> int:
    """The number of decisions in a file."""
    with open_store(path, reading=True) as store:
        return store.count("ann", "ner")


def save(store: AnnotationStore) -> None:
    store.decide(1, "ann", "ner", [Decision("accepted", 0, 1, "PER")])


def in_child(work: Callable[[], None]) -> int:
    """Run a function in a copy of this process, and return the number of the process."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return child


def killed(path: Path, kills: int, draw: random.Random) -> dict[str, int]:
    """Kill processes that save decisions."""
    reading, writing = os.pipe()

    def work() -> None:
        with open_store(path) as store:
            while True:
                save(store)
                os.write(writing, b"1")

    acknowledged = lost = 0
    for _ in range(kills):
        before = saved(path)
        child = in_child(work)
        os.read(reading, 1)
        time.sleep(draw.uniform(0, 0.05))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.write(writing, b"0")
        count = 1
        while not (part := os.read(reading, 4096)).endswith(b"0"):
            count += len(part)
        count += len(part) - 1
        acknowledged += count
        lost += max(0, before + count - saved(path))
    return {"kills": kills, "acknowledged": acknowledged, "lost": lost}


def refused(path: Path, before: Callable[[Path], Any]) -> dict[str, Any]:
    """The error of a decision in a child where something is wrong, and whether all others stay."""
    count, (reading, writing) = saved(path), os.pipe()

    def work() -> None:
        try:
            held = before(path)
            with open_store(path) as store:
                save(store)
            error = f"none ({held})"
        except InputError as fault:
            error = str(fault).replace(f"{path}: ", "")
        os.write(writing, error.encode())

    os.waitpid(in_child(work), 0)
    os.write(writing, b".")
    return {"error": os.read(reading, 4096).decode()[:-1], "kept": saved(path) == count}


def fill_disk(path: Path) -> None:
    """Let this process write nothing, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def lock(path: Path) -> sqlite3.Connection:
    """Lock the file as another program."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


def protect(path: Path) -> None:
    """Become a user who may not write the file, if this process is root's."""
    if os.getuid() == 0:
        os.setuid(65534)


def decisions(folder: Path, kills: int, draw: random.Random) -> dict[str, Any]:
    """Attack a file of decisions."""
    path = folder / "decisions.sqlite"
    text = Tokens(("Ada", "left"), (True, False), (True, False))
    with open_store(path) as store:
        store.add([(text, {})])
        save(store)
    figures: dict[str, Any] = {"killed": killed(path, kills, draw)}
    for name, before in {"full disk": fill_disk, "locked": lock, "protected": protect}.items():
        figures[name] = refused(path, before)
    os.truncate(path, path.stat().st_size // 2)
    try:
        figures["cut off"] = {"error": "none", "saved": saved(path)}
    except InputError as error:
        figures["cut off"] = {"error": str(error).replace(f"{path}: ", "")}
    return figures


def ask(address: str, text: str) -> float:
    """Annotate a text over HTTP, and return the seconds."""
    start, connection = time.perf_counter(), HTTPConnection(address)
    body = json.dumps({"texts": [text]})
    connection.request("POST", "/api/annotate", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert text in json.loads(answer.read())["docs"][0]["text"] and answer.status == 200
    connection.close()
    return time.perf_counter() - start


def slow(model: str, clients: int) -> dict[str, Any]:
    """Let many clients begin a request and wait."""
    with server("serve", model, False) as (address, process):
        files = [process.num_fds()]
        host, _, port = address.partition(":")
        waiting = [socket.create_connection((host, int(port))) for _ in range(clients)]
        for connection in waiting:
            connection.sendall(b"POST /api/annotate HTTP/1.1\r\nHost: localhost\r\n")
        time.sleep(1)
        files.append(process.num_fds())
        seconds = max(ask(address, "Ada left.") for _ in range(20))
        for connection in waiting:
            connection.close()
        time.sleep(1)
        files.append(process.num_fds())
    return {"clients": clients, "seconds": round(seconds, 4), "open_files": files}


def requests(model: str, count: int) -> dict[str, Any]:
    """The memory of a server over many requests."""
    sizes = []
    with server("serve", model, False) as (address, process):
        for i in range(count):
            ask(address, f"Ada met Xyl{i}brq.")
            if i + 1 in (count // 10, count):
                sizes.append(process.memory_info().rss)
    return {"requests": count, "bytes": sizes}


def swapped(folder: Path) -> bool:
    """Whether an open pipeline annotates the same after its files were cut off in place."""
    nlp = make_nlp(folder)
    before = nlp(TEXT).to_bytes()
    for file in (folder / "model").rglob("*"):
        if file.is_file():
            os.truncate(file, file.stat().st_size // 2)
    return bool(before == nlp(TEXT).to_bytes())


def make_nlp(folder: Path) -> Language:
    """An untrained `crf_ner`, saved and opened again."""
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}})
    gold = {"entities": [(0, 3, "PER")]}
    nlp.initialize(lambda: [Example.from_dict(nlp.make_doc(TEXT), gold)])
    nlp.to_disk(folder / "model")
    return spacy.load(folder / "model")


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    options.add_argument("--kills", type=int, default=100, help="kills of the writer (100)")
    options.add_argument("--clients", type=int, default=500, help="slow clients (500)")
    options.add_argument("--requests", type=int, default=10_000, help="requests (10,000)")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    figures: dict[str, Any] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        figures["decisions"] = decisions(folder, given.kills, random.Random(given.seed))
        print(json.dumps(figures, indent=1), flush=True)
        figures["swapped"] = swapped(folder)
        blank = folder / "blank"
        spacy.blank("en").to_disk(blank)
        figures["slow"] = slow(str(blank), given.clients)
        print(json.dumps(figures, indent=1), flush=True)
        figures["requests"] = requests(str(blank), given.requests)
    print(json.dumps(figures, indent=1))
    write_record(given.out, "reliability", figures, seed=given.seed)


if __name__ == "__main__":
    main()
