"""What tests share: made-up sentences, small models, and pipelines trained on them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

MARKED = [
    "[Ada Lovelace|PER] met [Charles Babbage|PER] in [London|LOC] .",
    "The [Royal Society of Arts|ORG] moved to [Leeds|LOC] in 1854 .",
    "[Babbage|PER] wrote to [Mary Anne Evans|PER] .",
    "Nobody came .",
    "[Leeds|LOC] [London|LOC] and [Bath|LOC] are towns .",
    "[Evans|PER]",
    "[Acme|ORG] hired [Ada|PER] and left [Bath|LOC]",
    "He read about [Acme|ORG] and the [Royal Society of Arts|ORG] .",
]
Annotation = tuple[list[str], list[tuple[int, int, str]]]


def read_marked(line: str) -> Annotation:
    """Words, and entities as (start, end, label), of a line like "in [New York|LOC] ."."""
    words: list[str] = []
    entities = []
    for inside, label, plain in re.findall(r"\[(.+?)\|(\w+)\]|(\S+)", line):
        start = len(words)
        words += (inside or plain).split()
        if label:
            entities.append((start, len(words), label))
    return words, entities


def small_encoder(name: str = "PSABiLSTM", **options: Any) -> dict[str, Any]:
    """The config of an encoder of 16 units, without dropout."""
    dropouts = {
        "PSABiLSTM": ("lstm_input_dropout", "lstm_output_dropout", "attention_dropout"),
        "BiLSTM": ("input_dropout", "output_dropout"),
    }
    off = dict.fromkeys(dropouts[name], 0.0)
    return {"@architectures": f"spacy-psa.{name}.v1", "hidden": 8, **off, **options}


def small_model(
    head: str = "label_pair", encoder: dict[str, Any] | None = None, **tok2vec: Any
) -> dict[str, Any]:
    """The config of a small model; `tok2vec` overrides its embed block."""
    embed = {
        "@architectures": "spacy-psa.ConcatEmbed.v1",
        "*": {
            "words": {"@architectures": "spacy-psa.WordEmbed.v1", "width": 8, "rows": 100},
            "characters": {
                "@architectures": "spacy-psa.CharBiLSTM.v1",
                "width": 4,
                "hidden": 4,
                "rows": 60,
            },
        },
    }
    config: dict[str, Any] = {
        "tok2vec": {
            "@architectures": "spacy.Tok2Vec.v2",
            "embed": embed,
            "encode": encoder or small_encoder(),
            **tok2vec,
        }
    }
    if head == "softmax":
        return {"@architectures": "spacy-psa.Softmax.v1", **config}
    return {"@architectures": "spacy-psa.CRF.v1", "potentials": head, **config}


def hash_embed() -> dict[str, Any]:
    """The config of a small embedder of spaCy's own."""
    return {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 12,
        "attrs": ["NORM", "PREFIX", "SHAPE"],
        "rows": [100, 100, 100],
        "include_static_vectors": False,
    }


def make_nlp(model: dict[str, Any] | None = None, **settings: Any) -> Any:
    """A blank English pipeline with a small `crf_ner` named "ner"."""
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("crf_ner", name="ner", config={"model": model or small_model(), **settings})
    return nlp


def make_examples(nlp: Any, marked: Iterable[str] = MARKED) -> list[Any]:
    """Examples of marked lines, annotated as a corpus is."""
    from spacy.tokens import Doc, Span
    from spacy.training import Example

    examples = []
    for line in marked:
        words, entities = read_marked(line)
        reference = Doc(nlp.vocab, words=words)
        reference.set_ents([Span(reference, *entity) for entity in entities])
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    return examples


def entities(doc: Any) -> list[tuple[int, int, str]]:
    return [(ent.start, ent.end, ent.label_) for ent in doc.ents]


def train(nlp: Any, steps: int = 40, optimizer: Any = None, examples: Any = None) -> list[float]:
    """Initialize and train a pipeline with one seed; the loss of each step."""
    from spacy.util import fix_random_seed

    fix_random_seed(0)
    examples = examples or make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples, sgd=optimizer)
    history = []
    for _ in range(steps):
        losses = nlp.update(examples, sgd=optimizer)
        optimizer.step_schedules()
        history.append(sum(losses.values()))
    return history


def random_nlp(**model: Any) -> Any:
    """A pipeline with random weights that are large, so that no two scores are close."""
    import torch

    nlp = make_nlp(small_model(**model))
    train(nlp, steps=0)
    generator = torch.Generator().manual_seed(1)
    for node in nlp.get_pipe("ner").model.walk():
        for shim in node.shims:
            for parameter in shim.module.parameters():
                parameter.data.normal_(generator=generator)
    return nlp


def run_elsewhere(code: str, *arguments: object, timeout: float = 120, **environ: str) -> Any:
    """Run Python code in a new process and return what it prints, read as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environ},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


LOAD_AND_ANNOTATE = """
import json, sys
import spacy
path, *texts = sys.argv[1:]
assert "spacy_psa" not in sys.modules
nlp = spacy.load(path)
docs = list(nlp.pipe(texts))
blank = [nlp.make_doc(text) for text in texts]
print(json.dumps({
    "entities": [[[e.start, e.end, e.label_] for e in doc.ents] for doc in docs],
    "marginals": nlp.get_pipe("ner").distribution(blank).marginals.tolist(),
}))
"""


def annotate(nlp: Any, texts: list[str]) -> dict[str, Any]:
    """What `LOAD_AND_ANNOTATE` prints, from this process."""
    blank = [nlp.make_doc(text) for text in texts]
    return {
        "entities": [[list(e) for e in entities(doc)] for doc in nlp.pipe(texts)],
        "marginals": nlp.get_pipe("ner").distribution(blank).marginals.tolist(),
    }


class Tools:
    """The helpers above, for tests, which cannot import this file."""

    marked: ClassVar = MARKED
    texts: ClassVar = [" ".join(read_marked(line)[0]) for line in MARKED]
    load_and_annotate = LOAD_AND_ANNOTATE
    read_marked: Callable = staticmethod(read_marked)
    small_encoder: Callable = staticmethod(small_encoder)
    small_model: Callable = staticmethod(small_model)
    hash_embed: Callable = staticmethod(hash_embed)
    make_nlp: Callable = staticmethod(make_nlp)
    random_nlp: Callable = staticmethod(random_nlp)
    make_examples: Callable = staticmethod(make_examples)
    entities: Callable = staticmethod(entities)
    train: Callable = staticmethod(train)
    run_elsewhere: Callable = staticmethod(run_elsewhere)
    annotate: Callable = staticmethod(annotate)


@pytest.fixture(scope="session")
def tools() -> type[Tools]:
    return Tools


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def trained_bytes() -> bytes:
    """A pipeline that knows the sentences of `tools.marked`, serialised."""
    from thinc.api import Adam

    nlp = make_nlp()
    train(nlp, 50, Adam(0.02))
    return nlp.to_bytes()


@pytest.fixture
def trained(trained_bytes: bytes) -> Any:
    """A pipeline that knows the sentences of `tools.marked`, the test's own."""
    return make_nlp().from_bytes(trained_bytes)


@pytest.fixture(scope="session")
def trained_path(trained_bytes: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the trained pipeline; do not write to it."""
    path = tmp_path_factory.mktemp("trained") / "model"
    make_nlp().from_bytes(trained_bytes).to_disk(path)
    return path
