"""Several processes train like one process with the batches of all of them."""

import math
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import spacy
import torch
from spacy.tokens import DocBin
from spacy.util import load_config
from thinc.api import Model
from torch import nn

from spacy_psa.corpora.jsonl import read_docs
from spacy_psa.training import gradient_exchange
from spacy_psa.training.gradient_exchange import GradientExchange
from spacy_psa.training.processes import Processes
from tests.helpers.parsers import chart_model
from tests.helpers.paths import CONFIGS, ROOT, SAMPLE
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


@pytest.mark.parametrize(("optimizer", "reduction"), [("adam", "sum"), ("thinc", "mean")])
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
    config = make_config(few, max_steps=8, eval_frequency=2)
    # The rate is halved as soon as the score stays, in all processes; else their weights differ.
    halving = {"max_rate": 1e-7, "warmup_steps": 0, "patience": 1}
    schedule = {"@schedules": "spacy-psa.warmup_halving.v1", **halving}
    config["training"]["optimizer"] = {"@optimizers": "spacy-psa.Adam.v1", "learn_rate": schedule}
    listener = {"@loggers": "spacy-psa.score_listener.v1", "logger": config["training"]["logger"]}
    config["training"]["logger"] = listener
    folder = run_together(tmp_path / "three", config, 3)
    assert len({line["score"] for line in logged(folder)}) == 1
    assert len(logged(folder)) == 5
    assert (folder / "model-last").is_dir()


@pytest.fixture(scope="module")
def whole(tmp_path_factory, corpus):
    """The files of a training in two processes that was never killed."""
    config = make_config(corpus, max_steps=18)  # with dropout, unknown words, and averages
    return digests(run_together(tmp_path_factory.mktemp("whole"), config))


def test_a_killed_process_ends_the_other_and_the_training_can_go_on(tmp_path, corpus, whole):
    config = make_config(corpus, max_steps=18)
    folder = tmp_path / "killed"
    assert exit_codes(folder, config, fault=(killed_in, 13), save_every=5) == [2, -9]
    error = folder / "error-0"
    assert "another process of this training has ended" in error.read_text("utf8")
    assert "continue with --resume" in error.read_text("utf8")
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


class Twins(Processes):
    """This process and another one, which has the same gradients."""

    def __init__(self):
        super().__init__(0, 2)
        self.sent = []

    def add(self, tensor):
        self.sent.append(len(tensor))
        return lambda: tensor.mul_(2.0)  # the sum is only there when it is waited for


def gradients(module):
    return [p.grad for p in module.parameters()]


@pytest.fixture
def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


@pytest.mark.parametrize("bucket", [1, 10, 10**6])
@pytest.mark.parametrize("passes", [0, 1, 2])
def test_gradients_are_weighted_sums_in_buckets_of_any_size(monkeypatch, module, bucket, passes):
    monkeypatch.setattr(gradient_exchange, "BUCKET", bucket)
    inputs = torch.randn(5, 3)
    for _ in range(passes):
        module(inputs).sum().backward()
    alone = gradients(module)
    module.zero_grad()
    exchange = GradientExchange(Twins())
    for _ in range(2):  # steps
        exchange.begin({module: 0.25}, {}, {})
        for _ in range(passes):
            module(inputs).sum().backward()
        assert exchange.finish([3.0]) == [6.0]
        for found, wanted in zip(gradients(module), alone, strict=True):
            if passes:
                torch.testing.assert_close(found, wanted * 0.5)
            else:
                assert found is None
        module.zero_grad()


def test_buckets_are_sent_before_the_backward_pass_is_over(monkeypatch, module):
    monkeypatch.setattr(gradient_exchange, "BUCKET", 1)
    processes = Twins()
    exchange = GradientExchange(processes)
    exchange.begin({module: 1.0}, {}, {})
    sent = []
    module[0].weight.register_hook(lambda _: sent.extend(processes.sent))
    module(torch.randn(5, 3)).sum().backward()
    assert sorted(sent) == [2 + 1, 4 + 1, 8 + 1]  # all others, each with its flag
    exchange.finish()
    assert len(processes.sent) == 4 + 1


def test_a_parameter_without_a_gradient_in_any_process_stays_without(module):
    exchange = GradientExchange(Twins())
    exchange.begin({module: 1.0}, {}, {})
    module[0](torch.randn(5, 3)).sum().backward()
    exchange.finish()
    assert [grad is None for grad in gradients(module)] == [False, False, True, True]


def test_of_a_table_only_the_rows_that_are_read_are_sent():
    table = nn.Embedding(1000, 3)
    processes = Twins()
    exchange = GradientExchange(processes)
    exchange.begin({table: 1.0}, {}, {table.weight: torch.tensor([0, 7, 30])})
    table(torch.tensor([7, 7])).sum().backward()
    exchange.finish()
    assert max(processes.sent) == 3 * 3 + 1
    assert table.weight.grad[7].tolist() == [4.0] * 3
    assert float(table.weight.grad.sum()) == 12.0


def test_parameters_of_thinc_are_sent_too():
    node = Model("one", lambda *_: None, params={"w": numpy.ones((2, 2), dtype="f"), "none": None})
    exchange = GradientExchange(Twins())
    exchange.begin({}, {node: 0.5}, {})
    node.inc_grad("w", numpy.full((2, 2), 3.0, dtype="f"))
    exchange.finish()
    assert node.get_grad("w").tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_a_module_that_is_made_anew_is_watched(module):
    exchange = GradientExchange(Twins())
    for layer in (module, nn.Linear(3, 2)):
        exchange.begin({layer: 1.0}, {}, {})
        layer(torch.ones(1, 3)).sum().backward()
        exchange.finish()
    assert layer.bias.grad.tolist() == [2.0, 2.0]


DYING = """
import os
from tests.helpers.trainings import killed_in
if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    killed_in(13)
"""


def torchrun(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    launch = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", *options]
    train = ["-m", "spacy_psa", "train", str(folder / "config.cfg"), "--output", str(folder)]
    further = ["--resume", "--save-every", "5", "--code", str(folder / "code.py")]
    return subprocess.run(
        [sys.executable, "-m", *launch, *train, *further], capture_output=True, text=True, cwd=ROOT
    )


def test_torchrun_goes_on_after_a_process_was_killed(tmp_path, corpus, whole):
    config = make_config(corpus, max_steps=18)
    folder = tmp_path / "torchrun"
    folder.mkdir()
    config["training"]["logger"]["output_file"] = str(folder / "log.jsonl")
    config.to_disk(folder / "config.cfg")
    (folder / "code.py").write_text(DYING, encoding="utf8")

    done = torchrun(folder, "--max-restarts", "1")
    assert done.returncode == 0, done.stderr
    # The other process ends soon after the killed one; torchrun names the first that it looks at.
    assert "failed (exitcode: " in done.stderr
    assert "Resuming after step 10" in done.stdout
    assert done.stdout.count("Saved the pipeline to") == 1

    model = {name: digest for name, digest in whole.items() if name.endswith("ner/model")}
    found = digests(folder)
    assert model and {name: found[name] for name in model} == model
