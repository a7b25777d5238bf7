"""Weights and word vectors that are NaN or infinite are named, and stop an evaluation."""

import math

import numpy
import pytest
import torch
from spacy.vectors import Vectors

from spacy_psa.errors import InputError
from tests.helpers.parsers import random_parser
from tests.helpers.pipelines import (
    hash_embed,
    make_examples,
    make_nlp,
    random_nlp,
    small_model,
    train,
)

BAD = pytest.mark.parametrize("value", [math.nan, math.inf])
WAYS = [{}, {"confidence": True}, {"decode": "mbr"}, {"decode": "threshold"}]


def head(pipe):
    """The torch module that scores tags or spans, the first of the model."""
    return next(shim.module for node in pipe.model.walk() for shim in node.shims)


def spoil(pipe, value):
    """Put a number into one weight of the head."""
    with torch.no_grad():
        [*head(pipe).parameters()][-1][0] = value


@BAD
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_weights_that_are_not_finite_are_named(value, way):
    nlp = random_nlp(way)
    spoil(nlp.get_pipe("ner"), value)
    with pytest.raises(InputError, match=r"ner: the scores .* NaN or infinite, as are its weights"):
        nlp("Ada left")


@BAD
def test_weights_of_a_parser_are_named(value):
    nlp = random_parser()
    spoil(nlp.get_pipe("parser"), value)
    with pytest.raises(InputError, match=r"parser: the scores .*, as are its weights"):
        nlp("Ada left")


def nlp_with_vectors():
    """A pipeline whose model takes vectors from the vocabulary."""
    embed = {**hash_embed(), "include_static_vectors": True}
    nlp = make_nlp(small_model(embed=embed))
    names = ["Ada", "Evans"]
    nlp.vocab.vectors = Vectors(data=numpy.ones((2, 4), dtype="f"), keys=names)
    train(nlp, steps=0)
    return nlp


@BAD
def test_a_word_vector_that_is_not_finite_is_named(value):
    nlp = nlp_with_vectors()
    nlp.vocab.set_vector("Evans", numpy.array([1.0, value, 0.0, 0.0], dtype="f"))
    with pytest.raises(InputError, match=r"as is the word vector of 'Evans': correct the vectors"):
        nlp("Ada met Evans")
    assert nlp("Ada left")


def test_training_stops_at_the_first_evaluation_of_weights_that_are_not_finite():
    nlp = random_nlp()
    spoil(nlp.get_pipe("ner"), math.nan)
    with pytest.raises(InputError, match=r"ner: the scores .*, as are its weights"):
        nlp.evaluate(make_examples(nlp))
