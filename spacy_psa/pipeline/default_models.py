"""The default models of the components, as the text of the block [model] of a config."""

# The embedders are in thinc's concatenate.v1, not in ConcatEmbed.v1. spaCy merges a user's block
# into a default block of the same function, so the default embedders would stay in a user's own
# ConcatEmbed.v1.
EMBED = """
[model.tok2vec]
@architectures = "spacy.Tok2Vec.v2"

[model.tok2vec.embed]
@layers = "concatenate.v1"

[model.tok2vec.embed.*.words]
@architectures = "spacy-psa.WordEmbed.v1"
width = 100

[model.tok2vec.embed.*.characters]
@architectures = "spacy-psa.CharBiLSTM.v1"

[model.tok2vec.encode]
"""
PSA = f'{EMBED}@architectures = "spacy-psa.PSABiLSTM.v1"\n'

CHAIN = f"""
[model]
@architectures = "spacy-psa.CRF.v1"
potentials = "label_pair"
{PSA}"""
"""PSA-BiLSTM-CRF over words and characters."""

# A small model; configs/parser/factored.cfg has the sizes of the paper.
CHART = f"""
[model]
@architectures = "spacy-psa.ChartParser.v1"
hidden = 128
{EMBED}
@architectures = "spacy-psa.FactoredTransformer.v1"
width = 256
heads = 4
head_width = 64
layers = 2
feedforward = 512
boundaries = true
"""

SPANS = f"""
[model]
@architectures = "spacy-psa.SpanScorer.v1"
{PSA}"""
"""Scores of spans over the same encoder."""
