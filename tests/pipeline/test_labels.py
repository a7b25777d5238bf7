"""The labels that every component takes, and those that it refuses."""

import pytest
import spacy
from spacy.training import Example

from spacy_psa.errors import InputError
from tests.helpers.parsers import chart_model
from tests.helpers.pipelines import make_examples, make_nlp
from tests.helpers.tasks import task_model

MODELS = {
    "crf_ner": task_model(),
    "crf_tagger": task_model(),
    "crf_chunker": task_model(),
    "constituency_parser": chart_model(),
}


@pytest.mark.parametrize("factory", MODELS)
def test_an_empty_label_is_refused(factory):
    pipe = spacy.blank("en").add_pipe(factory, name="pipe", config={"model": MODELS[factory]})
    with pytest.raises(InputError, match="pipe: '' is not a label"):
        pipe.add_label("")
    assert pipe.labels == ()
    assert pipe.add_label("A") == 1


LABEL_DATA = {"0": {}, "1": {"PER": 2}, "3": {"PER": 1}}  # of spaCy's own ner


@pytest.mark.parametrize("labels", ["PER", LABEL_DATA], ids=["a string", "label data of spaCy"])
def test_labels_that_are_no_list_are_refused(labels):
    nlp = make_nlp()
    ner, examples = nlp.get_pipe("ner"), make_examples(nlp)
    with pytest.raises(InputError, match=r"ner: labels is .*: .* list of labels, as `spacy in"):
        ner.initialize(lambda: examples, labels=labels)
    assert ner.labels == ()


def test_a_string_in_a_config_is_no_list_either():
    nlp = make_nlp()
    nlp.config["initialize"]["components"]["ner"] = {"labels": "PER"}
    with pytest.raises(InputError, match=r"ner: labels is 'PER': .* list"):
        nlp.initialize(lambda: make_examples(nlp))


@pytest.mark.parametrize("factory", ["crf_ner", "crf_tagger", "crf_chunker"])
def test_a_batch_without_tokens_is_refused(factory):
    with pytest.raises(InputError, match="pipe: batch_tokens is 0: it must be 1 or more"):
        spacy.blank("en").add_pipe(factory, name="pipe", config={"batch_tokens": 0})


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_labels_may_be_any_list(kind):
    nlp = make_nlp()
    unannotated = [Example(nlp.make_doc("a"), nlp.make_doc("a"))]
    nlp.get_pipe("ner").initialize(lambda: unannotated, labels=kind(["PER", "ORG"]))
    assert nlp.get_pipe("ner").labels == ("PER", "ORG")


@pytest.mark.parametrize("labels", [None, ["PER", "ORG"]], ids=["found", "given"])
def test_the_examples_are_read_once(labels):
    nlp = make_nlp()
    examples, passes = make_examples(nlp), []
    nlp.get_pipe("ner").initialize(lambda: iter(passes.append(1) or examples), labels=labels)
    assert len(passes) == 1
