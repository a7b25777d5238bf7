"""Small pipelines of all components, with random weights."""

from typing import Any

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed

from tests.helpers.embedders import LISTENER, block
from tests.helpers.parsers import chart_model
from tests.helpers.pipelines import randomize, small_encoder, small_model
from tests.helpers.trees import BRACKETS, tree_doc

NAMES = ("tagger", "ner", "chunker", "parser")
FACTORIES = {f"crf_{name}": name for name in NAMES[:3]} | {"constituency_parser": "parser"}


def _embed(*names: str) -> dict[str, Any]:
    words = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 8, "rows": 100}
    blocks = {name.lower(): block(name) for name in names}
    return {"@architectures": "spacy-psa.ConcatEmbed.v1", "*": {"words": words, **blocks}}


def models(listening: bool) -> dict[str, dict[str, Any]]:
    """The config of a small model of each component.

    No two embed alike; if they are to listen, the chunker has an encoder over its listener.
    """
    if listening:
        chain = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": LISTENER}
        over = {"@architectures": "spacy.Tok2Vec.v2", "embed": LISTENER}
        encoded = {**over, "encode": small_encoder("BiLSTM")}
        parser = {**chart_model(), "tok2vec": LISTENER}
        return {
            "tagger": chain, "ner": chain, "chunker": {**chain, "tok2vec": encoded},
            "parser": parser,
        }  # fmt: skip
    plain = small_encoder("BiLSTM")
    return {
        "tagger": small_model("softmax", plain, embed=_embed("CharCNN", "WordShape")),
        "ner": small_model(embed=_embed("CharBiLSTM", "TagEmbed")),
        "chunker": small_model("transition", plain, embed=_embed("CharNgramCNN", "CharConcat")),
        "parser": chart_model("FactoredTransformer", tag_hidden=8, embed=_embed("CharAdaTrans")),
    }


def examples_of(nlp: Any) -> list[Example]:
    """Trees, each with entities and chunks."""
    found = []
    for text in BRACKETS:
        gold = tree_doc(nlp.vocab, text)
        gold.set_ents(
            [Span(gold, 0, 1, "PER"), Span(gold, len(gold) - 1, len(gold), "LOC")][: len(gold)]
        )
        gold.spans["chunks"] = [Span(gold, 0, 1, "NP")]
        found.append(Example(Doc(nlp.vocab, words=[t.text for t in gold]), gold))
    return found


def make_whole(listening: bool = False) -> Any:
    """A pipeline of all components; they share one tok2vec if they are to listen."""
    nlp = spacy.blank("en")
    if listening:
        encode = small_encoder("BiLSTM")
        shared = {
            "@architectures": "spacy.Tok2Vec.v2",
            "embed": _embed("CharCNN"),
            "encode": encode,
        }
        nlp.add_pipe("tok2vec", config={"model": shared})
    for factory, name in FACTORIES.items():
        config = {"model": models(listening)[name], "confidence": True}
        if name == "parser":
            config["overwrite"] = True  # odd docs have constituents that cross each other
        nlp.add_pipe(factory, name=name, config=config)
    fix_random_seed(0)
    examples = examples_of(nlp)
    nlp.initialize(lambda: examples)
    for _, pipe in nlp.pipeline:
        randomize(pipe)
    return nlp
