"""Stand-ins for the models, corpora and texts that the pages need."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy
import pytest
import spacy
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import fix_random_seed, minibatch
from spacy.vectors import Vectors

from spacy_psa.corpora.jsonl import read_docs
from tests.helpers.decided import decide_all, small_store
from tests.helpers.encoders import write_encoder
from tests.helpers.paths import SAMPLE
from tests.helpers.pipelines import TEXTS as MARKED_TEXTS

TEXTS = [
    "Ingrid Bush left Reading for the Bank of Kenya.",
    "Orange Rovers drew against Leeds in May.",
    "May and Hunt met You and I in Nice.",
]
TREES = "(S (NP (NNP Ada)) (VP (VBD left)))\n"
FILES = {
    "texts": "\n".join(TEXTS) + "\n",
    "records": "".join(json.dumps({"text": text}) + "\n" for text in TEXTS),
    "patterns": '{"label": "LOC", "pattern": "Reading"}\n',
    "tagged": "Ada NNP\nleft VBD\n\n",
    "conll": "-DOCSTART- -X- -X- O\n\nAda NNP I-NP I-PER\nleft VBD I-VP O\n\n",
    "trees": TREES,
    "mrg": f"( {TREES})\n",
    "spmrl": "( (VROOT (S (NP (NN##case=nom## Haus)) (VVFIN##_## steht)) ($.##_## .)) )\n",
    "ctb": "<DOC>\n<BODY>\n<S ID=1>\n( (IP (NP (NN 人)) (VP (VV 来))) )\n</S>\n</BODY>\n</DOC>\n",
    "export": "#FORMAT 3\n#BOS 1 0 0 1\nHund\tNN\tNom\tNK\t500\n#500\tNP\t--\t--\t0\n#EOS 1\n",
    "psd": "( (IP-MAT (NP-SBJ (PRO hann-hann)) (VBDI kom-koma)) (ID 1270.X,.1))\n",
    "log": "".join(
        json.dumps({"epoch": i, "step": i, "score": 0.5, "scores": {"ents_f": 50.0}, "losses": {}})
        + "\n"
        for i in (1, 2)
    ),
}
NESTED = {"sc": [{"start": s, "end": 18, "label": name} for s, name in ((0, "ORG"), (14, "LOC"))]}
OWN = {
    "own": ("txt", "Ada B-PER\nleft O\nLondon B-LOC\n. O\n\n" * 4),
    "nested": ("jsonl", json.dumps({"text": "University of Oslo", "spans": NESTED}) + "\n"),
}
"""The endings and the content of own files."""
SMALL = {
    "@architectures": "spacy.Tok2Vec.v2",
    "embed": {
        "@architectures": "spacy-psa.ConcatEmbed.v1",
        "*": {
            "words": {"@architectures": "spacy-psa.WordEmbed.v1", "width": 24, "rows": 5000},
            "characters": {"@architectures": "spacy-psa.CharBiLSTM.v1", "width": 8, "hidden": 8},
        },
    },
    "encode": {
        "@architectures": "spacy-psa.BiLSTM.v1",
        "hidden": 24,
        "input_dropout": 0.0,
        "output_dropout": 0.0,
    },
}


def labeler(encoder: str = "", **settings: Any) -> dict[str, Any]:
    """The model of `SMALL`, or with another encoder of 24 units."""
    encode = {"@architectures": f"spacy-psa.{encoder}.v1", "hidden": 24, **settings}
    tok2vec = {**SMALL, "encode": encode} if encoder else SMALL
    return {"@architectures": "spacy-psa.CRF.v1", "potentials": "transition", "tok2vec": tok2vec}


COUNTS = {"train": 120, "dev": 60, "test": 60}
COMPONENTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ner": ("ner", "crf_ner", {"model": labeler()}),
    "threshold": ("ner", "crf_ner", {"model": labeler(), "decode": "threshold"}),
    "psa": ("ner", "crf_ner", {"model": labeler("PSABiLSTM")}),
    "self_attentive": ("ner", "crf_ner", {"model": labeler("SelfAttentiveBiLSTM", heads=2)}),
    "parser": (
        "parser",
        "constituency_parser",
        {
            "loss": "log_likelihood",
            "confidence": True,
            "model": {"@architectures": "spacy-psa.ChartParser.v1", "hidden": 16, "tok2vec": SMALL},
        },
    ),
}
UNTRAINED = {"psa", "self_attentive"}


class StandIns:
    """Makes each kind of stand-in once and copies it to the paths of a page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, kind: str, path: Path) -> None:
        """Put a stand-in of a kind at a path."""
        source = self._made(kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        copy: Callable[..., Any] = shutil.copytree if source.is_dir() else shutil.copyfile
        copy(source, path, **({"dirs_exist_ok": True} if source.is_dir() else {}))

    def _made(self, kind: str) -> Path:
        path = self.folder / kind
        if path.exists():
            return path
        if kind in FILES:
            path.write_text(FILES[kind], encoding="utf8")
        elif kind in OWN:
            path.mkdir()
            for part in ("train", "dev"):
                (path / f"{part}.{OWN[kind][0]}").write_text(OWN[kind][1], encoding="utf8")
        elif kind == "vectors":
            nlp = spacy.blank("en")
            nlp.vocab.vectors = Vectors(data=numpy.ones((2, 100), "f"), keys=["Ada", "London"])
            nlp.to_disk(path)
        elif kind == "glove":
            with ZipFile(path, "w") as archive:
                archive.writestr("glove.6B.100d.txt", f"london{' 0.1' * 100}\n")
        elif kind == "encoder":
            write_encoder(path, "mpnet", hidden_size=768)
        elif kind == "decided":
            with small_store(path, MARKED_TEXTS) as store:
                decide_all(store)
        elif kind in COUNTS:
            sample = read_docs(SAMPLE / f"{kind}.jsonl", spacy.blank("en").vocab)
            docs = [doc for doc, _ in zip(sample, range(COUNTS[kind]))]
            path.write_bytes(DocBin(docs=docs).to_bytes())
        else:
            self._train(path, *COMPONENTS[kind], passes=0 if kind in UNTRAINED else 3)
        return path

    def _train(
        self, path: Path, name: str, factory: str, settings: dict[str, Any], passes: int
    ) -> None:
        fix_random_seed(0)
        nlp = spacy.blank("en")
        nlp.add_pipe(factory, name=name, config=settings)
        docs = DocBin().from_disk(self._made("train")).get_docs(nlp.vocab)
        examples = [Example(nlp.make_doc(doc.text), doc) for doc in docs]
        examples = [eg for eg in examples if [t.text for t in eg.x] == [t.text for t in eg.y]]
        optimizer = nlp.initialize(lambda: examples)
        optimizer.learn_rate = 0.01
        for batch in (batch for _ in range(passes) for batch in minibatch(examples, 10)):
            nlp.update(batch, sgd=optimizer)
        nlp.to_disk(path)


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> StandIns:
    """Maker of stand-ins."""
    return StandIns(tmp_path_factory.mktemp("stand_ins"))


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, to run the commands of a page in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
