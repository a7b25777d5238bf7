import math
import sys

import numpy
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from spacy.vocab import Vocab
from thinc.api import Config

from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.training import recipes
from spacy_psa.training.recipes import CONFIGS, LEAST, RECIPES, count_steps
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.encoders import write_encoder
from tests.helpers.paths import SAMPLE

run = command("init", "config")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The options that name the sample's development data, 300 sentences, as both parts."""
    folder = tmp_path_factory.mktemp("corpus")
    for part in ("train", "dev"):
        path = folder / f"{part}.spacy"
        assert command("convert", "sample")(SAMPLE / "dev.jsonl", path).exit_code == 0
        docs = read_docbin(path, Vocab())
        for doc in docs:
            doc.spans["sc"] = doc.ents
        write_docbin(docs, path)
    return ["--train", folder / "train.spacy", "--dev", folder / "dev.spacy"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.mark.parametrize(
    ("task", "aim", "few"),
    [
        *((task, aim, 0) for task, aim in RECIPES),
        # Of other tasks, a small corpus has the same configs.
        *((*choice, recipes.FEW_WORDS) for choice in RECIPES if choice[0] == "ner"),
    ],
)
def test_each_choice_gives_a_config_that_is_whole(
    files, tmp_path, monkeypatch, request, task, aim, few
):
    monkeypatch.setattr(recipes, "FEW_WORDS", few)
    chosen = recipes.choose(task, aim, words=1, vectors=False)
    choice = ["--optimize", aim]
    if aim in ("base", "frozen"):
        choice = ["--base", request.getfixturevalue("encoder"), *["--frozen"] * (aim == "frozen")]
    out = tmp_path / "new" / "config.cfg"
    result = succeed(run(out, *files, "--task", task, *choice))
    assert f"configs/{chosen.config}" in result.stdout
    assert f"Next: spacy-psa train {out} --output training" in result.stdout
    config = load_config(out).interpolate()
    assert config["paths"]["train"] == str(files[1])
    training = config["training"]
    epochs = training["max_epochs"] or math.inf
    steps = training["max_steps"] or math.inf
    updates = min(steps, epochs * math.ceil(300 / training["batcher"]["size"]))
    assert updates / training["eval_frequency"] >= 5


@pytest.mark.parametrize(("task", "aim"), RECIPES)
def test_the_corpus_of_a_config_gives_the_steps_of_the_config(task, aim):
    recipe = RECIPES[task, aim]
    base = Config().from_disk(CONFIGS / recipe.config, interpolate=False)["training"]
    training = Config().from_disk(CONFIGS / recipe.config, interpolate=False)["training"]
    batches = base["eval_frequency"] * recipe.evaluations
    if batches >= LEAST:
        count_steps(training, recipe.evaluations, batches)
        assert training == base


@pytest.mark.parametrize("examples", [1, 30, 999, 1001, 50_000])
def test_a_small_corpus_has_as_many_updates_as_one_of_a_thousand_sentences(examples):
    training = Config().from_disk(CONFIGS / "ner/psa.cfg", interpolate=False)["training"]
    epoch = math.ceil(examples / 10)
    count_steps(training, 1, epoch)
    counted = max(epoch, LEAST)
    assert training["eval_frequency"] == counted and training["patience"] == 15 * counted
    assert training["optimizer"]["learn_rate"]["steps_per_epoch"] == counted
    assert 60 * counted <= training["max_epochs"] * epoch < 60 * counted + epoch


def test_documents_that_are_longer_than_a_batch_are_batches_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(recipes, "FEW_WORDS", 0)
    nlp = spacy.blank("en")
    words = ["Ada", *["left"] * 999]
    docs = [Doc(nlp.vocab, words=words, ents=["B-PER", *["O"] * 999]) for _ in range(150)]
    DocBin(docs=docs).to_disk(tmp_path / "docs.spacy")
    files = ["--train", tmp_path / "docs.spacy", "--dev", tmp_path / "docs.spacy"]
    result = succeed(run(tmp_path / "config.cfg", *files))
    assert "150 training examples: 14 epochs of 150 updates" in result.stdout
    training = load_config(tmp_path / "config.cfg")["training"]
    assert (training["eval_frequency"], training["max_steps"]) == (150, 14 * 150)


@pytest.mark.parametrize("aim", ["accuracy", "efficiency", "memory"])
@pytest.mark.parametrize(
    ("vectors", "words", "config"),
    [
        (False, recipes.FEW_WORDS - 1, "ner/small.cfg"),
        (True, recipes.FEW_WORDS - 1, "ner/small_vectors.cfg"),
        (True, recipes.FEW_WORDS, None),
        (False, recipes.FEW_WORDS, None),
    ],
)
def test_entities_of_a_small_corpus_have_a_config_of_their_own(aim, vectors, words, config):
    found = recipes.choose("ner", aim, words, vectors)
    assert found.config == config if config else found is RECIPES["ner", aim]


@pytest.mark.parametrize(
    ("tags", "cost"),
    [
        (["B-PER", *["O"] * 19], 3.0),
        (["B-PER", "I-PER", *["O"] * 18], 0.0),
        (["B-PER", *["O"] * 8, *[""] * 11], 0.0),  # words without annotation do not count
    ],
)
def test_missed_entities_are_dearer_where_entities_are_rare(tmp_path, tags, cost):
    docs = [Doc(spacy.blank("en").vocab, words=["Ada"] * 20, ents=tags) for _ in range(10)]
    DocBin(docs=docs).to_disk(tmp_path / "docs.spacy")
    files = ["--train", tmp_path / "docs.spacy", "--dev", tmp_path / "docs.spacy"]
    result = succeed(run(tmp_path / "config.cfg", *files))
    assert load_config(tmp_path / "config.cfg")["components"]["ner"]["recall_cost"] == cost
    assert ("recall_cost = 3.0" in result.stdout) == bool(cost)


def test_an_encoder_and_other_tasks_have_one_config_for_any_size():
    for task, aim in RECIPES:
        if task != "ner" or aim in ("base", "frozen"):
            assert recipes.choose(task, aim, 1, False) is RECIPES[task, aim]


def test_it_trains_as_it_is(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("config.cfg", *files, "--optimize", "memory", "--sentencizer").exit_code == 0
    result = succeed(
        command("train")("config.cfg", "--output", "training", "--training.max_steps", 2)
    )
    assert spacy.load("training/model-best").pipe_names == ["sentencizer", "ner"]
    assert "ENTS_F" in result.stdout and "SENTS_F" not in result.stdout


@pytest.mark.parametrize("task", ["ner", "tagger", "chunker", "parser"])
@pytest.mark.parametrize("lower", [True, False])
def test_a_config_fits_the_layers_and_the_tokenizer_of_an_encoder(files, tmp_path, task, lower):
    folder = write_encoder(tmp_path / "encoder", lower=lower, num_hidden_layers=6)
    out = tmp_path / "config.cfg"
    for frozen in (False, True):
        succeed(run(out, *files, "--task", task, "--base", folder, *["--frozen"] * frozen))
        config = load_config(out).interpolate()
        text = str(config["components"])
        assert config["paths"]["encoder"] == str(folder)
        # The frozen configs read word vectors as well.
        assert ("WordShape" in text) == (lower and not frozen)
        assert ("CharBiLSTM" in text) == (lower or frozen)
        assert ("[[3, 4, 5, 6], [1, 2]]" in text) == frozen
        assert str(folder) in text


@pytest.mark.parametrize("frozen", [False, True])
def test_a_config_reads_no_more_wordpieces_than_the_encoder(files, tmp_path, frozen):
    folder = write_encoder(tmp_path / "encoder", max_position_embeddings=50)
    config = tmp_path / "config.cfg"
    succeed(run(config, *files, "--base", folder, *["--frozen"] * frozen))
    changes = ["--training.max_steps", 1, "--training.eval_frequency", 1]
    changes += ["--paths.cache", tmp_path / "cache"] if frozen else []
    succeed(command("train")(config, "--output", tmp_path / "training", *changes))
    text = str(load_config(config)["components"])
    assert "'window': 48, 'context': 8" in text


def write_vectors(path):
    nlp = spacy.blank("en")
    nlp.vocab.reset_vectors(width=7)
    nlp.vocab.set_vector("the", numpy.ones(7, dtype="float32"))
    nlp.to_disk(path)


@pytest.mark.parametrize("aim", ["accuracy", "efficiency", "memory"])
def test_vectors_are_read_in_their_width(files, tmp_path, aim):
    write_vectors(tmp_path / "vectors")
    out = tmp_path / "config.cfg"
    succeed(run(out, *files, "--optimize", aim, "--vectors", tmp_path / "vectors"))
    tok2vec = load_config(out)["components"]["ner"]["model"]["tok2vec"]
    words = tok2vec.get("tok2vec", tok2vec)["embed"]["*"]["words"]
    assert words["width"] == 7
    assert init_nlp(load_config(out)).vocab.vectors_length == 7


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--frozen"], "--frozen is for a pretrained encoder"),
        (["--base", "no/such/encoder"], "encoder 'no/such/encoder': its config cannot be read"),
        (["--base", "{encoder}", "--vectors", "{vectors}"], "ner/pretrained.cfg reads none"),
        (
            ["--task", "parser", "--optimize", "efficiency", "--vectors", "{vectors}"],
            "parser/small.cfg reads none",
        ),
        (["--vectors", "no/such"], "no/such: no pipeline"),
        (["--lang", "zz"], "--lang zz"),
        (["--train", "none.spacy"], "none.spacy: cannot be read"),
    ],
)
def test_what_does_not_fit_is_one_error(files, tmp_path, encoder, options, reason):
    write_vectors(tmp_path / "vectors")
    paths = {"{vectors}": str(tmp_path / "vectors"), "{encoder}": str(encoder)}
    given = [paths.get(option, option) for option in options]
    assert_one_error(run(tmp_path / "config.cfg", *files, *given), reason)
    assert not (tmp_path / "config.cfg").exists()


@pytest.mark.parametrize("library", ["transformers", "tokenizers"])
def test_a_library_of_encoders_that_is_not_installed_is_one_error(
    files, tmp_path, encoder, monkeypatch, library
):
    monkeypatch.setitem(sys.modules, library, None)
    result = run(tmp_path / "config.cfg", *files, "--base", encoder)
    assert_one_error(result, f"needs {library}: pip install 'spacy-psa[pretrained]'")


def test_data_without_annotation_for_the_task_is_an_error(files, tmp_path):
    DocBin(docs=[spacy.blank("en")("Ada left")]).to_disk(tmp_path / "bare.spacy")
    options = ["--train", tmp_path / "bare.spacy", "--dev", files[3]]
    for task in ("ner", "chunker", "tagger", "parser"):
        result = run(tmp_path / "config.cfg", *options, "--task", task)
        assert_one_error(result, f"bare.spacy: has nothing to learn a {task} from")
