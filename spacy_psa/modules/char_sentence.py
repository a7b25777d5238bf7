"""Word vectors from the characters of a whole sentence by an LSTM (Bohnet et al. 2018)."""

import torch
from torch import Tensor, nn

from spacy_psa.errors import check_rates, check_sizes
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import embedding, glorot
from spacy_psa.modules.lstm import BiLSTM


class CharSentenceBiLSTM(nn.Module):
    """Encodes words by a BiLSTM over the characters of their sentence: (N, output_width).

    The characters of the sentence, with the spaces between its words, go through one bidirectional
    LSTM. A word takes the states of both directions at its first and at its last character, side by
    side (Bohnet et al. 2018, Meta-BiLSTM, section 3.1). So the vector of a word depends on what
    stands around it, unlike that of `CharBiLSTM`.

    In a config of version 1, `rows` (the number of distinct characters, without the unknown one)
    takes the place of `num_embeddings`, and `init_std` is called `spread`. The sizes below are
    choices of this package.

    Args:
        num_embeddings: size of the character vocabulary. Row 0 is the unknown character.
        width: width of a character's embedding.
        hidden: units of each direction.
        layers: number of stacked layers.
        project: width of a linear layer and ReLU after the LSTM, or None for no such layer.
        dropout: dropout rate on the embeddings, and after each layer of the LSTM.
        output_dropout: dropout rate on the word's vector.
        init_std: standard deviation of the uniform distribution from which embeddings are drawn
            at the start. By default it is 1 / sqrt(width).

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
        self.project = (
            nn.Identity()
            if project is None
            else nn.Sequential(glorot(nn.Linear(states, project)), nn.ReLU())
        )
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
