"""The default model of the parser: a small factored transformer over words and characters."""

# A small model; configs/parser/factored.cfg has the sizes of the paper.
DEFAULT_MODEL = """
[model]
@architectures = "spacy-psa.ChartParser.v1"
hidden = 128

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
@architectures = "spacy-psa.FactoredTransformer.v1"
width = 256
heads = 4
head_width = 64
layers = 2
feedforward = 512
boundaries = true
"""
