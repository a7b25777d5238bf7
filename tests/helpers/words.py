"""Words as the character encoders take them, and docs of made-up words."""

from collections.abc import Sequence

import torch
from spacy.tokens import Doc
from spacy.vocab import Vocab
from torch import Tensor, nn


def encode_words(module: nn.Module, words: Sequence[Sequence[int]]) -> Tensor:
    """The vectors that a character encoder gives for words, each a list of characters' rows."""
    characters = [character for word in words for character in word]
    return module(torch.tensor(characters), torch.tensor([len(word) for word in words]))


def joined(docs: list[Doc]) -> Doc:
    """One doc of several, each of them a sentence."""
    return Doc(
        docs[0].vocab,
        words=[token.text for doc in docs for token in doc],
        sent_starts=[token.i == 0 for doc in docs for token in doc],
    )


def docs_of(vocab: Vocab, *lines: str) -> list[Doc]:
    """A doc for each line, its words those between the spaces."""
    return [Doc(vocab, words=line.split()) for line in lines]
