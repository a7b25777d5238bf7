"""Time all systems of the figure on the test set of CoNLL-2003, side by side.

All annotate whole documents whose sentences are known. The configs are those in the records of the
F1, and the weights are random, because the work does not depend on them: spaCy's parser of entities
also makes one decision for each word. It writes benchmarks/accuracy_speed/results/speed.json, a
record of the kind "speed".
"""

from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import spacy
from thinc.api import Config

from benchmarks.cased_vectors import cased_vectors
from benchmarks.lookup import Lookup
from benchmarks.pretrained.speed import Documents
from benchmarks.record import save_record
from benchmarks.script import script_parser
from benchmarks.wrap import wrap
from spacy_psa.corpora.documents import read_document_corpus
from spacy_psa.laboratory.performance.pipelines import open_pipeline
from spacy_psa.laboratory.performance.sections import record, timed
from spacy_psa.laboratory.performance.timing import Row, pin_threads
from spacy_psa.loading import load_pipeline
from spacy_psa.scoring.provenance import command


class System(NamedTuple):
    """A row of the figure, with the record of its training."""

    title: str
    record: str


OWN = "accuracy_speed"
SYSTEMS = {
    "bilstm_crf": System("BiLSTM-CRF", "conll2003/bilstm_crf"),
    "bilstm_crf-half": System("BiLSTM-CRF, half", "conll2003/bilstm_crf-half-sum"),
    "psa": System("PSA-BiLSTM", "conll2003/psa"),
    "psa-half": System("PSA-BiLSTM, half", "conll2003/psa-half-sum"),
    "psa_arxiv": System("PSA-BiLSTM, arXiv version, half", "systems/conll2003-psa_arxiv"),
    "psa_transformer": System("PSA-Transformer", "systems/conll2003-psa_transformer"),
    "tener": System("TENER", "systems/conll2003-tener-75_epochs"),
    "transformer": System("Transformer", "systems/conll2003-transformer"),
    "idcnn": System("ID-CNN", "systems/conll2003-idcnn"),
    "cross": System("Cross-BiLSTM", "systems/conll2003-cross"),
    "self_attentive": System("Self-attentive BiLSTM", "systems/conll2003-self_attentive"),
    "best": System("best.cfg", "documents/best-1"),
    "frozen": System("frozen.cfg, MPNet", "pretrained/frozen_mpnet-1"),
    "finetuned": System("pretrained.cfg, MiniLM", "pretrained/finetuned_minilm-1"),
    "spacy-efficiency": System("spaCy ner, efficiency", f"{OWN}/spacy-efficiency"),
    "spacy-accuracy": System("spaCy ner, accuracy", f"{OWN}/spacy-accuracy"),
}
"""By the name of the row in results/speed.json."""
CORPUS = Path("corpus/conll2003")
FOLDER = Path("training", OWN)


def write_config(system: System, target: Path) -> None:
    """Write the config of a system, with the vectors here."""
    [settings] = Lookup(OWN).raw(f"{system.record}:config")
    if settings["initialize"]["vectors"]:
        vectors = CORPUS / "vectors"
        if system.record.startswith(OWN):
            vectors = cased_vectors(vectors, FOLDER / "cased_vectors")
        settings["initialize"]["vectors"] = str(vectors)
    Config(settings).to_disk(target)


def main() -> None:
    options = script_parser(globals())
    options.add_argument("--repeats", type=int, default=5, help="runs of each system (5)")
    options.add_argument("--documents", type=int, help="only so many documents")
    given = options.parse_args()
    pin_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    test = CORPUS / "test.spacy"
    documents = islice(read_document_corpus(test)(spacy.blank("en")), given.documents)
    gold = [example.reference for example in documents]
    paths: dict[str, str] = {}
    rows: list[Row] = []
    for name, system in SYSTEMS.items():
        config = FOLDER / f"{name}.cfg"
        write_config(system, config)
        paths[name] = str(config)
        with TemporaryDirectory(dir=FOLDER) as folder:  # an opened model has no cache of features
            open_pipeline(str(config), CORPUS / "train.spacy", None).to_disk(folder)
            rows.append(Documents(name, load_pipeline(folder), gold))
    timings = timed(rows, given.repeats, lambda name, number: print(number, name, flush=True))
    settings = {"threads": 1, "repeats": given.repeats, "documents": len(gold)}
    sections = {"annotation": {"words": sum(map(len, gold)), "rows": timings}}
    save_record(wrap(record(command(), settings, paths, [test], sections), OWN, "speed"))


if __name__ == "__main__":
    main()
