"""Make the saved pipeline that tests/saved/test_saved.py loads.

usage: python tests/saved/make.py OUT.zip

The pipeline has one small component for each architecture, trained for a few steps, with
what it says of three texts: the spans, tags or trees that it predicts, and its marginals.
The archive of a version stays as it is; a later version adds one of its own.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy
import spacy
import srsly
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.util import fix_random_seed

WORDS = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 8, "rows": 60}
ENCODERS = {
    "bilstm": {"@architectures": "spacy-psa.BiLSTM.v1", "hidden": 6, "layers": 2, "separate": True},
    "cross": {"@architectures": "spacy-psa.CrossBiLSTM.v1", "hidden": 6},
    "self_attentive": {
        "@architectures": "spacy-psa.SelfAttentiveBiLSTM.v1",
        "hidden": 6,
        "heads": 3,
    },
    "psa": {"@architectures": "spacy-psa.PSABiLSTM.v1", "hidden": 6},
    "psa_arxiv": {"@architectures": "spacy-psa.PSABiLSTM.v1", "hidden": 6, "version": "arxiv"},
    "psa_alone": {
        "@architectures": "spacy-psa.PSABiLSTM.v1",
        "middle": "none",
        "position": "absolute",
        "width": 8,
    },
    "psa_transformer": {
        "@architectures": "spacy-psa.PSATransformer.v1",
        "heads": 2,
        "head_width": 4,
        "feedforward": 12,
    },
    "tener": {
        "@architectures": "spacy-psa.TENER.v1",
        "heads": 2,
        "head_width": 4,
        "key_projection": True,
        "layers": 1,
    },
    "transformer": {
        "@architectures": "spacy-psa.Transformer.v1",
        "heads": 2,
        "head_width": 4,
        "feedforward": 12,
    },
    "idcnn": {"@architectures": "spacy-psa.IDCNN.v1", "kernels": 8},
}
EMBEDDERS = {
    "char_bilstm": {
        "@architectures": "spacy-psa.CharBiLSTM.v1",
        "width": 4,
        "hidden": 4,
        "rows": 60,
    },
    "char_cnn": {
        "@architectures": "spacy-psa.CharCNN.v1",
        "width": 4,
        "kernels": 5,
        "project": 6,
        "rows": 60,
    },
    "char_transformer": {
        "@architectures": "spacy-psa.CharTransformer.v1",
        "width": 6,
        "inner": 8,
        "project": 6,
        "rows": 60,
    },
    "char_adatrans": {
        "@architectures": "spacy-psa.CharAdaTrans.v1",
        "width": 6,
        "inner": 8,
        "project": 6,
        "rows": 60,
    },
    "char_ngrams": {
        "@architectures": "spacy-psa.CharNgramCNN.v1",
        "width": 4,
        "kernels": 3,
        "max_characters": 9,
    },
    "letters": {
        "@architectures": "spacy-psa.CharConcat.v1",
        "letters": 2,
        "width": 3,
        "rows": 60,
        "spread": 0.5,
    },
    "shape": {"@architectures": "spacy-psa.WordShape.v1"},
    "tags": {"@architectures": "spacy-psa.TagEmbed.v1", "width": 4, "rows": 20},
    "dropped": {
        "@architectures": "spacy-psa.SumEmbed.v1",
        "*": {
            "words": {
                "@architectures": "spacy-psa.SentenceDropout.v1",
                "layer": {**WORDS, "replace_rare": True, "spread": 0.3, "pretrained": False},
            }
        },
    },
    "frozen": {**WORDS, "trainable": False},
}
SMALL = ENCODERS["bilstm"]
TEXTS = [
    "Ada Lovelace met Charles Babbage in London .",
    "The Royal Society of Arts moved to Leeds in 1854 .",
    "Nobody came .",
    "Babbage wrote to Mary Anne Evans . Leeds and Bath are towns .",
]
SPANS = [
    [(0, 2, "PER"), (3, 5, "PER"), (6, 7, "LOC")],
    [(1, 5, "ORG"), (7, 8, "LOC")],
    [],
    [(0, 1, "PER"), (3, 6, "PER"), (7, 8, "LOC"), (9, 10, "LOC")],
]
TREES = [
    [(0, 8, "S"), (0, 2, "NP"), (2, 7, "VP"), (3, 5, "NP"), (5, 7, "PP"), (6, 7, "NP")],
    [(0, 11, "S"), (0, 5, "NP"), (5, 10, "VP"), (6, 8, "PP"), (8, 10, "PP")],
    [(0, 3, "S"), (0, 1, "NP"), (1, 2, "VP")],
    [(0, 7, "S"), (1, 6, "VP"), (2, 6, "PP"), (3, 6, "NP"), (7, 12, "S"), (10, 11, "VP")],
]


def tok2vec(encode, embed=WORDS):
    return {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}


def crf(encode, embed=WORDS, potentials="transition"):
    head = {"@architectures": "spacy-psa.CRF.v1", "potentials": potentials}
    return {**head, "tok2vec": tok2vec(encode, embed)}


def components():
    """Name, factory and settings of each component."""
    common = {"confidence": True, "overwrite": True}
    for name, encode in ENCODERS.items():
        yield f"ner_{name}", "crf_ner", {"model": crf(encode), **common}
    embed = {"@architectures": "spacy-psa.ConcatEmbed.v1", "*": {"words": WORDS, **EMBEDDERS}}
    wide = {**SMALL, "hidden": 4, "layers": 1, "separate": False}
    yield "ner_embedders", "crf_ner", {"model": crf(wide, embed, "label_pair"), **common}
    softmax = {"@architectures": "spacy-psa.Softmax.v1", "tok2vec": tok2vec(SMALL)}
    yield "ner_softmax", "crf_ner", {"model": softmax, "scheme": "BIO", **common}
    yield "tags", "crf_tagger", {"model": crf(SMALL), **common}
    yield "chunks", "crf_chunker", {"model": crf(SMALL), "decode": "mbr", "overwrite": True}
    factored = {
        "@architectures": "spacy-psa.FactoredTransformer.v1",
        "width": 12,
        "heads": 2,
        "head_width": 4,
        "layers": 2,
        "feedforward": 8,
        "max_length": 20,
        "boundaries": True,
    }
    chart = {"@architectures": "spacy-psa.ChartParser.v1", "hidden": 6, "tag_hidden": 5}
    parser = {**chart, "tok2vec": tok2vec(factored)}
    yield "parser", "constituency_parser", {"model": parser, "confidence": True}


def make_docs(nlp):
    docs = []
    for text, spans, tree in zip(TEXTS, SPANS, TREES):
        words = text.split()
        doc = Doc(nlp.vocab, words=words, tags=[word[-1].upper() for word in words])
        for i, token in enumerate(doc):
            token.is_sent_start = i == 0 or words[i - 1] == "."
        doc.set_ents([Span(doc, *span) for span in spans])
        doc.spans["chunks"] = [Span(doc, *span) for span in spans]
        spans = [Span(doc, *constituent) for constituent in tree]
        doc.spans["constituents"] = SpanGroup(doc, name="constituents", spans=spans)
        docs.append(doc)
    return docs


def make_pipeline():
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    words = sorted({word.lower() for text in TEXTS for word in text.split()})[::2]
    rows = numpy.random.RandomState(0).uniform(-1, 1, (len(words), 8)).astype("float32")
    nlp.vocab.vectors = spacy.vectors.Vectors(
        strings=nlp.vocab.strings, data=rows, keys=[nlp.vocab.strings.add(w) for w in words]
    )
    for name, factory, settings in components():
        nlp.add_pipe(factory, name=name, config=settings)
    docs = make_docs(nlp)
    examples = [Example(without_annotation(nlp, doc), doc) for doc in docs]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(40):
        examples = [Example(without_annotation(nlp, doc), doc) for doc in docs]
        nlp.update(examples, sgd=optimizer)
    nlp.get_pipe("ner_psa").temperature = 1.5
    return nlp


def without_annotation(nlp, doc):
    """The doc's words, sentences and tags."""
    words, tags = [t.text for t in doc], [t.tag_ for t in doc]
    return Doc(nlp.vocab, words=words, tags=tags, sent_starts=[t.is_sent_start for t in doc])


