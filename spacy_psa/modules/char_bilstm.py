"""Word vectors from characters by an LSTM: over words (Wei2020, Yan2019), or over sentences."""

from typing import Literal

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_choice, check_rates, check_sizes
from spacy_psa.modules.char_encoder import CharacterEncoder, max_over_characters
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import embedding, glorot
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.products import Distinct

Pool = Literal["final", "max"]


class CharBiLSTM(CharacterEncoder):
    """Encodes words by a bidirectional LSTM over characters: C characters -> (M, output_width).

    The defaults are those of Wei2020 (section 5.2). Yan2019 (section 3.1) has 50 units, a linear
    layer of width 30, and the largest value over the characters. Neither has dropout here.

    Args:
        hidden: units of each direction (Wei2020: "100", read here as 100 for each direction).
        project: width of a linear layer after the LSTM, or None for no such layer.
        pool: "final" uses the state of each direction after its last character (Wei2020). "max"
            uses the largest value over the characters, at least 0 (Yan2019's code).

    Raises:
        InputError: as `CharacterEncoder`, and for an unknown `pool`.

    Examples:
        >>> encoder = CharBiLSTM(num_embeddings=50)
        >>> encoder(torch.tensor([3, 1, 20, 7, 7]), torch.tensor([3, 2])).shape  # two words
        torch.Size([2, 200])
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int = 30,
        hidden: int = 100,
        dropout: float = 0.0,
        project: int | None = None,
        pool: Pool = "final",
        output_dropout: float = 0.0,
        init_std: float | None = None,
    ):
        super().__init__(num_embeddings, width, dropout, output_dropout, init_std)
        check_sizes(hidden=hidden, project=project)
        check_choice("pool", pool, Pool)
        self.lstm = BiLSTM(width, hidden, input_dropout=0.0, output_dropout=0.0)
        self.pool = pool
        states = self.lstm.output_width
        self.project = nn.Identity() if project is None else glorot(nn.Linear(states, project))
        self.output_width = states if project is None else project

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        many = len(characters) >= self.embed.num_embeddings
        if self.pool == "final" and many and not (self.training or torch.is_grad_enabled()):
            # The products with the vector of a character are computed once.
            table = Distinct.of(self.embed.weight, characters)
            return self.output_dropout(self.project(self.lstm.final(table, lengths)))
        return super().forward(characters, lengths)

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        if self.pool == "final":
            return self.project(self.lstm.final(x, lengths))
        return self.project(max_over_characters(self.lstm(x, lengths), lengths))


class CharSentenceBiLSTM(nn.Module):
    """Encodes words by a BiLSTM over the characters of their sentence: (N, output_width).

    The characters of the sentence, with the spaces between its words, go through one bidirectional
    LSTM. The states of both directions at the first and at the last character of a word are joined
    to its vector (Bohnet et al. 2018, Meta-BiLSTM, section 3.1), which therefore depends on the
    words around it, unlike that of `CharBiLSTM`. The default sizes are choices of this package. The
    other settings are those of `CharacterEncoder`.

    Args:
        hidden: units of each direction.
        layers: number of stacked layers.
        project: width of a linear layer and ReLU after the LSTM, or None for no such layer.
        dropout: dropout rate on the embeddings, and after each layer of the LSTM.

    Raises:
        InputError: for a size below 1, and a dropout rate that is not from 0 to 1.

    Examples:
        >>> encoder = CharSentenceBiLSTM(num_embeddings=50, hidden=10)
        >>> characters = torch.tensor([3, 1, 20, 7, 7])  # the sentence "I go." as I, go and .
        >>> first, last = torch.tensor([0, 2, 4]), torch.tensor([0, 3, 4])
        >>> encoder(characters, torch.tensor([5]), first, last).shape
        torch.Size([3, 40])
    """

    def __init__(
        self,
        num_embeddings: int,
        width: int = 32,
        hidden: int = 100,
        layers: int = 1,
        project: int | None = None,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
        init_std: float | None = None,
    ):
        super().__init__()
        check_sizes(num_embeddings=num_embeddings, width=width, hidden=hidden, project=project)
        check_sizes(layers=layers)
        check_rates(dropout=dropout, output_dropout=output_dropout)
        self.embed = embedding(num_embeddings, width, init_std)
        self.lstm = BiLSTM(width, hidden, layers, input_dropout=dropout, output_dropout=dropout)
        states = 2 * self.lstm.output_width
        self.project: nn.Module = nn.Identity()
        if project is not None:
            self.project = nn.Sequential(glorot(nn.Linear(states, project)), nn.ReLU())
        self.output_dropout = Dropout(output_dropout)
        self.output_width = states if project is None else project

    def forward(self, characters: Tensor, lengths: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """Encode the words of B sentences -> (N, output_width).

        Args:
            characters: (C,) int64, the embedding row of each character, one sentence after the
                other.
            lengths: (B,) int64, the number of characters of each sentence, at least 1.
            first: (N,) int64, the place of each word's first character among all.
            last: (N,) int64, that of its last one.
        """
        states = self.lstm(self.embed(characters), lengths)
        word = torch.cat([states[first], states[last]], 1)
        return self.output_dropout(self.project(word))
