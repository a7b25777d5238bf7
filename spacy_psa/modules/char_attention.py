"""Word vectors from characters by self-attention (Yan2019 sections 3.1 and 6.1)."""

from typing import ClassVar

from torch import Tensor, nn

from spacy_psa.errors import check_rates, check_sizes
from spacy_psa.modules.char_encoder import CharacterEncoder, max_over_characters
from spacy_psa.modules.initialization import glorot
from spacy_psa.modules.sinusoids import SinusoidalPositions
from spacy_psa.modules.tener import RelativeAttention
from spacy_psa.modules.transformer import EncoderLayer, MultiHeadAttention


class CharTransformer(CharacterEncoder):
    """Encodes words by one Transformer layer over their characters: C characters -> (M, project).

    Sinusoids of the places are added to the embeddings, and one Transformer layer reads them. A
    linear layer follows the largest value of each coordinate over the characters, at least 0. The
    defaults are those of Yan2019, which has no dropout on the embeddings and the word's vector.

    Args:
        heads: number of heads, which share the width.
        ffn_dim: width inside the feed-forward part.
        project: width of the last linear layer.
        attention_dropout: dropout rate on the attention weights and in the feed-forward part.

    Raises:
        InputError: as `CharacterEncoder`, and if `heads` does not divide `width`.

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
        super().__init__(num_embeddings, width, dropout, output_dropout)
        check_sizes(ffn_dim=ffn_dim, project=project)
        check_rates(attention_dropout=attention_dropout)
        self.positions = SinusoidalPositions(width) if self.absolute else None
        attention = self.attention(width, heads, dropout=attention_dropout)
        self.layer = EncoderLayer(attention, width, ffn_dim, attention_dropout)
        self.project = glorot(nn.Linear(width, project))
        self.output_width = project

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        if self.positions is not None:
            x = self.positions(x, lengths)
        return self.project(max_over_characters(self.layer(x, lengths), lengths))


class CharAdaTrans(CharTransformer):
    """Encodes words like `CharTransformer`, but with the attention of TENER.

    `RelativeAttention` knows directions and distances, so no sinusoids are added to the
    embeddings. The settings and their values in Yan2019 are the same.

    Examples:
        >>> import torch
        >>> encoder = CharAdaTrans(num_embeddings=50)
        >>> encoder(torch.tensor([3, 1, 20, 7, 7]), torch.tensor([3, 2])).shape  # two words
        torch.Size([2, 30])
    """

    attention = RelativeAttention
    absolute = False