def texts(nlp):
    """The docs that components are asked of."""
    return [without_annotation(nlp, doc) for doc in make_docs(nlp)]


def answers(nlp):
    """By component: what it predicts and, in order, its marginals, float64."""
    found = {}
    for name, pipe in nlp.pipeline:
        docs = texts(nlp)
        if name == "parser":
            marginals = pipe.distribution(docs).span_marginals.numpy().astype("float64")
            group = "constituents"
        else:
            marginals = numpy.concatenate([pipe.marginals(doc) for doc in docs])
            group = name
        docs = list(pipe.pipe(docs))
        said = {}
        if name in ("tags", "parser"):
            said["tags"] = [[t.tag_ for t in doc] for doc in docs]
        if name != "tags":
            said["spans"] = [[(s.start, s.end, s.label_) for s in doc.spans[group]] for doc in docs]
            scores = [doc.spans[group].attrs.get("scores", ()) for doc in docs]
            said["scores"] = [[float(score) for score in row] for row in scores]
        found[name] = said, marginals
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    with TemporaryDirectory() as folder:
        path = Path(folder)
        make_pipeline().to_disk(path / "pipeline")
        found = answers(spacy.load(path / "pipeline"))
        srsly.write_json(path / "answers.json", {name: said for name, (said, _) in found.items()})
        numpy.savez(path / "marginals.npz", **{name: array for name, (_, array) in found.items()})
        with ZipFile(out, "w", ZIP_DEFLATED, compresslevel=9) as archive:
            for file in sorted(path.rglob("*")):
                if file.is_file():
                    name = ZipInfo(str(file.relative_to(path)), (2026, 1, 1, 0, 0, 0))
                    archive.writestr(name, file.read_bytes(), ZIP_DEFLATED, 9)
    print(f"{out}: {out.stat().st_size // 1000} kB, {len(found)} components", file=sys.stderr)


if __name__ == "__main__":
    main()
