"""Several processes train as one does with batches of all of them."""

import math

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.util import load_config

from spacy_psa.corpora.jsonl import read_docs
from tests.helpers.parsers import chart_model
from tests.helpers.paths import CONFIGS, SAMPLE
from tests.helpers.pipelines import hash_embed, small_model
from tests.helpers.trainings import (
    digests,
    exit_codes,
    killed_at,
    killed_in,
    logged,
    make_config,
    not_a_number_in,
    run,
    run_together,
)

STEPS = 6


def without_chance(corpus, size, optimizer="sgd", reduction="mean"):
    """A training that draws no random number but for the order of examples and new rows."""
    config = make_config(
        corpus,
        optimizer,
        eval_frequency=1,
        max_steps=STEPS,
        dropout=0.0,
        batcher={"@batchers": "spacy.batch_by_sequence.v1", "size": size},
    )
    config["components"]["ner"]["reduction"] = reduction
    tok2vec = config["components"]["ner"]["model"]["tok2vec"]
    tok2vec["encode"]["lstm_input_dropout"] = 0.0
    tok2vec["embed"]["*"]["words"]["replace_rare"] = False
    return config


def column(folder, read):
    return [read(line) for line in logged(folder)]


@pytest.mark.parametrize(
    ("optimizer", "reduction"), [("sgd", "mean"), ("adam", "sum"), ("thinc", "mean")]
)
def test_two_processes_learn_as_one_with_batches_twice_as_large(
    tmp_path, corpus, optimizer, reduction
):
    one = run(tmp_path / "one", without_chance(corpus, 6, optimizer, reduction))
    two = run_together(tmp_path / "two", without_chance(corpus, 3, optimizer, reduction))
    losses = [column(folder, lambda line: line["losses"]["ner"]) for folder in (one, two)]
    assert len(losses[0]) == STEPS + 1
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    scores = [column(folder, lambda line: line["score"]) for folder in (one, two)]
    assert scores[1] == pytest.approx(scores[0], abs=1e-6)
    assert scores[0][-1] > scores[0][0]


def test_more_processes_than_documents_to_evaluate_and_batches_in_an_epoch(tmp_path, corpus):
    nlp = spacy.blank("en")
    docs = list(DocBin().from_disk(corpus).get_docs(nlp.vocab))
    few = tmp_path / "few.spacy"
    DocBin(docs=docs[:2]).to_disk(few)
    config = make_config(few, max_steps=6, eval_frequency=2)
    folder = run_together(tmp_path / "three", config, 3)
    assert len(logged(folder)) == 4
    assert (folder / "model-last").is_dir()


def test_a_killed_process_ends_the_other_and_the_training_can_go_on(tmp_path, corpus):
    config = make_config(corpus, max_steps=18)  # with dropout, unknown words, and averages
    whole = digests(run_together(tmp_path / "whole", config))
    folder = tmp_path / "killed"
    assert exit_codes(folder, config, fault=(killed_in, 13), save_every=5) == [2, -9]
    error = folder / "error-0"
    assert "another process of this training has ended" in error.read_text("utf8")
    assert "go on with --resume" in error.read_text("utf8")
    error.unlink()
    run_together(folder, config, save_every=5, resume=True)
    assert digests(folder) == whole


def test_a_training_is_resumed_with_as_many_processes(tmp_path, monkeypatch, corpus):
    config = make_config(corpus)
    with killed_at(monkeypatch, 8):
        run(tmp_path / "one", config)
    assert exit_codes(tmp_path / "one", config, resume=True) == [2, 2]
    assert (
        (tmp_path / "one" / "error-0")
        .read_text("utf8")
        .endswith(
            "was killed there with 1 process(es), not 2: resume it with 1, or start again "
            "without --resume"
        )
    )


def test_tags_that_a_component_predicts_in_training_get_the_same_rows(tmp_path, corpus):
    vocab = spacy.blank("en").vocab
    docs = list(DocBin().from_disk(corpus).get_docs(vocab))
    for doc in docs:
        for token in doc:
            token.tag_ = f"T{len(token)}"
    DocBin(docs=docs).to_disk(tmp_path / "tagged.spacy")
    config = make_config(tmp_path / "tagged.spacy", max_steps=12, eval_frequency=3)
    config["nlp"]["pipeline"] = ["tagger", "ner"]
    config["components"]["tagger"] = {"factory": "crf_tagger", "model": small_model("softmax")}
    embedders = config["components"]["ner"]["model"]["tok2vec"]["embed"]["*"]
    embedders["tags"] = {"@architectures": "spacy-psa.TagEmbed.v1", "width": 4}
    config["training"]["annotating_components"] = ["tagger"]
    # An evaluation compares the weights and rows of the processes.
    nlp = spacy.load(run_together(tmp_path / "two", config) / "model-last")
    (embedder,) = [n for n in nlp.get_pipe("ner").model.walk() if n.name == "tag_embed"]
    assert len(embedder.attrs["rows"]) > 1


def test_a_step_that_is_bad_in_one_process_is_left_out_in_all(tmp_path, corpus):
    config = make_config(corpus, max_steps=12)
    fault = (not_a_number_in, 7)
    assert exit_codes(tmp_path / "left", config, fault=fault, skip_bad_loss=True) == [0, 0]
    assert all(math.isfinite(line["losses"]["ner"]) for line in logged(tmp_path / "left"))
    assert exit_codes(tmp_path / "ended", config, fault=fault) == [2, 2]
    assert "step 7: the loss of ner is nan" in (tmp_path / "ended/error-1").read_text("utf8")


def parser_config(path, size):
    """A training of a small parser, which takes several backward passes in a step."""
    config = load_config(CONFIGS / "parser" / "sample.cfg")
    parser = config["components"]["parser"]
    # One process meets new words part by part, and so would draw other first vectors for them.
    parser.update(model=chart_model("FactoredTransformer", embed=hash_embed()), batch_spans=60)
    config["training"].update(max_steps=5, max_epochs=0, eval_frequency=1)
    config["training"]["batcher"]["size"] = size
    config["training"]["logger"]["output_file"] = "log.jsonl"
    return config.merge({"corpora": {"train": {"path": str(path)}, "dev": {"path": str(path)}}})


def test_a_parser_learns_as_in_one_process(tmp_path):
    vocab = spacy.blank("en").vocab
    docs = list(read_docs(SAMPLE / "dev.jsonl", vocab))[:40]
    DocBin(docs=docs).to_disk(tmp_path / "trees.spacy")
    one = run(tmp_path / "one", parser_config(tmp_path / "trees.spacy", 8))
    two = run_together(tmp_path / "two", parser_config(tmp_path / "trees.spacy", 4))
    losses = [column(folder, lambda line: line["losses"]["parser"]) for folder in (one, two)]
    assert len(losses[0]) == 6
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    scores = [column(folder, lambda line: line["score"]) for folder in (one, two)]
    assert scores[1] == pytest.approx(scores[0], abs=1e-3)
