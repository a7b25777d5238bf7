"""Confidences as custom attributes of spans and docs."""

import json

import pytest
from spacy.tokens import Doc, DocBin, Span

from tests.helpers.pipelines import TEXTS, scored


def test_confidence_of_a_span_is_looked_up_with_its_label(unsure):
    doc = unsure(confidence=True)(TEXTS[0])
    (start, end, label), probability = next(iter(scored(doc).items()))
    assert doc.ents[0]._.confidence == probability and 0 < probability < 1
    assert Span(doc, start, end, label)._.confidence == probability
    assert Span(doc, start, end, "NP")._.confidence is None
    doc.spans["chunks"] = [Span(doc, start, end, "NP")]
    doc.spans["chunks"].attrs["scores"] = [0.25]
    assert Span(doc, start, end, "NP")._.confidence == 0.25
    assert Span(doc, start, end, label)._.confidence == probability


def test_confidence_survives_docbin_json_bytes_and_disk(unsure, tmp_path):
    nlp = unsure(confidence=True)
    doc = nlp(TEXTS[0])
    expected, uncertainty = scored(doc), doc._.ner_uncertainty
    assert expected and uncertainty > 0
    bare = DocBin().from_bytes(DocBin(docs=[doc]).to_bytes())
    assert scored(next(bare.get_docs(nlp.vocab))) == expected
    doc.to_disk(tmp_path / "doc")
    names = ["confidence", "ner_uncertainty"]
    kept = DocBin(docs=[doc], store_user_data=True).to_bytes()
    copies = [
        next(DocBin().from_bytes(kept).get_docs(nlp.vocab)),
        Doc(nlp.vocab).from_bytes(doc.to_bytes()),
        Doc(nlp.vocab).from_disk(tmp_path / "doc"),
        Doc(nlp.vocab).from_json(json.loads(json.dumps(doc.to_json(underscore=names)))),
    ]
    for copy in copies:
        assert scored(copy) == expected
        assert [ent._.confidence for ent in copy.ents] == list(expected.values())
        assert copy._.ner_uncertainty == uncertainty


def test_scores_of_another_doc_are_refused(unsure):
    doc = unsure(confidence=True)("Nobody came .")
    with pytest.raises(ValueError, match="the 7 spans"):
        doc._.confidence = {"ner": [0.5] * 7}


def test_attribute_of_somebody_else_is_left_alone(unsure):
    before = Span.get_extension("confidence") if Span.has_extension("confidence") else None
    Span.set_extension("confidence", default="mine", force=True)
    try:
        with pytest.warns(UserWarning, match=r"Span\._\.confidence"):
            nlp = unsure(confidence=True)
        assert nlp(TEXTS[0])[0:1]._.confidence == "mine"
    finally:
        Span.remove_extension("confidence")
        if before:
            _, _, getter, _ = before
            Span.set_extension("confidence", getter=getter)
