"""Labels of the development set that the training data lacks: an error before training."""

from pathlib import Path

import pytest
import spacy
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Corpus
from spacy.training.initialize import init_nlp
from spacy.util import load_config, load_model_from_config

from spacy_psa.errors import InputError
from tests.helpers.commands import assert_one_error, command, succeed

CONFIGS = Path(__file__).parents[2] / "configs"
TOK2VEC = "model.tok2vec"
PIPES = {"ner": "NAME", "tagger": "NN", "chunker": "NP"}


def write(path, label, **labels):
    """A file of one sentence with a label in every layer, or another in some."""
    chosen = {**dict.fromkeys(PIPES, label), **labels}
    doc = Doc(spacy.blank("en").vocab, words=["Ada", "came"], tags=[chosen["tagger"]] * 2)
    doc.set_ents([Span(doc, 0, 1, chosen["ner"])])
    doc.spans["chunks"] = [Span(doc, 0, 1, chosen["chunker"])]
    DocBin(docs=[doc] * 4).to_disk(path)


def settings(folder, pipe):
    small = {
        f"components.{pipe}.{TOK2VEC}.embed.*.words.width": 4,
        f"components.{pipe}.{TOK2VEC}.embed.*.characters.hidden": 2,
        f"components.{pipe}.{TOK2VEC}.encode.hidden": 2,
        "training.max_steps": 1,
    }
    paths = {f"paths.{part}": str(folder / f"{part}.spacy") for part in ("train", "dev")}
    return {**small, **paths}


@pytest.mark.parametrize("pipe", PIPES)
def test_a_label_that_only_dev_has_ends_the_training_before_it_begins(tmp_path, pipe):
    write(tmp_path / "train.spacy", "SEEN")
    write(tmp_path / "dev.spacy", "SEEN", **{pipe: "UNSEEN"})
    with pytest.raises(InputError) as error:
        train(CONFIGS / pipe / "psa.cfg", tmp_path / "out", overrides=settings(tmp_path, pipe))
    message = str(error.value)
    assert "\n" not in message
    for part in ("dev.spacy", "UNSEEN", f"{pipe!r}", f"[initialize.components.{pipe}.labels]"):
        assert part in message
    assert "SEEN," not in message
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("pipe", PIPES)
def test_labels_that_only_train_has_are_no_error(tmp_path, pipe):
    write(tmp_path / "dev.spacy", "SEEN")
    docs = DocBin().from_disk(tmp_path / "dev.spacy")
    write(tmp_path / "train.spacy", "MORE")
    docs.merge(DocBin().from_disk(tmp_path / "train.spacy"))
    docs.to_disk(tmp_path / "train.spacy")
    train(CONFIGS / pipe / "psa.cfg", tmp_path / "out", overrides=settings(tmp_path, pipe))
    assert spacy.load(tmp_path / "out" / "model-last").get_pipe(pipe).labels == ("MORE", "SEEN")


def config(folder, pipe="ner"):
    path = CONFIGS / pipe / "psa.cfg"
    return load_config(path, overrides=settings(folder, pipe), interpolate=False)


def test_labels_that_the_config_names_need_not_be_in_train(tmp_path):
    write(tmp_path / "train.spacy", "SEEN")
    write(tmp_path / "dev.spacy", "UNSEEN")
    named = config(tmp_path)
    named["initialize"]["components"] = {"ner": {"labels": ["SEEN", "UNSEEN"]}}
    assert init_nlp(named).get_pipe("ner").labels == ("SEEN", "UNSEEN")


def test_the_error_names_an_option_with_which_the_training_begins(tmp_path):
    write(tmp_path / "train.spacy", "SEEN")
    write(tmp_path / "dev.spacy", "UNSEEN")
    options = [f"--{key}={value}" for key, value in settings(tmp_path, "ner").items()]
    arguments = [CONFIGS / "ner" / "psa.cfg", "-o", tmp_path / "out", *options]
    result = command("train")(*arguments)
    assert_one_error(result, "UNSEEN", advice := "--initialize.after_init null")
    succeed(command("train")(*arguments, *advice.split()))
    assert spacy.load(tmp_path / "out" / "model-last").get_pipe("ner").labels == ("SEEN",)


def test_a_trained_pipeline_is_initialized_again_where_its_data_are_not(tmp_path, monkeypatch):
    write(tmp_path / "train.spacy", "SEEN")
    monkeypatch.chdir(tmp_path)
    here = config(tmp_path)
    here["paths"]["dev"] = "train.spacy"
    init_nlp(here).to_disk(tmp_path / "model")
    monkeypatch.chdir("/")
    nlp = spacy.load(tmp_path / "model")
    with pytest.warns(UserWarning, match=r"train.spacy: .* are not checked"):
        nlp.initialize(lambda: Corpus(tmp_path / "train.spacy")(nlp))
    assert nlp.get_pipe("ner").labels == ("SEEN",)


def test_without_a_development_set_nothing_is_checked(tmp_path):
    """As when a pipeline is made of a config and initialized from Python."""
    write(tmp_path / "train.spacy", "SEEN")
    without = config(tmp_path).interpolate()
    without["corpora"]["dev"]["path"] = None
    nlp = load_model_from_config(without, auto_fill=True)
    nlp.initialize(lambda: Corpus(tmp_path / "train.spacy")(nlp))
    assert nlp.get_pipe("ner").labels == ("SEEN",)


def test_only_the_corpus_that_training_names_is_read(tmp_path):
    write(tmp_path / "train.spacy", "SEEN")
    write(tmp_path / "dev.spacy", "SEEN")
    more = config(tmp_path)
    more["corpora"]["test"] = {**more["corpora"]["dev"], "path": str(tmp_path / "none.spacy")}
    init_nlp(more)


def test_other_components_are_not_asked(tmp_path):
    write(tmp_path / "train.spacy", "SEEN")
    write(tmp_path / "dev.spacy", "SEEN")
    more = config(tmp_path)
    more["nlp"]["pipeline"] = ["sentencizer", "ner"]
    more["components"]["sentencizer"] = {"factory": "sentencizer"}
    assert init_nlp(more).pipe_names == ["sentencizer", "ner"]
