"""The sections of `spacy-psa benchmark speed`, each as an object for its JSON file.

Keys of the file, format 1: `format`, `date`, `command`, `settings`, `data` {path: MD5},
`machine`, `versions`, `commit`, `modified` (see `spacy_psa.scoring.provenance`), `rows`
{name: path}, and of the sections those that were asked for:

- `annotation`: `words`, `rows` {name: summary}, in words a second
- `training`: `batch`, `steps`, `rows` {name: summary}, in steps a second
- `loading`: `rows` {name: summary}, in loads a second, `import spacy` counted
- `memory`: `rows` {name: {`stream`: [...], `long`: [...]}}, each as `measure_memory` gives
- `lengths`: `words`, `rows` {name: {length: summary}}
- `labels`: `words`, `rows` {name: {number of tags: summary}}

A summary is what `spacy_psa.performance.timing.summary` gives.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_psa.performance.pipelines import Annotation, Sentences, of_length
from spacy_psa.performance.processes import Loading, measure_memory
from spacy_psa.performance.timing import Row, Timing, alternate, stopwatch, summary
from spacy_psa.scoring.provenance import checksums, commit, machine, versions

LENGTHS = (10, 20, 40, 80, 160, 320)
LABELS = (2, 4, 8, 12, 18)  # times 4, and 1, with BIOES
Tell = Callable[[str, int], None]


def timed(rows: Sequence[Row], repeats: int, tell: Tell | None = None) -> dict[str, Any]:
    """{name: summary} of rows timed in turn."""
    return {name: summary(found) for name, found in alternate(rows, repeats, tell).items()}


def loading(paths: Mapping[str, str], repeats: int, tell: Tell | None = None) -> dict[str, Any]:
    """How long the pipelines at these paths take to open, by name."""
    return {"rows": timed([Loading(name, path) for name, path in paths.items()], repeats, tell)}


def memory(
    paths: Mapping[str, str], data: Path, words: Sequence[int], long: Sequence[int]
) -> dict[str, Any]:
    """Peak memory of streams of so many words, and of single docs of so many words."""
    return {
        "rows": {
            name: {
                "stream": [measure_memory(path, data, n) for n in words],
                "long": [measure_memory(path, data, n, long=True) for n in long],
            }
            for name, path in paths.items()
        }
    }


def lengths(
    nlps: Mapping[str, Language],
    sentences: Sentences,
    words: int,
    repeats: int,
    tell: Tell | None = None,
) -> dict[str, Any]:
    """Words a second of docs of each of `LENGTHS`."""
    rows = [
        Annotation(f"{name} {length}", nlp, of_length(sentences, length, words))
        for name, nlp in nlps.items()
        for length in LENGTHS
    ]
    found = timed(rows, repeats, tell)
    by_name = {name: {str(n): found[f"{name} {n}"] for n in LENGTHS} for name in nlps}
    return {"words": words, "rows": by_name}


def labels(
    nlps: Mapping[str, Language],
    sentences: Sentences,
    words: int,
    repeats: int,
    tell: Tell | None = None,
) -> dict[str, Any]:
    """Words a second of each pipeline's `crf_ner`, with random weights and 2 to 18 labels."""
    rows = [
        _Untrained(f"{name} {4 * count + 1}", nlp, count, of_length(sentences, 20, words))
        for name, nlp in nlps.items()
        if "crf_ner" in nlp.pipe_factories.values()
        for count in LABELS
    ]
    found = timed(rows, repeats, tell)
    by_name: dict[str, dict[str, Any]] = {}
    for row in rows:
        name, _, tags = row.name.rpartition(" ")
        by_name.setdefault(name, {})[tags] = found[row.name]
    return {"words": words, "rows": by_name}


class _Untrained:
    """A new `crf_ner` with a pipeline's settings and so many labels."""

    def __init__(self, name: str, nlp: Language, count: int, sentences: Sentences):
        self.name = name
        self.vocab = nlp.vocab
        self.sentences = sentences
        (of,) = [pipe for pipe, kind in nlp.pipe_factories.items() if kind == "crf_ner"][:1]
        settings = {k: v for k, v in nlp.get_pipe_config(of).items() if k != "factory"}
        self.pipe = cast(Any, nlp.create_pipe("crf_ner", config=settings))
        docs = [Doc(nlp.vocab, words=words) for words in sentences[:10]]
        examples = [Example(doc, doc) for doc in docs]
        self.pipe.initialize(lambda: examples, labels=[f"L{i}" for i in range(count)])

    def run(self) -> Timing:
        docs = [Doc(self.vocab, words=words) for words in self.sentences]
        with stopwatch(sum(map(len, docs))) as timings:
            for _ in self.pipe.pipe(docs, batch_size=1000):
                pass
        return timings[0]


def record(
    command: str,
    settings: Mapping[str, Any],
    rows: Mapping[str, str],
    data: Sequence[Path],
    sections: Mapping[str, Any],
) -> dict[str, Any]:
    """Sections with where they come from; see this module's keys."""
    head, modified = commit()
    return {
        "format": 1,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": command,
        "settings": dict(settings),
        "rows": dict(rows),
        **sections,
        "data": checksums(data),
        "machine": machine(),
        "versions": versions(),
        "commit": head,
        "modified": modified,
    }
