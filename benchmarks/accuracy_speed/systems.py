"""The systems of the figure, with the records that hold their F1 on CoNLL-2003."""

from typing import NamedTuple


class System(NamedTuple):
    """A row of the figure."""

    title: str
    experiment: str
    name: str

    @property
    def record(self) -> str:
        """The record of the training, for `Lookup`."""
        return f"{self.experiment}/{self.name}"


OWN = "accuracy_speed"
SYSTEMS = {
    "bilstm_crf": System("BiLSTM-CRF", "conll2003", "bilstm_crf"),
    "bilstm_crf-half": System("BiLSTM-CRF, half", "conll2003", "bilstm_crf-half-sum"),
    "psa": System("PSA-BiLSTM", "conll2003", "psa"),
    "psa-half": System("PSA-BiLSTM, half", "conll2003", "psa-half-sum"),
    "psa_arxiv": System("PSA-BiLSTM, arXiv version, half", "systems", "conll2003-psa_arxiv"),
    "psa_transformer": System("PSA-Transformer", "systems", "conll2003-psa_transformer"),
    "tener": System("TENER", "systems", "conll2003-tener-75_epochs"),
    "transformer": System("Transformer", "systems", "conll2003-transformer"),
    "idcnn": System("ID-CNN", "systems", "conll2003-idcnn"),
    "cross": System("Cross-BiLSTM", "systems", "conll2003-cross"),
    "self_attentive": System("Self-attentive BiLSTM", "systems", "conll2003-self_attentive"),
    "spacy-efficiency": System("spaCy ner, efficiency", OWN, "spacy-efficiency"),
    "spacy-accuracy": System("spaCy ner, accuracy", OWN, "spacy-accuracy"),
}
"""By the name of the row in results/speed.json."""
