"""The default model of the chain components: PSA-BiLSTM-CRF over words and characters."""

# The embedders are in thinc's concatenate.v1, not in ConcatEmbed.v1. spaCy merges a user's block
# into a default block of the same function, so the default embedders would stay beside a user's
# own in a ConcatEmbed.v1.
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
