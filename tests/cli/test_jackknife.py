"""`spacy-psa jackknife`: taggers of folds from the command line, resumed after a kill."""

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.util import load_config

from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.corpora.readers import make_doc
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.paths import CONFIGS
from tests.helpers.pipelines import small_encoder, small_model
from tests.helpers.trainings import killed_at

jackknife = command("jackknife")
SENTENCES = [
    ("Ada left Rome", "NNP VBD NNP"),
    ("Bob saw it", "NNP VBD PRP"),
    ("it left", "PRP VBD"),
    ("Rome saw Ada", "NNP VBD NNP"),
]


@pytest.fixture
def corpus(tmp_path):
    vocab = spacy.blank("en").vocab
    docs = [
        make_doc(vocab, words.split(), tags.split(), constituents=[(0, 2, "S")])
        for words, tags in SENTENCES * 3
    ]
    write_docbin(docs, tmp_path / "train.spacy")
    write_docbin(docs[:4], tmp_path / "dev.spacy")
    return tmp_path


@pytest.fixture
def config(corpus):
    found = load_config(CONFIGS / "tagger" / "bilstm_crf.cfg")
    found["components"]["tagger"]["model"] = small_model(encoder=small_encoder("BiLSTM"))
    found["paths"]["dev"] = str(corpus / "dev.spacy")
    found["training"].update(max_steps=4, max_epochs=0, eval_frequency=2)
    found.to_disk(corpus / "config.cfg")
    return corpus / "config.cfg"


def arguments(config, *more):
    folder = config.parent
    return (config, folder / "train.spacy", folder / "out.spacy", "--folds", 3, *more)


def tags(path):
    return [[token.tag_ for token in doc] for doc in read_docbin(path, spacy.blank("en").vocab)]


def test_train_dev_and_test_get_predicted_tags_and_keep_the_rest(config):
    folder = config.parent
    applied = ("--apply", folder / "dev.spacy", "--to", folder / "dev-tagged.spacy")
    result = succeed(jackknife(*arguments(config, *applied)))
    before = list(read_docbin(folder / "train.spacy", spacy.blank("en").vocab))
    after = list(read_docbin(folder / "out.spacy", spacy.blank("en").vocab))
    assert [doc.text for doc in after] == [doc.text for doc in before]
    assert all([s.label_ for s in doc.spans["constituents"]] == ["S"] for doc in after)
    known = {"NNP", "VBD", "PRP"}
    assert {tag for found in tags(folder / "out.spacy") for tag in found} <= known
    for name in ("fold-1", "fold-2", "fold-3"):
        learned = DocBin().from_disk(folder / "out-folds" / name / "train.spacy")
        assert len(learned) == 8 and f"{name}: 8 sentences" in result.stdout
    whole = spacy.load(folder / "out-folds" / "all" / "model-best")
    assert tags(folder / "dev-tagged.spacy")[0] == [
        token.tag_ for token in whole(spacy.tokens.Doc(whole.vocab, words=["Ada", "left", "Rome"]))
    ]


def test_a_killed_run_goes_on_and_keeps_finished_folds(config, tmp_path, monkeypatch):
    folder = config.parent
    assert jackknife(*arguments(config, "--work", tmp_path / "whole")).exit_code == 0
    expected = tags(folder / "out.spacy")
    (folder / "out.spacy").unlink()
    # The first fold ends at step 4, so the second evaluation at step 2 is that of the second.
    calls = []
    from spacy_psa.laboratory import jackknife as knife

    train = knife.train

    def train_and_kill(nlp, output, **options):
        calls.append(output.name)
        if output.name != "fold-2" or calls.count("fold-2") > 1:
            return train(nlp, output, **options)
        with killed_at(monkeypatch, 2):
            train(nlp, output, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(knife, "train", train_and_kill)
    killed = jackknife(*arguments(config))
    assert killed.exit_code != 0 and not (folder / "out.spacy").exists()
    result = succeed(jackknife(*arguments(config)))
    assert "out-folds/fold-1 is finished" in result.stdout
    assert "Resuming after step 2" in result.stdout
    assert tags(folder / "out.spacy") == expected


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--apply", "a", "--to", "x.spacy"] * 2, "x.spacy: would be written twice"),
        (["--apply", "train.spacy", "--to", "train.spacy"], "train.spacy: is also read"),
        (["--folds", "13"], "12 sentence(s) are too few for 13 folds"),
        (["--apply", "dev.spacy"], "1 --apply and 0 --to"),
        (["--components.tagger.factory", "crf_tgger"], "crf_tgger"),
        (["--corpora.dev.path", "none.spacy"], "none.spacy: there is no such file"),
        (["--apply", "none.spacy", "--to", "x.spacy"], "none.spacy"),
        (["--apply", "none.spacy", "--to", "x.txt"], "must end in .spacy"),
    ],
)
def test_what_cannot_be_done_is_one_error_without_output(config, more, reason):
    assert_one_error(jackknife(*arguments(config, *more)), reason)
    assert not (config.parent / "out.spacy").exists()


def test_data_without_tags_are_named(config, tmp_path):
    doc = make_doc(spacy.blank("en").vocab, ["Ada"])
    write_docbin([doc], tmp_path / "train.spacy")
    assert_one_error(jackknife(*arguments(config)), "document 1: no parts of speech")


def test_a_config_without_tags_is_an_error_before_the_training(config):
    found = load_config(config)
    found["components"] = {"chunker": {**found["components"]["tagger"], "factory": "crf_chunker"}}
    found["nlp"]["pipeline"] = ["chunker"]
    found["initialize"]["components"] = {}
    found.to_disk(config)
    docs = [
        make_doc(spacy.blank("en").vocab, ["Ada"], ["NNP"], chunks=[(0, 1, "NP")]) for _ in range(4)
    ]
    write_docbin(docs, config.parent / "train.spacy")
    assert_one_error(jackknife(*arguments(config)), "predict no parts of speech")
    assert not (config.parent / "out-folds" / "fold-1" / "model-last").exists()


def test_a_fold_may_lack_a_label_of_the_development_data(config):
    vocab = spacy.blank("en").vocab
    rare = make_doc(vocab, ["Whose", "it"], ["WP$", "PRP"])
    for name in ("train", "dev"):
        path = config.parent / f"{name}.spacy"
        write_docbin([*read_docbin(path, vocab), rare], path)
    succeed(jackknife(*arguments(config)))
