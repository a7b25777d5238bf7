"""Stand-ins for what the pages take for granted: small models, corpora and texts."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TEXTS = [
    "Ingrid Bush left Reading for the Bank of Kenya.",
    "Orange Rovers drew against Leeds in May.",
    "May and Hunt met You and I in Nice.",
]
SMALL = {
    "@architectures": "spacy.Tok2Vec.v2",
    "embed": {
        "@architectures": "spacy-psa.ConcatEmbed.v1",
        "*": {
            "words": {"@architectures": "spacy-psa.WordEmbed.v1", "width": 24, "rows": 5000},
            "characters": {
                "@architectures": "spacy-psa.CharBiLSTM.v1",
                "width": 8,
                "hidden": 8,
            },
        },
    },
    "encode": {
        "@architectures": "spacy-psa.BiLSTM.v1",
        "hidden": 24,
        "input_dropout": 0.0,
        "output_dropout": 0.0,
    },
}


class StandIns:
    """Makes each kind of stand-in once and copies it where a page wants it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, Path] = {}

    def put(self, kind: str, path: Path) -> None:
        """Put a stand-in of a kind at a path."""
        source = self._get(kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        copy: Callable[..., Any] = shutil.copytree if source.is_dir() else shutil.copyfile
        copy(source, path)

    def _get(self, kind: str) -> Path:
        if kind not in self.made:
            path = self.folder / kind
            getattr(self, f"_make_{kind}")(path)
            self.made[kind] = path
        return self.made[kind]

    def _make_texts(self, path: Path) -> None:
        path.write_text("\n".join(TEXTS) + "\n", encoding="utf8")

    def _make_train(self, path: Path) -> None:
        self._convert("train", path, 120)

    def _make_dev(self, path: Path) -> None:
        self._convert("dev", path, 60)

    def _make_test(self, path: Path) -> None:
        self._convert("test", path, 60)

    def _convert(self, part: str, path: Path, count: int) -> None:
        """The first sentences of a part of the sample corpus."""
        import spacy
        from spacy.tokens import DocBin

        from spacy_psa.corpora.jsonl import read_docs

        docs = read_docs(ROOT / "assets/sample" / f"{part}.jsonl", spacy.blank("en").vocab)
        found = DocBin(docs=[doc for doc, _ in zip(docs, range(count))])
        path.write_bytes(found.to_bytes())

    def _make_ner(self, path: Path) -> None:
        self._train(path, "ner", "crf_ner")

    def _make_threshold(self, path: Path) -> None:
        self._train(path, "ner", "crf_ner", decode="threshold")

    def _make_tagger(self, path: Path) -> None:
        self._train(path, "tagger", "crf_tagger")

    def _make_chunker(self, path: Path) -> None:
        self._train(path, "chunker", "crf_chunker")

    def _make_parser(self, path: Path) -> None:
        model = {"@architectures": "spacy-psa.ChartParser.v1", "hidden": 16, "tok2vec": SMALL}
        settings = {"loss": "log_likelihood", "confidence": True, "model": model}
        self._train(path, "parser", "constituency_parser", **settings)

    def _train(self, path: Path, name: str, factory: str, **settings: Any) -> None:
        import spacy
        from spacy.tokens import DocBin
        from spacy.training import Example
        from spacy.util import fix_random_seed, minibatch

        fix_random_seed(0)
        nlp = spacy.blank("en")
        model = {"@architectures": "spacy-psa.CRF.v1", "potentials": "transition", "tok2vec": SMALL}
        nlp.add_pipe(factory, name=name, config={"model": model, **settings})
        docs = DocBin().from_disk(self._get("train")).get_docs(nlp.vocab)
        examples = [Example(nlp.make_doc(doc.text), doc) for doc in docs]
        examples = [eg for eg in examples if [t.text for t in eg.x] == [t.text for t in eg.y]]
        optimizer = nlp.initialize(lambda: examples)
        optimizer.learn_rate = 0.01
        for _ in range(3):
            for batch in minibatch(examples, 10):
                nlp.update(batch, sgd=optimizer)
        nlp.to_disk(path)


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> StandIns:
    """Maker of stand-ins."""
    return StandIns(tmp_path_factory.mktemp("stand_ins"))


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the repository's, to run the commands of a page in."""
    for name in ("configs", "assets", "benchmarks", "project.yml", "constraints.txt"):
        os.symlink(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
