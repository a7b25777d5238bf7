"""Damage small files of each format, convert them, and count the outcomes.

A file of five sentences of the sample grammar gets one mutation, in its text or in its archive.
Then `spacy-psa convert` reads it, in this process. The result is compared with that of the file
without the mutation.

Results (kind "figures"), for each format: `files`, the number of files; `seconds`; `outcomes`, for
each mutation the number of files for each outcome of `OUTCOMES`; `bad`, the seeds of the files with
an outcome of `BAD`.
"""

import random
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab
from typer.main import get_command
from typer.testing import CliRunner, Result

from benchmarks.record import write_record
from benchmarks.reliability.formats import FORMATS, Format, pack, sentences
from benchmarks.script import script_parser
from spacy_psa.app import app
from spacy_psa.corpora.docbin import read_docbin
from spacy_psa.corpora.lines import LONGEST

Mutation = Callable[[bytes, random.Random], bytes]

OUTCOMES = {
    "same": "the same sentences",
    "repaired": "the same sentences, with a warning that counts the repairs",
    "error": "one error line, exit code 2, no output",
    "warned": "other sentences, with a warning",
    "fewer, warned": "fewer sentences, with a warning",
    "changed": "as many sentences or more, some of them different",
    "fewer": "fewer sentences, without a warning",
    "traceback": "an exception",
    "left": "an error, but something is left behind",
    "unclear": "an error of several lines or with another exit code",
}
BAD = ("traceback", "left", "unclear")


def _lines(change: Callable[[list[bytes], random.Random], None]) -> Mutation:
    """A mutation of the list of lines."""

    def mutate(data: bytes, rng: random.Random) -> bytes:
        lines = data.splitlines(keepends=True)
        change(lines, rng)
        return b"".join(lines)

    return mutate


def _flip(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1 :]


def _delete(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randint(1, 20) :]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.randint(1, 20)) + data[at:]


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _delete_line(lines: list[bytes], rng: random.Random) -> None:
    del lines[rng.randrange(len(lines))]


def _repeat_line(lines: list[bytes], rng: random.Random) -> None:
    at = rng.randrange(len(lines))
    lines.insert(at, lines[at])


def _swap_lines(lines: list[bytes], rng: random.Random) -> None:
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]


def _strange_line(lines: list[bytes], rng: random.Random) -> None:
    letters = " \t()*#-_/\\\"'{}[],:.0123456789ABOIESMabc\u00e9\u200b\ufeff\U0001f642"
    text = "".join(rng.choices(letters, k=rng.randint(1, 40)))
    lines.insert(rng.randrange(len(lines) + 1), f"{text}\n".encode())


def _long_line(lines: list[bytes], rng: random.Random) -> None:
    size = rng.choice([*[100_000] * 20, LONGEST])
    at = rng.randrange(len(lines))
    cut = rng.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:cut] + b"x" * size + lines[at][cut:]


def _encoded(encoding: str) -> Mutation:
    return lambda data, _: data.decode().encode(encoding)


