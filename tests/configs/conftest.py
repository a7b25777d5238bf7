"""What configs need to be built."""

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example


@pytest.fixture(scope="session")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a pipeline with a small tagger, which knows two tags."""
    nlp = spacy.blank("en")
    embed = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 8}
    encode = {"@architectures": "spacy-psa.BiLSTM.v1", "hidden": 4}
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": tok2vec}
    nlp.add_pipe("crf_tagger", name="tagger", config={"model": model})
    gold = Doc(nlp.vocab, words=["Roses", "bloom"], tags=["NNS", "VBP"])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=["Roses", "bloom"]), gold)])
    path = tmp_path_factory.mktemp("tagger") / "model"
    nlp.to_disk(path)
    return str(path)
