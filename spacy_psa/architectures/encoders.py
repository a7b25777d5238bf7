"""Encoders, for the `encode` slot of spacy.Tok2Vec.v2: each takes its settings from its module.

Names that differ between a config and a module: a config of version 1 says `feedforward` for
the module's `ffn_dim`, and `kernels` and `size` for its `filters` and `kernel_size`.
`training.dropout` reaches none of their dropouts.
"""

from spacy_psa.bridge.architecture import encoder
from spacy_psa.modules.factored_transformer import FactoredTransformer
from spacy_psa.modules.idcnn import IDCNN
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.psa_bilstm import PSABiLSTM
from spacy_psa.modules.psa_transformer import PSATransformer
from spacy_psa.modules.self_attentive import SelfAttentiveBiLSTM
from spacy_psa.modules.tener import TENER
from spacy_psa.modules.transformer import Transformer

FFN = {"feedforward": "ffn_dim"}

bilstm = encoder(BiLSTM)
# Li2019 section 6.2: each direction of a layer reads both of the one below.
cross_bilstm = encoder(
    BiLSTM,
    name="CrossBiLSTM",
    defaults={"hidden": 100, "layers": 2, "input_dropout": 0.35, "output_dropout": 0.35},
    fixed={"separate": False},
)
self_attentive_bilstm = encoder(SelfAttentiveBiLSTM)
psa_bilstm = encoder(PSABiLSTM, input_width="width", former_names={"dropout": "attention_dropout"})
psa_transformer = encoder(PSATransformer, renamed=FFN)
tener = encoder(TENER, renamed=FFN)
transformer = encoder(Transformer, renamed=FFN)
factored_transformer = encoder(
    FactoredTransformer, renamed=FFN, former_names={"model_width": "width"}
)
idcnn = encoder(IDCNN, renamed={"kernels": "filters", "size": "kernel_size"})