def _nul(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + b"\0" + data[at:]


BYTES: dict[str, Mutation] = {
    "a byte changed": _flip,
    "bytes deleted": _delete,
    "bytes inserted": _insert,
    "the end cut off": _truncate,
}
TEXT: dict[str, Mutation] = {
    **BYTES,
    "a line deleted": _lines(_delete_line),
    "a line repeated": _lines(_repeat_line),
    "two lines exchanged": _lines(_swap_lines),
    "a strange line": _lines(_strange_line),
    "a very long line": _lines(_long_line),
    "Latin-1": _encoded("latin1"),
    "UTF-16": _encoded("utf16"),
    "a byte order mark": _encoded("utf-8-sig"),
    "CRLF": lambda data, _: data.replace(b"\n", b"\r\n"),
    "CR": lambda data, _: data.replace(b"\n", b"\r"),
    "NUL": _nul,
}
MEMBERS = ("a member twice", "no member", "an empty member", "a strange member")


@cache
def _text(form: Format, seed: int) -> bytes:
    return form.write(sentences(seed)).encode()


class Case:
    """A damaged file; the seed decides on its sentences and its mutation."""

    def __init__(self, form: Format, seed: int):
        rng = random.Random(seed)
        self.form = form
        self.text = _text(form, rng.randrange(100))
        self.packing = rng.choice(["", "", *form.packings])
        archive = self.packing == "zip" or self.packing.startswith("tar")
        places = ["text", "text", *(["packed"] if self.packing else []), *(["member"] * archive)]
        place = rng.choice(places)
        folder = "corpus/" if archive else ""
        members = [(folder + form.name, self.text)]
        if place == "text":
            self.mutation = rng.choice(list(TEXT))
            self.data = pack([(members[0][0], TEXT[self.mutation](self.text, rng))], self.packing)
        elif place == "packed":
            kind = rng.choice(list(BYTES))
            self.mutation = f"{kind}, packed"
            self.data = BYTES[kind](pack(members, self.packing), rng)
        else:
            self.mutation = rng.choice(MEMBERS)
            self.data = pack(_changed_members(members, self.mutation), self.packing)

    @property
    def name(self) -> str:
        """The name of the file."""
        if not self.packing:
            return self.form.name
        return f"{self.form.name}.gz" if self.packing == "gz" else f"corpus.{self.packing}"

    @property
    def options(self) -> list[str]:
        """The options of the command."""
        in_archive = self.packing not in ("", "gz")
        return [*self.form.options, *(self.form.archived if in_archive else ())]


def _changed_members(members: list[tuple[str, bytes]], mutation: str) -> list[tuple[str, bytes]]:
    ((name, _),) = members
    return {
        "a member twice": [*members, *members],
        "no member": [],
        "an empty member": [(name, b"")],
        "a strange member": [("corpus/._" + name.split("/")[-1], b"\0\1"), *members],
    }[mutation]


@contextmanager
def quick() -> Iterator[None]:
    """Make the languages and the commands only once; this takes longer than a conversion."""
    with (
        patch.object(spacy, "blank", cache(spacy.blank)),
        patch("typer.testing._get_command", cache(get_command)),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # zipfile warns of a name that comes twice
        yield


def run(command: str, source: Path, target: Path, options: list[str]) -> Result:
    """Convert a file."""
    return CliRunner().invoke(app, ["convert", command, str(source), str(target), *options])


def _content(path: Path) -> list[Any]:
    """The content of a converted file: sentences with their annotation, or lines of vectors."""
    if path.suffix != ".spacy":
        return path.read_bytes().splitlines()[1:]
    return [_layers(doc) for doc in read_docbin(path, Vocab())]


def _layers(doc: Doc) -> tuple[Any, ...]:
    groups = {
        key: [(span.start, span.end, span.label_) for span in group]
        for key, group in doc.spans.items()
    }
    return [(t.text, t.tag_, t.ent_iob_, t.ent_type_) for t in doc], sorted(groups.items())


@cache
def _expected(command: str, text: bytes) -> list[Any]:
    """The content of a converted file without a mutation."""
    with TemporaryDirectory() as name:
        form, folder = FORMATS[command], Path(name)
        source, target = folder / form.name, folder / _target(command)
        source.write_bytes(text)
        result = run(command, source, target, list(form.options))
        if result.exit_code:
            raise RuntimeError(f"{command}: a file without a mutation is an error: {result.stderr}")
        return _content(target)


def _target(command: str) -> str:
    return "out.txt" if command == "glove" else "out.spacy"


def outcome(command: str, case: Case) -> str:
    """Convert a damaged file; a key of `OUTCOMES`."""
    expected = _expected(command, case.text)
    with TemporaryDirectory() as name:
        folder = Path(name)
        source, target = folder / case.name, folder / _target(command)
        source.write_bytes(case.data)
        result = run(command, source, target, case.options)
        if result.exit_code:
            return _of_error(result, [path for path in folder.iterdir() if path != source])
        content = _content(target)
    warned = "warning: " in result.stderr
    if content == expected:
        return "repaired" if warned else "same"
    if len(content) < len(expected):
        return "fewer, warned" if warned else "fewer"
    return "warned" if warned else "changed"


def _of_error(result: Result, left: list[Path]) -> str:
    if not isinstance(result.exception, SystemExit):
        return "traceback"
    one_line = result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    if result.exit_code != 2 or not one_line:
        return "unclear"
    return "left" if left else "error"


def measure(command: str, files: int) -> dict[str, Any]:
    """The outcomes of a format."""
    started = time.perf_counter()
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    bad = []
    for seed in range(files):
        case = Case(FORMATS[command], seed)
        name = outcome(command, case)
        outcomes[case.mutation][name] += 1
        if name in BAD:
            bad.append(seed)
    return {
        "files": files,
        "seconds": round(time.perf_counter() - started, 1),
        "outcomes": {mutation: dict(outcomes[mutation]) for mutation in sorted(outcomes)},
        "bad": bad,
    }


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    options.add_argument("--files", type=int, default=2000, help="files of each format (2000)")
    given = options.parse_args()
    results = {}
    with quick():
        for command in FORMATS:
            results[command] = measure(command, given.files)
            print(command, results[command]["seconds"], results[command]["bad"], flush=True)
    write_record(given.out, "reliability", results, seed=0)


if __name__ == "__main__":
    main()
