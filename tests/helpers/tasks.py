"""Made-up sentences with tags, chunks and entities, for the components of all three tasks."""

from typing import Any

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed

SENTENCES = [
    ("Ann saw the old dog", "NNP VBD DT JJ NN", [(0, 1, "NP"), (1, 2, "VP"), (2, 5, "NP")]),
    ("dogs bark", "NNS VBP", [(0, 1, "NP"), (1, 2, "VP")]),
    ("the cat sleeps in Bath", "DT NN VBZ IN NNP",
     [(0, 2, "NP"), (2, 3, "VP"), (3, 4, "PP"), (4, 5, "NP")]),
    ("Run !", "VB .", [(0, 1, "VP")]),
]  # fmt: skip


def task_doc(vocab: Any, text: str, tags: str, chunks: list[tuple[int, int, str]]) -> Doc:
    """A doc with all three layers; Ann and Bath are its entities."""
    doc = Doc(vocab, words=text.split(), tags=tags.split())
    doc.spans["chunks"] = [Span(doc, *chunk) for chunk in chunks]
    doc.ents = [Span(doc, t.i, t.i + 1, "NAME") for t in doc if t.text in ("Ann", "Bath")]
    return doc


def task_model(head: str = "transition") -> dict[str, Any]:
    """The config of a small model of words alone, 24 units wide."""
    embed = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 12, "rows": 100}
    off = {"input_dropout": 0.0, "output_dropout": 0.0}
    encode = {"@architectures": "spacy-psa.BiLSTM.v1", "hidden": 12, **off}
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    if head == "softmax":
        return {"@architectures": "spacy-psa.Softmax.v1", "tok2vec": tok2vec}
    if head == "spans":
        scorer = {"@architectures": "spacy-psa.SpanScorer.v1", "hidden": 12, "dropout": 0.0}
        return {**scorer, "tok2vec": tok2vec}
    return {"@architectures": "spacy-psa.CRF.v1", "potentials": head, "tok2vec": tok2vec}


def make_task_nlp(factory: str, head: str = "transition", **settings: Any) -> Any:
    """A blank English pipeline with one component, under the name of its factory."""
    nlp = spacy.blank("en")
    nlp.add_pipe(factory, config={"model": task_model(head), **settings})
    return nlp


def task_examples(nlp: Any) -> list[Example]:
    return [
        Example(Doc(nlp.vocab, words=text.split()), task_doc(nlp.vocab, text, tags, chunks))
        for text, tags, chunks in SENTENCES
    ]


def train_tasks(nlp: Any, steps: int = 60) -> list[Example]:
    """Initialize and train with one seed; the examples."""
    examples = task_examples(nlp)
    fix_random_seed(0)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)
    return examples
