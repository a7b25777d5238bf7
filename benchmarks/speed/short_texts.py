"""Time short texts, one by one, and the first of them in a new process.

Each text is ten words of DATA.spacy, and goes through `nlp(text)` by itself. The first text is
timed with `import spacy` and `spacy.load` before it. The rows run in turn, on one thread.

Results (kind "figures"): `words` of a text; `rows` {name: {`texts`, `first`: summary}}, in texts
and in processes per second (see `spacy_psa.laboratory.performance.timing.summary`); `ratios`
{name: {`texts`, `first`}}, the median processor time as a multiple of that of the row BASE.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from spacy.language import Language

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.laboratory.performance.pipelines import named_rows, of_length, read_words
from spacy_psa.laboratory.performance.sections import timed
from spacy_psa.laboratory.performance.timing import Timing, pin_threads, stopwatch
from spacy_psa.loading import load_pipeline

WORDS = 10
FIRST = """
import sys, time
wall, processor = time.perf_counter(), time.process_time()
import spacy
spacy.load(sys.argv[1])(sys.argv[2])
print(time.perf_counter() - wall, time.process_time() - processor)
"""


@dataclass
class ShortTexts:
    """Annotates texts, each by itself."""

    name: str
    nlp: Language
    texts: list[str]

    def run(self) -> Timing:
        with stopwatch(len(self.texts)) as timings:
            for text in self.texts:
                self.nlp(text)
        return timings[0]


@dataclass
class FirstText:
    """Opens a pipeline in a new process and annotates one text."""

    name: str
    path: str
    text: str

    def run(self) -> Timing:
        command = [sys.executable, "-c", FIRST, self.path, self.text]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds, processor = map(float, printed.splitlines()[-1].split())
        return Timing(1, seconds, processor)


def main() -> None:
    options = script_parser(globals(), "DATA.spacy")
    options.add_argument("name", metavar="NAME", help="name of the record")
    options.add_argument("rows", nargs="+", metavar="[NAME=]MODEL")
    options.add_argument("--base", required=True, metavar="NAME", help="the row to compare with")
    options.add_argument("--texts", type=int, default=100, help="texts in a run (100)")
    options.add_argument("--repeats", type=int, default=7, help="runs of each row (7)")
    options.add_argument("--first", type=int, default=3, help="new processes of each row (3)")
    options.add_argument("--note", default="", help="remarks for the record")
    given = options.parse_args()
    pin_threads(1)
    paths = named_rows(given.rows)
    sentences = read_words(given.data, WORDS * given.texts)
    texts = [" ".join(words) for words in of_length(sentences, WORDS, WORDS * given.texts)]
    nlps = {name: load_pipeline(path) for name, path in paths.items()}
    sections = {
        "texts": timed([ShortTexts(name, nlp, texts) for name, nlp in nlps.items()], given.repeats),
        "first": timed([FirstText(n, path, texts[0]) for n, path in paths.items()], given.first),
    }
    rows = {name: {key: each[name] for key, each in sections.items()} for name in paths}
    ratios: dict[str, Any] = {
        name: {key: round(rate(rows[given.base][key]) / rate(row[key]), 3) for key in sections}
        for name, row in rows.items()
    }
    print(json.dumps(ratios, indent=2))
    results = {"words": WORDS, "rows": rows, "ratios": ratios}
    write_record(given.name, "speed", results, data=[given.data], note=given.note)


def rate(summary: dict[str, Any]) -> float:
    """The median rate of a row by processor time."""
    return float(summary["per_cpu_second"]["median"])


if __name__ == "__main__":
    main()
