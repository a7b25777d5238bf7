"""The encoders, Model[List[Floats2d], List[Floats2d]], for the slot `encode` of spacy.Tok2Vec.v2.

Each has the settings and defaults of its module in `spacy_psa.modules`. Some settings have
other names in a config of version 1: `feedforward` is the module's `ffn_dim`, and `kernels` and
`size` are its `filters` and `kernel_size`. `training.dropout` does not change the dropout rates of
encoders.

Examples:
    >>> model = psa_bilstm(hidden=10)
    >>> _ = model.initialize(X=[model.ops.alloc2f(3, 20)])
    >>> model.predict([model.ops.alloc2f(5, 20)])[0].shape
    (5, 20)
"""

from spacy_psa.bridge.architecture import encoder
from spacy_psa.modules.factored_transformer import FactoredTransformer
from spacy_psa.modules.idcnn import IDCNN
from spacy_psa.modules.lstm import BiLSTM
from spacy_psa.modules.psa import PSABiLSTM
from spacy_psa.modules.self_attentive import SelfAttentiveBiLSTM
from spacy_psa.modules.tener import TENER
from spacy_psa.modules.transformer import PSATransformer, Transformer

FFN = {"feedforward": "ffn_dim"}

bilstm = encoder(BiLSTM)
"""`BiLSTM.v1`: a bidirectional LSTM of one or more layers."""
cross_bilstm = encoder(
    BiLSTM,
    name="CrossBiLSTM",
    defaults={"hidden": 100, "layers": 2, "input_dropout": 0.35, "output_dropout": 0.35},
    fixed={"separate": False},
)
"""`CrossBiLSTM.v1`: a BiLSTM in which both directions read both directions of the layer below.

It is the "cross" system of Li2019 section 6.2. `separate` is not a setting here.
"""
self_attentive_bilstm = encoder(SelfAttentiveBiLSTM)
"""`SelfAttentiveBiLSTM.v1`: a BiLSTM and attention over its states (Li2019 section 4.1)."""
psa_bilstm = encoder(PSABiLSTM, input_width="width", former_names={"dropout": "attention_dropout"})
"""`PSABiLSTM.v1`: position-aware self-attention below and above a BiLSTM (Wei2020 Fig. 2).

A config also has `width`, the width of the input; it is needed only if the output is as wide as the
input, as it is without a BiLSTM.
"""
psa_transformer = encoder(PSATransformer, renamed=FFN)
"""`PSATransformer.v1`: a Transformer with the position bias of PSA (Wei2020 Table 10)."""
tener = encoder(TENER, renamed=FFN)
"""`TENER.v1`: a Transformer with relative, unscaled attention (Yan2019)."""
transformer = encoder(Transformer, renamed=FFN)
"""`Transformer.v1`: the Transformer that TENER is compared with (Yan2019)."""
factored_transformer = encoder(
    FactoredTransformer, renamed=FFN, former_names={"model_width": "width"}
)
"""`FactoredTransformer.v1`: a Transformer that may keep content and position apart (Kitaev2018)."""
idcnn = encoder(IDCNN, renamed={"kernels": "filters", "size": "kernel_size"})
"""`IDCNN.v1`: iterated dilated convolutions (Strubell et al. 2017; Yan2019)."""
