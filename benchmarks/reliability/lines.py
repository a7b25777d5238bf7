"""Read files with one line of up to 1 MB through each reader, and note how the time grows.

Results (kind "figures"): `readers` {FILE: {BYTES: seconds of processor time}}. Files are read by
`init corpus`, or by the command below `convert` that comes first in the name. A file of columns has
one long word, others many words or marks; a deep tree has one word.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.conversion import FORMATS, Conversion, convert_glove
from spacy_psa.corpora.own_corpus import read_own_file

SIZES = (250_000, 500_000, 1_000_000)
TSV = "#T_SP=a.NamedEntity|identifier|value\n\n\n#Text=x\n"
CAS = 'xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore"'


def record(**keys: Any) -> str:
    return json.dumps(keys)


def marks(n: int) -> list[list[Any]]:
    """Marks on each word of a text of `n` times Ada."""
    return [[4 * i, 4 * i + 3, "X"] for i in range(n)]


def regions(n: int, last: int = 0) -> list[dict[str, Any]]:
    return [{"start": s, "end": e - last, "labels": ["X"], "text": "Ada"} for s, e, _ in marks(n)]


def export(n: int) -> str:
    return f"#BOS 1\n{'a' * n}\tNE\t--\tSB\t500\n#500\tS\t--\t--\t0\n#EOS 1"


LINES: dict[str, Callable[[int], str]] = {
    "spaCy.jsonl": lambda n: record(text="Ada " * (n // 4), ents=[]),
    "Prodigy.jsonl": lambda n: record(text="Ada " * (n // 4), answer="accept", spans=[]),
    "doccano.jsonl": lambda n: record(text="Ada " * (n // 30), label=marks(n // 30)),
    "Label Studio.json": lambda n: record(
        text="Ada " * (n // 70), ner=regions(n // 70), annotation_id=1
    ),
    "Dataturks.json": lambda n: record(
        content="Ada " * (n // 90),
        annotation=[{"label": ["X"], "points": [each]} for each in regions(n // 90, last=1)],
    ),
    "GLiNER.json": lambda n: record(
        tokenized_text=["Ada"] * (n // 25), ner=[[i, i, "X"] for i in range(n // 25)]
    ),
    "tokens.jsonl": lambda n: record(tokens=["Ada"] * (n // 12), ner_tags=["O"] * (n // 12)),
    "brat.txt": lambda n: "Ada " * (n // 4),
    "UIMA.xmi": lambda n: (
        f'<xmi:XMI {CAS}><cas:Sofa xmi:id="1" sofaString="{"Ada " * (n // 4)}"/></xmi:XMI>'
    ),
    "columns.tsv": lambda n: f"{'a' * n}\tB-PER\n",
    "table.csv": lambda n: f"word,tag{',c' * (n // 50)}\nAda,B-PER{(',' + 'c' * 49) * (n // 50)}\n",
    "bars.iob": lambda n: "Ada|NNP|B-PER " * (n // 14),
    "words.conllu": lambda n: f"1\t{'a' * n}\t_\tX\tNN\t_\t0\troot\t_\tner=B-PER\n",
    "WebAnno.tsv": lambda n: f"#FORMAT=WebAnno TSV 3.2\n{TSV}1-1\t0-{n}\t{'a' * n}\t*\tPER\t\n",
    "conll2003": lambda n: f"{'a' * n} NNP B-NP B-PER\n",
    "cleanconll": lambda n: f"{'a' * n}\tNNP\tO\tB-PER\tB-PER\n",
    "conll2000": lambda n: f"{'a' * n} NN B-NP\n",
    "ontonotes": lambda n: (
        "#begin document (a/wsj_0203); part 000\n"
        f"a/wsj_0203 0 0 {'a' * n} NNP (TOP(NP*)) - - - - (GPE) -\n\n#end document"
    ),
    "sample": lambda n: record(
        words=["a"] * (n // 27),
        spaces=[True] * (n // 27),
        tags=["X"] * (n // 27),
        chunks=[],
        ents=[],
        tree=f"(S {'(X a) ' * (n // 27)})",
    ),
    "ptb tree": lambda n: f"(S {'(NP (NN Ada))' * (n // 13)})",
    "ptb deep tree": lambda n: f"{'(S ' * (n // 4)}(NN Ada){')' * (n // 4)}",
    "ptb word": lambda n: f"(S (NN {'a' * n}))",
    "brackets tree": lambda n: f"(S {'(NP (NN Ada))' * (n // 13)})",
    "psd tree": lambda n: f"( (IP {'(NP (NN Ada))' * (n // 13)}) (ID 1))",
    "spmrl tree": lambda n: f"(S {'(NP (NN##_## Ada))' * (n // 18)})",
    "ctb tree": lambda n: f"( (IP {'(NP (NN Ada))' * (n // 13)}))",
    "export": export,
    "glove": lambda n: "Ada" + " 0.5" * (n // 4),
}
"""Makes a line of about so many bytes, by the name of its file."""


def read(path: Path, name: str, text: str) -> None:
    """Read a file, which must have something."""
    form = name.split()[0]
    if form == "glove":
        convert_glove(path, path.with_suffix(".out"), text.count(" "), watch=lambda items, _: items)
    elif form in FORMATS:
        assert list(FORMATS[form](Conversion(path, spacy.blank("en").vocab)))
    else:
        assert read_own_file(path, spacy.blank("en"))[0]


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    given = options.parse_args()
    readers: dict[str, dict[str, float]] = {}
    for name, make in LINES.items():
        for size in (1000, *SIZES):  # the first reads it once without taking the time
            with TemporaryDirectory() as folder:
                path = Path(folder) / (name if "." in name else f"{name.replace(' ', '_')}.txt")
                text = make(size)
                path.write_text(text + "\n", encoding="utf8")
                if name == "brat.txt":
                    path.with_suffix(".ann").write_text("T1\tPER 0 3\tAda\n")
                start = time.process_time()
                read(path, name, text)
                if size in SIZES:
                    seconds = round(time.process_time() - start, 3)
                    readers.setdefault(name, {})[str(size)] = seconds
        print(name, readers[name], flush=True)
    write_record(given.out, "reliability", {"readers": readers})


if __name__ == "__main__":
    main()
