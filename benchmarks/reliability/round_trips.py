"""Convert the files of a treebank, write its trees in brackets, and read them again.

`psd=FOLDER ptb=FOLDER …` names the folders and the profile of the treebank family of each, see
`spacy_psa.corpora.treebanks`.

Results (kind "figures"): `treebanks`, {name of the folder: {`family`; `files`; `md5`, of all files
together; `trees`; `words`; `constituents`; `differing`, the number of trees that have other words,
tags or constituents when they are read again; `repairs`, what was left out or repaired, with
counts; `errors`, the files that are refused, with the reason}}.
"""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from spacy.vocab import Vocab

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.annotation.tree_writers import brackets
from spacy_psa.corpora.bracketing import AS_IS, read_trees
from spacy_psa.corpora.treebanks import OTHER_ENDINGS, read_docs, tree_docs
from spacy_psa.errors import InputError

KEY = "constituents"


def content(doc: Any) -> tuple[list[str], list[str], list[tuple[int, int, str]]]:
    """The words, tags and constituents of a tree."""
    spans = [(span.start, span.end, span.label_) for span in doc.spans[KEY]]
    return [token.text for token in doc], [token.tag_ for token in doc], spans


def measure(family: str, files: list[Path]) -> dict[str, Any]:
    """Read and write the trees of some files."""
    counts: Counter[str] = Counter()
    repairs: Counter[str] = Counter()
    errors, digest = {}, hashlib.md5()
    style = replace(AS_IS, spelled=True)
    for path in files:
        digest.update(path.read_bytes())
        vocab = Vocab()
        try:
            for doc in read_docs(family, path, vocab, repairs):
                counts.update(trees=1, words=len(doc), constituents=len(doc.spans[KEY]))
                rows = enumerate(brackets(doc, KEY), 1)
                parsed = [(None, tree) for _, tree in read_trees("again", rows, Counter(), style)]
                again = [content(each) for each in tree_docs(vocab, parsed, style)]
                counts["differing"] += again != [content(doc)]
        except InputError as error:
            errors[path.name] = str(error).replace(str(path), path.name)
    figures = {name: counts[name] for name in ("trees", "words", "constituents", "differing")}
    kinds = dict(repairs.most_common())
    origin = {"family": family, "files": len(files), "md5": digest.hexdigest()}
    return {**origin, **figures, "repairs": kinds, "errors": errors}


def main() -> None:
    options = script_parser(globals(), "OUT.json")
    options.add_argument("folders", nargs="+", metavar="FAMILY=FOLDER")
    given = options.parse_args()
    figures = {}
    for each in given.folders:
        family, _, folder = each.partition("=")
        files = sorted(path for path in Path(folder).rglob("*") if path.suffix in OTHER_ENDINGS[0])
        if not files:
            raise InputError(f"{folder} has no files of trees")
        figures[Path(folder).name] = measure(family, files)
        print(Path(folder).name, figures[Path(folder).name], flush=True)
    write_record(given.out, "reliability", {"treebanks": figures})


if __name__ == "__main__":
    main()
