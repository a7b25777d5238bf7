"""Made-up sentences with entities, and small pipelines that are trained on them."""

import re
from collections.abc import Iterable
from typing import Any

import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed

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


TEXTS = [" ".join(read_marked(line)[0]) for line in MARKED]


# Configs


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


# Pipelines


def make_nlp(model: dict[str, Any] | None = None, **settings: Any) -> Any:
    """A blank English pipeline with a small `crf_ner` named "ner"."""
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_ner", name="ner", config={"model": model or small_model(), **settings})
    return nlp


def make_examples(nlp: Any, marked: Iterable[str] = MARKED) -> list[Any]:
    """Examples of marked lines, annotated as a corpus is."""
    examples = []
    for line in marked:
        words, entities = read_marked(line)
        reference = Doc(nlp.vocab, words=words)
        reference.set_ents([Span(reference, *entity) for entity in entities])
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    return examples


def make_chunk_examples(nlp: Any, key: str = "chunks") -> list[Any]:
    """Examples of the marked lines whose entities are chunks too."""
    examples = make_examples(nlp)
    for example in examples:
        example.reference.spans[key] = list(example.reference.ents)
    return examples


def train(nlp: Any, steps: int = 40, optimizer: Any = None, examples: Any = None) -> list[float]:
    """Initialize and train a pipeline with one seed; the loss of each step."""
    fix_random_seed(0)
    examples = examples or make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples, sgd=optimizer)
    history = []
    for _ in range(steps):
        losses = nlp.update(examples, sgd=optimizer)
        optimizer.step_schedules()
        history.append(sum(losses.values()))
    return history


def summed_loss(nlp: Any, examples: list[Any]) -> tuple[float, list[Any]]:
    """The summed loss of the recognizer, and its gradient."""
    ner = nlp.get_pipe("ner")
    ner._reduction = "sum"
    scores = ner.model.predict([eg.predicted for eg in examples])
    loss, gradients = ner.get_loss(examples, scores)
    return loss, gradients


def parameters(pipe: Any) -> list[torch.nn.Parameter]:
    """The torch parameters of a component's model."""
    modules = [shim.module for node in pipe.model.walk() for shim in node.shims]
    return [parameter for module in modules for parameter in module.parameters()]


def randomize(pipe: Any, seed: int = 1) -> None:
    """Give a component random weights that are large, so that no two scores are close."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in parameters(pipe):
        parameter.data.normal_(generator=generator)


def random_nlp(settings: dict[str, Any] | None = None, **model: Any) -> Any:
    """A pipeline with large random weights."""
    nlp = make_nlp(small_model(**model), **(settings or {}))
    train(nlp, steps=0)
    randomize(nlp.get_pipe("ner"))
    return nlp


# Documents


def spans_of(spans: Iterable[Span]) -> list[tuple[int, int, str]]:
    """Spans as (start, end, label)."""
    return [(span.start, span.end, span.label_) for span in spans]


def entities(doc: Doc) -> list[tuple[int, int, str]]:
    return spans_of(doc.ents)


def scored(doc: Doc, key: str = "ner") -> dict[tuple[int, int, str], float]:
    """The spans of a group with their scores."""
    group = doc.spans[key]
    return dict(zip(spans_of(group), group.attrs["scores"], strict=True))


def text_docs(nlp: Any, texts: Iterable[str]) -> list[Doc]:
    """A doc of each text, cut at blanks."""
    return [Doc(nlp.vocab, words=text.split()) for text in texts]


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
