"""Table 5 of the TENER paper: every cell from one config, by overrides of `spacy train`."""

import pytest
import spacy
from spacy.cli._util import parse_config_overrides
from spacy.cli.train import train
from spacy.tokens import DocBin
from spacy.util import fix_random_seed, load_config, load_model_from_config
from thinc.api import Adam

from tests.helpers.layers import torch_modules
from tests.helpers.modules import parameter_count
from tests.helpers.paths import CONFIGS
from tests.helpers.pipelines import MARKED, make_examples

GRID = CONFIGS / "ner" / "grid.cfg"
# Each character encoder, and its parameters without the embeddings, as the paper counts them.
CHAR = {
    "none": None,
    "bilstm": ("CharBiLSTM", 35_830),
    "cnn": ("CharCNN", 3_660),
    "transformer": ("CharTransformer", 8_460),
    "adatrans": ("CharAdaTrans", 6_600),
}
WORD = {"bilstm": "BiLSTM", "idcnn": "IDCNN", "adatrans": "TENER"}
TINY = {
    "words.width": 8,
    "words.rows": 50,
    "word.bilstm.hidden": 4,
    "word.idcnn.kernels": 8,
    "word.adatrans.heads": 2,
    "word.adatrans.head_width": 4,
}


def cell(char, word):
    """Overrides as a user types them, and small sizes."""
    line = ["--grid.char", f"${{char.{char}}}", f"--grid.word=${{word.{word}}}"]
    return {**parse_config_overrides(line, env_var=None), **TINY}


def modules(nlp):
    """The torch modules of its `ner`, by the names of their classes."""
    return {type(module).__name__: module for module in torch_modules(nlp.get_pipe("ner").model)}


@pytest.mark.parametrize("word", WORD)
@pytest.mark.parametrize("char", CHAR)
def test_every_cell_is_built_and_updated(char, word):
    nlp = load_model_from_config(load_config(GRID, overrides=cell(char, word)), auto_fill=True)
    fix_random_seed(0)
    examples = make_examples(nlp, MARKED[:2])
    optimizer = nlp.initialize(lambda: examples, sgd=Adam(0.01))
    found = modules(nlp)
    of_characters = {
        name: parameter_count(module) - module.embed.weight.numel()
        for name, module in found.items()
        if name.startswith("Char")
    }
    assert of_characters == dict([CHAR[char]] if CHAR[char] else [])
    assert WORD[word] in found
    before = [p.detach().clone() for module in found.values() for p in module.parameters()]
    losses = nlp.update(examples, sgd=optimizer)
    after = [p for module in found.values() for p in module.parameters()]
    assert 0 < losses["ner"] < float("inf")
    # All but a bias of keys, which softmax does not see, and rows that no word has.
    assert sum(not a.equal(b) for a, b in zip(after, before, strict=True)) >= len(before) - 2
    assert nlp("Ada met Babbage").has_annotation("ENT_IOB")


def test_a_cell_is_trained_saved_and_loaded_from_the_command_line(tmp_path):
    blank = spacy.blank("en")
    docs = [example.reference for example in make_examples(blank)]
    DocBin(docs=docs).to_disk(tmp_path / "all.spacy")
    limits = {"training.max_steps": 2, "training.eval_frequency": 1}
    paths = {f"paths.{part}": str(tmp_path / "all.spacy") for part in ("train", "dev")}
    train(GRID, tmp_path, overrides={**cell("cnn", "idcnn"), **limits, **paths})
    nlp = spacy.load(tmp_path / "model-last")
    assert {"CharCNN", "IDCNN"} <= modules(nlp).keys()
    assert nlp.config.interpolate()["grid"]["char"]["*"]["characters"]["width"] == 30
    assert nlp("Ada met Babbage").has_annotation("ENT_IOB")


def test_rates_follow_the_override():
    overrides = parse_config_overrides(["--grid.rate", "0.01"], env_var=None)
    config = load_config(GRID, overrides=overrides).interpolate()
    assert config["training"]["optimizer"]["learn_rate"]["max_rate"] == 0.01
