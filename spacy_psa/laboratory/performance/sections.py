"""The sections of `spacy-psa benchmark speed`, each as an object for its JSON file.

Keys of the file, format 1: `format`, `date`, `command`, `settings`, `data` {path: MD5},
`machine`, `versions`, `commit`, `modified` (see `spacy_psa.scoring.provenance`), `rows`
{name: path}, and those of these sections that were asked for:

- `annotation`: `words`, `rows` {name: summary}, in words per second
- `training`: `batch`, `steps`, `rows` {name: summary}, in steps per second
- `loading`: `rows` {name: summary}, in loads per second, with `import spacy`
- `memory`: `rows` {name: {`stream`: [...], `long`: [...]}}, each of `measure_memory`
- `lengths`: `words`, `rows` {name: {length: summary}}
- `labels`: `words`, `rows` {name: {number of tags: summary}}

`spacy_psa.laboratory.performance.timing.summary` makes each summary.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.laboratory.performance.pipelines import (
    Annotation,
    Sentences,
    Training,
    of_length,
    open_pipelines,
    read_words,
)
from spacy_psa.laboratory.performance.processes import Loading, measure_memory
from spacy_psa.laboratory.performance.timing import (
    Row,
    Timing,
    alternate,
    pin_threads,
    stopwatch,
    summary,
)
from spacy_psa.scoring.provenance import command, provenance

LENGTHS = (10, 20, 40, 80, 160, 320)
LABELS = (2, 4, 8, 12, 18)  # n labels have 4 n + 1 BIOES tags
STREAMS, LONG_DOCS = (200_000, 1_000_000), (25_000, 100_000)
"""The words of streams of docs, and of single docs, whose memory is measured."""
Tell = Callable[[str, int], None]


def timed(rows: Sequence[Row], repeats: int, tell: Tell | None = None) -> dict[str, Any]:
    """Time rows in turn, see `alternate`, as {name: summary}."""
    return {name: summary(timings) for name, timings in alternate(rows, repeats, tell).items()}


def loading(paths: Mapping[str, str], repeats: int, tell: Tell | None = None) -> dict[str, Any]:
    """Measure the time in which pipelines open, from {name: folder or package}."""
    return {"rows": timed([Loading(name, path) for name, path in paths.items()], repeats, tell)}


def memory(
    paths: Mapping[str, str], data: Path, words: Sequence[int], long: Sequence[int]
) -> dict[str, Any]:
    """Measure the peak memory of pipelines, {name: folder or package}.

    `words` are the numbers of words of each stream of docs, and `long` those of each single doc.
    """
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
    """Measure the words per second of docs of each length in `LENGTHS`, `words` in each run."""
    rows = [
        Annotation(f"{name} {length}", nlp, of_length(sentences, length, words))
        for name, nlp in nlps.items()
        for length in LENGTHS
    ]
    return {"words": words, "rows": _by_name(timed(rows, repeats, tell))}


def labels(
    nlps: Mapping[str, Language],
    sentences: Sentences,
    words: int,
    repeats: int,
    tell: Tell | None = None,
) -> dict[str, Any]:
    """Measure the words per second of the `crf_ner` of each pipeline, with 2 to 18 labels.

    The weights are random. Pipelines without a `crf_ner` are left out.
    """
    rows = [
        _Untrained(f"{name} {4 * count + 1}", nlp, count, of_length(sentences, 20, words))
        for name, nlp in nlps.items()
        if "crf_ner" in nlp.pipe_factories.values()
        for count in LABELS
    ]
    return {"words": words, "rows": _by_name(timed(rows, repeats, tell))}


def _by_name(summaries: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """{"psa 10": …} as {"psa": {"10": …}}."""
    rows: dict[str, dict[str, Any]] = {}
    for title, each in summaries.items():
        name, _, number = title.rpartition(" ")
        rows.setdefault(name, {})[number] = each
    return rows


class _Untrained:
    """A new `crf_ner` with the settings of a pipeline's `crf_ner` and `count` labels."""

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


@dataclass(frozen=True)
class Plan:
    """The settings of a benchmark."""

    data: Path
    """The `.spacy` file with the words to annotate."""
    train: Path | None = None
    """The training data; None to measure no training."""
    vectors: str | None = None
    """The pipeline with the word vectors of a config."""
    words: int = 20_000
    """The number of words of a run."""
    steps: int = 20
    """The number of training steps of a run."""
    batch: int = 10
    """The number of docs of a training step."""
    repeats: int = 5
    threads: int = 1

    @property
    def files(self) -> list[Path]:
        """The data files."""
        return [self.data, *([self.train] if self.train else [])]


def measure(
    paths: Mapping[str, str], wanted: Sequence[str], plan: Plan, tell: Tell | None = None
) -> dict[str, Any]:
    """Measure sections of pipelines, side by side, and return the object for the JSON file.

    `paths` are {name: folder or package of a pipeline, or training config}. No sections are
    `wanted` for annotation, loading and, with data, training. `tell` is called before each run.
    """
    train, repeats = plan.train, plan.repeats
    wanted = wanted or ["annotation", "loading", *(["training"] if train else [])]
    if "training" in wanted and train is None:
        raise InputError("--section training: needs training data; add --train TRAIN.spacy")
    pin_threads(plan.threads)
    sentences = read_words(plan.data, plan.words)
    nlps = open_pipelines(paths, train, plan.vectors)
    saved = {name: path for name, path in paths.items() if not path.endswith(".cfg")}
    sections: dict[str, Any] = {}
    if "annotation" in wanted:
        rows = [Annotation(name, nlp, sentences) for name, nlp in nlps.items()]
        sections["annotation"] = {"words": plan.words, "rows": timed(rows, repeats, tell)}
    for name, grow in (("lengths", lengths), ("labels", labels)):
        if name in wanted:
            sections[name] = grow(nlps, sentences, plan.words, repeats, tell)
    if "training" in wanted and train is not None:  # last: it changes the weights
        loops = [Training(name, nlp, train, plan.steps, plan.batch) for name, nlp in nlps.items()]
        steps = {"batch": plan.batch, "steps": plan.steps}
        sections["training"] = {**steps, "rows": timed(loops, repeats, tell)}
    if "loading" in wanted:
        sections["loading"] = loading(saved, repeats, tell)
    if "memory" in wanted:
        sections["memory"] = memory(saved, plan.data, STREAMS, LONG_DOCS)
    settings = {"threads": plan.threads, "repeats": repeats}
    return record(command(), settings, paths, plan.files, sections)


def record(
    command_line: str,
    settings: Mapping[str, Any],
    rows: Mapping[str, str],
    data: Sequence[Path],
    sections: Mapping[str, Any],
) -> dict[str, Any]:
    """Make the object for the JSON file: the sections and their provenance, see the module.

    The command line has the `settings`, and `rows` are {name: path of the pipeline}.
    """
    made = {**provenance(data), "command": command_line}
    return {"format": 1, "settings": dict(settings), "rows": dict(rows), **sections, **made}
