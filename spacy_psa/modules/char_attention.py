"""Word vectors from characters by self-attention (Yan2019 sections 3.1 and 6.1)."""

from typing import ClassVar

from torch import Tensor, nn

from spacy_psa.errors import check_rates, check_sizes
from spacy_psa.modules.char_bilstm import max_over_characters
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import embedding, glorot
from spacy_psa.modules.sinusoids import SinusoidalPositions
from spacy_psa.modules.tener import RelativeAttention
from spacy_psa.modules.transformer import EncoderLayer, MultiHeadAttention


class CharTransformer(nn.Module):
    """Encodes words by one Transformer layer over their characters: C characters -> (M, project).

    Sinusoids of the places are added to the embeddings, and one Transformer layer reads them.
    For each coordinate, the module takes the largest value over the characters, at least 0; a
    linear layer follows.

    In a config of version 1, `rows` (the number of distinct characters, without the unknown one)
    takes the place of `num_embeddings`, and `ffn_dim` is called `inner`;
    `spacy_psa.architectures.chars` describes the settings that only the config has.

    Args:
        num_embeddings: size of the character vocabulary. Row 0 is the unknown character.
        width: width of a character's embedding (Yan2019: 30).
        heads: number of heads, which share the width (Yan2019: 3).
        ffn_dim: width inside the feed-forward part (Yan2019: 60).
        project: width of the last linear layer (Yan2019: 30).
        attention_dropout: dropout rate on the attention weights and in the feed-forward part
            (Yan2019: 0.15).
        dropout: dropout rate on the embeddings (Yan2019 gives none).
        output_dropout: dropout rate on the word's vector (Yan2019 gives none).

    Raises:
        InputError: for a size below 1, for a dropout rate that is not from 0 to 1, and if `heads`
            does not divide `width`.

    Examples:
        >>> import torch
        >>> encoder = CharTransformer(num_embeddings=50)
        >>> encoder(torch.tensor([3, 1, 20, 7, 7]), torch.tensor([3, 2])).shape  # two words
        torch.Size([2, 30])
    """

    attention: ClassVar[type[nn.Module]] = MultiHeadAttention
    absolute: ClassVar[bool] = True

    def __init__(
        self,
        num_embeddings: int,
        width: int = 30,
        heads: int = 3,
        ffn_dim: int = 60,
        project: int = 30,
        attention_dropout: float = 0.15,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
    ):
        super().__init__()
        check_sizes(num_embeddings=num_embeddings, width=width, ffn_dim=ffn_dim, project=project)
        check_rates(
            attention_dropout=attention_dropout, dropout=dropout, output_dropout=output_dropout
        )
        self.embed = embedding(num_embeddings, width)
        self.dropout = Dropout(dropout)
        self.positions = SinusoidalPositions(width) if self.absolute else None
        attention = self.attention(width, heads, dropout=attention_dropout)
        self.layer = EncoderLayer(attention, width, ffn_dim, attention_dropout)
        self.project = glorot(nn.Linear(width, project))
        self.output_dropout = Dropout(output_dropout)
        self.output_width = project

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Encode words from their characters -> (M, project).

        Args:
            characters: (C,) int64, the embedding row of each character, one word after the other.
            lengths: (M,) int64, the number of characters of each word, at least 1.
        """
        x = self.dropout(self.embed(characters))
        if self.positions is not None:
            x = self.positions(x, lengths)
        return self.output_dropout(
            self.project(max_over_characters(self.layer(x, lengths), lengths))
        )


class CharAdaTrans(CharTransformer):
    """Encodes words like `CharTransformer`, but with the attention of TENER.

    `RelativeAttention` knows directions and distances, so no sinusoids are added to the
    embeddings. The settings, their values in Yan2019 and their names in a config of version 1 are
    the same: `rows` takes the place of `num_embeddings`, and `ffn_dim` is called `inner`.

    Examples:
        >>> import torch
        >>> encoder = CharAdaTrans(num_embeddings=50)
        >>> encoder(torch.tensor([3, 1, 20, 7, 7]), torch.tensor([3, 2])).shape  # two words
        torch.Size([2, 30])
    """

    attention = RelativeAttention
    absolute = False
