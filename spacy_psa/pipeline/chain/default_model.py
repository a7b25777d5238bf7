"""The model of a chain component whose config names none."""

# The embedders' block is thinc's: spaCy merges a user's block into a default block of the
# same function, which would leave the default's embedders beside the user's.
DEFAULT_MODEL = """
[model]
@architectures = "spacy-psa.CRF.v1"
potentials = "label_pair"

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
@architectures = "spacy-psa.PSABiLSTM.v1"
"""
