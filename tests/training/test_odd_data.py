"""Odd training data: a pipeline is trained on it, or one error says what is wrong."""

import pytest
import spacy

from tests.helpers.commands import assert_one_error, command
from tests.helpers.odd_corpora import CORPORA, config, write
from tests.helpers.whole_pipelines import NAMES

train = command("train")
NOTHING_TO_LEARN = ("no docs", "empty docs", "no annotation")


@pytest.mark.filterwarnings("ignore:.*max_length")  # of the parser, for 5,000 tokens
@pytest.mark.parametrize("corpus", CORPORA)
def test_odd_data_trains_all_components_or_is_one_error(tmp_path, corpus):
    write(tmp_path, *CORPORA[corpus]())
    names = NAMES if corpus != "150 labels" else ("tagger", "ner")  # all four take a minute
    result = train(config(tmp_path, names), "--output", tmp_path / "out")
    if corpus in NOTHING_TO_LEARN:
        assert_one_error(result, "tagger", "training data", "no annotation")
        assert not (tmp_path / "out").exists()
    else:
        assert result.exit_code == 0, result.output
        doc = spacy.load(tmp_path / "out" / "model-last")("Ada met Evans.")
        assert all(token.tag_ for token in doc) and doc.has_annotation("ENT_IOB")
        assert len(doc.spans) == len(names) - 2  # chunks and constituents


@pytest.mark.parametrize("name", NAMES)
def test_each_component_says_that_it_has_nothing_to_learn_from(tmp_path, name):
    write(tmp_path, *CORPORA["no annotation"]())
    result = train(config(tmp_path, [name]), "--output", tmp_path / "out")
    assert_one_error(result, name, "training data")
