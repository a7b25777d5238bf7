"""Words from their characters by self-attention (Yan2019 sections 3.1 and 6.1)."""

from typing import ClassVar

from torch import Tensor, nn

from spacy_psa.errors import check_sizes
from spacy_psa.modules.char_bilstm import max_over_characters
from spacy_psa.modules.initialization import embedding, glorot
from spacy_psa.modules.sinusoids import SinusoidalPositions
from spacy_psa.modules.tener import RelativeAttention
from spacy_psa.modules.transformer import EncoderLayer, MultiHeadAttention


class CharTransformer(nn.Module):
    """One Transformer layer over a word's characters and sinusoids of their places, the
    largest value of each coordinate over the characters, at least 0, and a linear layer.

    num_embeddings: size of the character vocabulary, row 0 for unknown characters.
    width: of a character's embedding (Yan2019: 30). heads: that share it (Yan2019: 3).
    ffn_dim: width inside the feed-forward part (Yan2019: 60). project: width of the linear layer
    (Yan2019: 30). attention_dropout: on attention weights and in the feed-forward part
    (Yan2019: 0.15). dropout: on the embeddings. output_dropout: on the word's vector.

    InputError where heads do not divide the width.
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
        check_sizes(width=width, ffn_dim=ffn_dim, project=project)
        self.embed = embedding(num_embeddings, width)
        self.dropout = nn.Dropout(dropout)
        self.positions = SinusoidalPositions(width) if self.absolute else None
        attention = self.attention(width, heads, dropout=attention_dropout)
        self.layer = EncoderLayer(attention, width, ffn_dim, attention_dropout)
        self.project = glorot(nn.Linear(width, project))
        self.output_dropout = nn.Dropout(output_dropout)
        self.output_width = project

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """characters: (C,) int64 rows, one word after the other; lengths: (M,)
        characters of each word, at least 1. Returns (M, project)."""
        x = self.dropout(self.embed(characters))
        if self.positions is not None:
            x = self.positions(x, lengths)
        return self.output_dropout(
            self.project(max_over_characters(self.layer(x, lengths), lengths))
        )


class CharAdaTrans(CharTransformer):
    """`CharTransformer` with TENER's attention, which knows directions and distances,
    in place of sinusoids of places."""

    attention = RelativeAttention
    absolute = False
