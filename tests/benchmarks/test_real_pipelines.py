"""benchmarks.real_pipelines on a small pipeline."""

import spacy
from spacy.tokens import Doc, DocBin

from benchmarks.real_pipelines import measure
from tests.helpers.pipelines import make_examples


def test_entities_are_scored_on_the_gold_words_without_other_components(
    trained_path, tmp_path, monkeypatch
):
    nlp, made = spacy.load(trained_path), {}
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "whole")
    docs = [eg.reference for eg in make_examples(nlp)]
    words, tags = zip(*((t.text, f"{t.ent_iob_}-{t.ent_type_}".strip("-")) for t in docs[0]))
    docs.append(Doc(nlp.vocab, words=words, spaces=[False] * len(words), ents=list(tags)))
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")

    def write(name, experiment, figures, data):
        made[name] = figures

    monkeypatch.setattr(measure, "write_record", write)
    measure.score("small", str(tmp_path / "whole"), "gold", tmp_path / "gold.spacy")
    figures = made["small-gold"]
    assert figures["scores"]["token_f"] == figures["scores"]["ents_f"] == 1.0
    assert "sents_f" not in figures["scores"]
    assert (figures["documents"], figures["words"]) == (len(docs), sum(map(len, docs)))
