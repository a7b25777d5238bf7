"""GUM, the Georgetown University Multilayer corpus (Zeldes, 2017), and GENTLE, a second test set.

A folder or archive has `dep/*.conllu` with parts of speech and nested entities, `const/*.ptb` with
trees, and `splits.md` with the documents of each part. The words of the documents of Reddit are
blanked out, as their text is not free.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Literal

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.archives import open_files
from spacy_psa.corpora.bracketing import PENN, bare, read_trees
from spacy_psa.corpora.chunks import chunks
from spacy_psa.corpora.conllu import Sentence, read_sentences, sentence_doc
from spacy_psa.corpora.lines import decode_lines
from spacy_psa.corpora.trees import Parsed
from spacy_psa.errors import InputError

Part = Literal["train", "dev", "test", "test2"]
SPLITS = "splits.md"
ENDINGS = {"dep": ".conllu", "const": ".ptb"}
"""The folders of the layers, and the endings of their files."""
STYLE = replace(PENN, labels="functions", merge_same=False)
_PART = re.compile(r"##\s*(\w+)")
_DOCUMENT = re.compile(r"\s*\*\s*(\w+)")


def read_splits(source: Path) -> dict[str, list[str]]:
    """Read the names of the documents of each part."""
    parts: dict[str, list[str]] = {}
    names: list[str] = []
    for name, lines in open_files(source, lambda path: PurePosixPath(path).name == SPLITS, SPLITS):
        for _, text in decode_lines(name, lines, Counter()):
            if part := _PART.match(text):
                names = parts.setdefault(part[1], [])
            elif document := _DOCUMENT.match(text):
                names.append(document[1])
    if not any(parts.values()):
        raise InputError(f"{source}: {SPLITS} lists no documents; get the corpus again")
    return parts


def file_names(folder: Path) -> list[str]:
    """List the files of all documents in `splits.md`."""
    documents = {document for part in read_splits(folder).values() for document in part}
    return [f"{layer}/{name}{end}" for layer, end in ENDINGS.items() for name in sorted(documents)]


def read_docs(
    source: Path, vocab: Vocab, part: Part, repairs: Counter[str] | None = None
) -> Iterator[Doc]:
    """Yield one `Doc` for each sentence of a part, in the order of the documents in `splits.md`.

    Parts of speech, nested and outer entities are as in `sentence_doc`. Constituents without
    functions are in `doc.spans["constituents"]`, and the chunks that follow from the trees in
    `doc.spans["chunks"]`. The document and its genre are in `doc.user_data["document"]` and
    `["genre"]`. The part test2 is GENTLE. `repairs` also names the documents that are left out.
    """
    counts: Counter[str] = Counter() if repairs is None else repairs
    documents = read_splits(source).get(part, [])
    sentences, trees = _read_files(source, frozenset(documents), counts)
    blanked: list[str] = []
    for document in documents:
        if document not in sentences or document not in trees:
            folder = "const" if document in sentences else "dep"
            raise InputError(
                f"{source}: there is no {folder}/{document}{ENDINGS[folder]}; get the corpus again"
            )
        if all(sentence.is_blanked for sentence in sentences[document]):
            blanked.append(document)
            continue
        if [s.words for s in sentences[document]] != [tree.words for tree in trees[document]]:
            raise InputError(
                f"{source}: dep/{document}.conllu and const/{document}.ptb have different words; "
                "use one version of the corpus"
            )
        genre = document.split("_")[1] if "_" in document else ""  # news of GUM_news_nasa
        for sentence, tree in zip(sentences[document], trees[document]):
            spans = [(start, end, bare(label)) for start, end, label in tree.constituents]
            without_repeats = [span for span, _ in groupby(spans)]
            doc = sentence_doc(vocab, sentence, constituents=without_repeats, chunks=chunks(tree))
            doc.user_data.update(document=document, genre=genre)
            yield doc
    if blanked:
        what = f"document(s) whose words are blanked out, left out ({', '.join(blanked)})"
        counts[what] = len(blanked)


def _read_files(
    source: Path, documents: Collection[str], repairs: Counter[str]
) -> tuple[dict[str, list[Sentence]], dict[str, list[Parsed]]]:
    """Read the sentences and the trees of documents; in an archive they are in any order."""
    sentences: dict[str, list[Sentence]] = {}
    trees: dict[str, list[Parsed]] = {}

    def wanted(path: str) -> bool:
        file = PurePosixPath(path)
        return file.stem in documents and ENDINGS.get(file.parent.name) == file.suffix

    for name, stream in open_files(source, wanted, "files of the part"):
        lines = decode_lines(name, stream, repairs)
        document = PurePosixPath(name).stem
        if name.endswith(ENDINGS["dep"]):
            sentences[document] = list(read_sentences(name, lines, repairs))
        else:
            read = read_trees(name, lines, repairs, STYLE)
            trees[document] = [parsed for _, parsed in read]
    return sentences, trees
