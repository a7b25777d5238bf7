"""Chain models: token vectors to log potentials, Model[List[Doc], List[Floats2d]]."""

from typing import Literal

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from spacy_psa.architectures.sentencewise import has_boundaries, sentencewise
from spacy_psa.bridge.layers import head_layer
from spacy_psa.errors import InputError, check_choice
from spacy_psa.modules.chain_potentials import Emission, EmissionTransition, LabelPair

Potentials = Literal["label_pair", "transition"]
HEADS = {"label_pair": LabelPair, "transition": EmissionTransition}


def crf(tok2vec: Model[list[Doc], list[Floats2d]], potentials: Potentials = "label_pair") -> Model:
    """`CRF.v1`: log potentials of a linear chain, K * K a token (see `modules.chain_potentials`).

    potentials: "label_pair" gives every pair of tags a weight vector (Wei2020 Eq 2);
    "transition" is emission plus transition, smaller for many labels.

    Errors: InputError for an unknown kind.
    """
    check_choice("potentials", potentials, Potentials)
    _one_row_a_token("CRF.v1", tok2vec)
    return sentencewise(tok2vec, head_layer(potentials, HEADS[potentials]))


def softmax(tok2vec: Model[list[Doc], list[Floats2d]]) -> Model:
    """`Softmax.v1`: tags independent of each other, K log probabilities a token
    (Wei2020 Table 9, model 5)."""
    _one_row_a_token("Softmax.v1", tok2vec)
    return sentencewise(tok2vec, head_layer("emission", Emission))


def _one_row_a_token(name: str, tok2vec: Model) -> None:
    if has_boundaries(tok2vec):
        raise InputError(f"{name}: boundaries = true is for ChartParser.v1: set it to false")
