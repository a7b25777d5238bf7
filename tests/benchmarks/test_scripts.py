"""The scripts of benchmarks/ on small pipelines: what they measure is right and fits the format."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from spacy.vectors import Vectors
from thinc.api import Adam
from typer.testing import CliRunner

from benchmarks import corpora
from benchmarks.calibration import shift
from benchmarks.confidence import cost
from benchmarks.conll2003 import by_vocabulary, significance
from benchmarks.dev_run import development_record
from benchmarks.parser import predicted_tags
from benchmarks.partial_annotation.train import as_outside, hide
from benchmarks.record import explained, read_record, save_record
from benchmarks.reliability import kills, mutations
from benchmarks.reliability.text import read_report
from benchmarks.small_data.train import config_of, joined, sample
from benchmarks.speed import first_document, products
from benchmarks.speed.bare import Bare, BareTraining
from benchmarks.wrap import wrap
from spacy_psa.app import app
from spacy_psa.corpora.docbin import write_docbin
from spacy_psa.errors import InputError
from spacy_psa.laboratory.performance import sections
from spacy_psa.laboratory.performance.pipelines import Annotation
from spacy_psa.scoring.result import measure
from tests.helpers.commands import succeed
from tests.helpers.encoders import write_encoder
from tests.helpers.paths import ROOT
from tests.helpers.pipelines import make_examples, make_nlp, train


@pytest.fixture
def gold(trained, tmp_path):
    """A .spacy file with the sentences that the pipeline knows."""
    path = tmp_path / "gold.spacy"
    DocBin(docs=[eg.reference for eg in make_examples(trained)]).to_disk(path)
    return path


def saved(record, folder):
    """The record after it was written and read."""
    save_record(record, folder / f"{record['name']}.json")
    return read_record(folder / f"{record['name']}.json")


def test_a_report_becomes_a_record(trained, trained_path, gold, tmp_path):
    product = measure(trained, str(trained_path), gold)
    scores = {"ents_f": 0.5, "ents_per_type": {"PER": {"f": 0.5}}}
    product["genres"] = {"news": {"words": 3, "scores": scores}}
    setup = {"system": "small"}
    record = saved(wrap(product, "conll2003", "small", command="a b", setup=setup), tmp_path)
    assert record["kind"] == "training" and record["command"] == "a b"
    assert record["results"]["scores"] == product["scores"]
    assert record["results"]["genres"] == {"news": {"words": 3, "scores": {"ents_f": 0.5}}}
    assert record["results"]["setup"] == setup and record["results"]["dev"] == []
    assert record["config"] == product["config"] and record["data"] == product["data"]


def test_sections_of_speed_become_a_record(trained, gold, tmp_path):
    row = Annotation("small", trained, [["Nobody", "came", "."]])
    found = {"annotation": {"words": 3, "rows": sections.timed([row], 2)}}
    product = sections.record("a b", {"threads": 1}, {"small": "model"}, [gold], found)
    record = saved(wrap(product, "speed", "small"), tmp_path)
    assert record["kind"] == "speed" and record["command"] == "a b"
    assert record["results"]["annotation"] == found["annotation"]
    assert record["results"]["rows"] == {"small": "model"}


def test_a_calibration_becomes_a_record(trained_path, gold, tmp_path):
    out = tmp_path / "calibration.json"
    options = ["--output", tmp_path / "calibrated", "--json", out]
    words = ["calibrate", trained_path, gold, *options]
    succeed(CliRunner().invoke(app, list(map(str, words))))
    product = json.loads(out.read_text(encoding="utf8"))
    record = saved(wrap(product, "calibration", "small"), tmp_path)
    assert record["kind"] == "calibration" and record["data"] == product["checksums"]
    assert record["results"]["data"] == product["data"]


def test_another_json_file_becomes_no_record():
    with pytest.raises(InputError, match="not a JSON file of spacy-psa"):
        wrap({"format": 1, "scores": {}}, "speed", "other")


def test_a_stopped_training_is_recorded_with_its_best_evaluation(trained, gold, tmp_path):
    trained.config["training"] = {"seed": 7}
    trained.config.to_disk(tmp_path / "config.cfg")
    log = tmp_path / "log.jsonl"
    rows = [
        {"epoch": n, "step": 10 * n, "score": score, "scores": {"ents_f": 100 * score}}
        for n, score in enumerate((0.1, 0.8, 0.7))
    ]
    log.write_text("".join(json.dumps({**row, "losses": {"ner": 2.0}}) + "\n" for row in rows))
    record = saved(
        development_record(
            tmp_path / "config.cfg",
            log,
            "conll2003",
            "small-stopped",
            commit="0123abc",
            note="Stopped.",
            data=[gold],
        ),
        tmp_path,
    )
    assert record["results"]["best"]["epoch"] == 1 and len(record["results"]["dev"]) == 3
    assert record["results"]["scores"] is None and record["seed"] == 7
    assert record["commit"] == "0123abc" and record["note"].startswith("Stopped. ")
    assert explained(record["note"]) == ["command", "modified"]


def test_half_of_the_mentions_are_hidden_and_the_rest_stays(trained):
    docs = [eg.reference for eg in make_examples(trained)] * 20
    total = sum(len(doc.ents) for doc in docs)
    hidden, counts = hide(docs, 0.5, seed=0)
    assert counts["kept"] + counts["hidden"] == total
    assert 0.4 * total < counts["hidden"] < 0.6 * total
    assert sum(len(doc.ents) for doc in hidden) == counts["kept"]
    for doc, other in zip(docs, hidden):
        missing = {token.i for token in other if not token.ent_iob}
        gone = {token.i for ent in doc.ents for token in ent} - {
            token.i for ent in other.ents for token in ent
        }
        assert missing == gone
    again, _ = hide(docs, 0.5, seed=0)
    assert [[e.start for e in doc.ents] for doc in again] == [
        [e.start for e in doc.ents] for doc in hidden
    ]
    outside = as_outside(hidden)
    assert all(token.ent_iob for doc in outside for token in doc)
    assert sum(len(doc.ents) for doc in outside) == counts["kept"]


def test_entities_belong_to_the_class_of_their_least_known_word(trained, trained_path, gold):
    found = by_vocabulary.scores(str(trained_path), gold, gold)
    count = sum(len(eg.reference.ents) for eg in make_examples(trained))
    # The pipeline has no vectors, and all words are in the training data.
    assert found["without_vector"] == {"gold": count, "f": 1.0}
    assert sum(each["gold"] for each in found.values()) == count


def test_the_difference_of_two_systems_has_an_interval_and_a_p_value(trained_path, gold, tmp_path):
    untrained = make_nlp()
    untrained.initialize(lambda: make_examples(untrained))
    untrained.to_disk(tmp_path / "untrained")
    found = significance.measure([trained_path] * 2, [tmp_path / "untrained"], gold)
    assert found["psa"] == [1.0, 1.0] and len(found["baseline"]) == 1
    assert found["difference"] == pytest.approx(1.0 - found["baseline"][0])
    assert found["sentences"] == len(DocBin().from_disk(gold))
    low, high = found["interval"]
    assert 0.0 < low <= found["difference"] <= high <= 1.0 and found["p_sentences"] < 0.05
    same = significance.measure([trained_path], [trained_path], gold)
    assert same["interval"] == [0.0, 0.0] and same["p_sentences"] == 1.0


def test_the_cost_of_confidences_is_measured_for_each_task(trained_path, gold):
    found = cost.measure(str(trained_path), gold, repeats=2)
    assert set(found["seconds"]) == {"viterbi", "confidence", "nbest"}
    assert all(len(seconds) == 2 for seconds in found["seconds"].values())
    assert set(found["cost"]) == set(cost.BOUNDS)
    assert found["documents"] == len(DocBin().from_disk(gold))


def test_both_maps_of_confidences_are_measured(trained_path, gold):
    pytest.importorskip("sklearn")
    found = shift.measure(str(trained_path), "ner", gold, gold)
    spans = {found[by][part]["spans"] for by in list(found)[1:] for part in ("dev", "test")}
    assert found["temperature"] == 1.0 and len(spans) == 1
    assert found["by_isotonic_regression"]["dev"]["precision"] == 1.0


@pytest.fixture
def with_vectors():
    """A trained pipeline with word vectors for some words."""
    nlp = make_nlp()
    words = sorted({token.lower_ for eg in make_examples(nlp) for token in eg.reference})
    random = numpy.random.default_rng(0)
    data = random.normal(size=(len(words) // 2, 8)).astype("float32")
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=words[: len(data)])
    train(nlp, 30, Adam(0.02))
    return nlp


def test_the_loop_of_bare_pytorch_predicts_what_the_pipeline_predicts(with_vectors):
    examples = make_examples(with_vectors)
    sentences = [[token.text for token in eg.predicted] for eg in examples]
    pipe = with_vectors.get_pipe("ner")
    expected = [
        pipe.scheme.encode(len(doc), [(e.start, e.end, e.label_) for e in doc.ents]).tolist()
        for doc in with_vectors.pipe(eg.predicted for eg in examples)
    ]
    assert Bare(with_vectors).annotate(sentences) == expected
    assert any(any(tags) for tags in expected)


def test_the_loop_of_bare_pytorch_learns(with_vectors):
    references = [eg.reference for eg in make_examples(with_vectors)]
    loop = BareTraining("bare", with_vectors, references, batch=len(references))
    for parameter in loop.bare.modules.parameters():  # forget
        parameter.data.mul_(0.5)
    (pairs,) = loop.batches
    words, tags = zip(*pairs)
    losses = [loop.bare.step(list(words), list(tags)) for _ in range(30)]
    assert losses[-1] < 0.9 * losses[0]
    assert loop.run().amount == 1


def test_products_are_timed():
    assert products.best(4, 8) > 0


def test_tags_are_replaced_and_the_share_of_equal_ones_is_told(
    trained, trained_path, gold, tmp_path
):
    # The pipeline has no tagger, so every tag that it gives is empty.
    docs = list(DocBin().from_disk(gold).get_docs(trained.vocab))
    for doc in docs:
        for token in doc:
            token.tag_ = "NN" if token.i == 0 else ""
    DocBin(docs=docs).to_disk(tmp_path / "tagged.spacy")
    share = predicted_tags.tag(str(trained_path), tmp_path / "tagged.spacy", tmp_path / "out.spacy")
    words = sum(map(len, docs))
    assert share == pytest.approx((words - len(docs)) / words)
    written = DocBin().from_disk(tmp_path / "out.spacy").get_docs(trained.vocab)
    assert {token.tag_ for doc in written for token in doc} == {""}


def test_the_first_document_is_timed_in_a_new_process(trained_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    # "" is the cache that is there already; compiling it anew takes long.
    first, then = first_document.elsewhere(str(trained_path), "")
    assert 0 < then < first


def test_fast_paths_agree_with_the_plain_ones_and_the_command_is_recorded(
    trained_path, gold, tmp_path
):
    out = tmp_path / "exactness.json"
    script = "benchmarks.speed.exactness"
    done = subprocess.run(
        [sys.executable, "-m", script, str(trained_path), str(gold), str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    record = read_record(out)
    assert record["command"] == f"python -m {script} {trained_path} {gold} {out}"
    assert record["command"] in done.stdout
    assert record["results"]["documents_that_differ"] == 0 < record["results"]["entities"]
    assert Path(next(iter(record["data"]))) == gold


def test_files_of_a_killed_training_differ_by_content_or_if_one_is_missing(tmp_path):
    trainings = []
    for name, content in (("whole", b"a"), ("killed", b"b")):
        trainings.append(kills.Training(Path("config.cfg"), tmp_path / name, {}, 20))
        folder = trainings[-1].folder
        for model in kills.MODELS:
            (folder / model).mkdir()
            (folder / model / "meta.json").write_bytes(content)
            (folder / model / "model").write_bytes(b"same")
        (folder / "model-best" / "vocab").write_bytes(content)
        (folder / "log.jsonl").write_bytes(b"same")
    (tmp_path / "whole" / "model-last" / "tokenizer").write_bytes(b"more")
    whole, killed = (training.files() for training in trainings)
    assert kills.differing(whole, killed) == ["model-best/vocab", "model-last/tokenizer"]
    assert kills.differing(whole, whole) == []


def test_properties_are_counted_from_the_report_of_pytest():
    noted = '<properties><property name="cases" value="{}"/></properties>'
    report = ElementTree.fromstring(
        f"""<testsuites><testsuite>
        <testcase name="one" time="1.25">{noted.format(30)}</testcase>
        <testcase name="other" time="0.5">{noted.format(12)}<failure/></testcase>
        </testsuite></testsuites>"""
    )
    found = read_report(ElementTree.ElementTree(report))
    assert found["cases"] == 42 and found["failed"] == ["other"]
    assert found["properties"]["one"] == {"cases": 30, "seconds": 1.2}


def test_outcomes_of_damaged_files_are_counted_by_mutation():
    with mutations.quick():
        found = mutations.measure("brackets", 12)
    counts = [count for each in found["outcomes"].values() for count in each.values()]
    assert sum(counts) == found["files"] == 12 and found["bad"] == []


def test_a_small_sample_is_a_part_of_a_larger_one_and_drawn_by_the_seed():
    sentences = [f"sentence {i}" for i in range(50)]
    few, more = sample(sentences, 5, 1), sample(sentences, 20, 1)
    assert len(few) == 5 and set(few) < set(more)
    assert more == sorted(more, key=sentences.index)
    assert sample(sentences, 5, 2) != few == sample(sentences, 5, 1)
    assert sample(sentences, 0, 1) == sentences


def test_samples_of_a_record_stay_beside_those_of_a_new_command():
    earlier = {
        "100": {"words": 1, "ours": {"steps": 1}, "accuracy": {"steps": 2}},
        "3000": {"words": 3},
    }
    now = {"all": {"words": 9}, "100": {"words": 1, "ours": {"steps": 5}}, "1000": {"words": 2}}
    found = joined(earlier, now)
    assert list(found) == ["100", "1000", "3000", "all"]
    assert found["100"] == {"words": 1, "ours": {"steps": 5}, "accuracy": {"steps": 2}}
    assert found["3000"] == {"words": 3} and found["all"] == {"words": 9}


def test_development_sentences_follow_the_training_sentences(tmp_path):
    vocab = spacy.blank("en").vocab
    for part, words in (("train", ["One", "Two"]), ("dev", ["Three"]), ("test", ["Four"])):
        write_docbin((Doc(vocab, words=[word]) for word in words), tmp_path / f"{part}.spacy")
    found = corpora.train_dev(tmp_path)
    assert [doc.text.strip() for doc in found] == ["One", "Two", "Three"]


def test_raw_text_has_no_sentence_of_the_corpus_in_any_tokenization(tmp_path):
    vocab = spacy.blank("en").vocab
    parts = {
        "train": ["He saw a near-record deficit ."],
        "dev": ["The deficit ( so far )"],
        "test": ["A and\\/or B"],
        "wsj": [
            "He saw a near - record deficit .",
            "Prices rose .",
            "The deficit -LRB- so far -RRB-",
            "A and / or B",
        ],
    }
    for part, sentences in parts.items():
        docs = [
            Doc(vocab, words=words.split(), tags=["X"] * len(words.split())) for words in sentences
        ]
        write_docbin(docs, tmp_path / f"{part}.spacy")
    (tmp_path / "wsj").mkdir()
    (tmp_path / "wsj.spacy").rename(tmp_path / "wsj" / "train.spacy")
    (found,) = corpora.raw(tmp_path / "wsj", tmp_path)
    assert [token.text for token in found] == ["Prices", "rose", "."]
    assert not found.has_annotation("TAG")


@pytest.mark.parametrize("system", ["ours", "efficiency", "accuracy"])
def test_small_samples_are_learned_by_the_quickstart_of_each_system(system, gold):
    config = config_of(system, gold, gold, None, 7)
    nlp = init_nlp(config)
    assert nlp.has_pipe("ner") and nlp.config["system"]["seed"] == 7
    assert config_of(system, gold, gold, None, 8) != config
    often, seldom = (
        config_of(system, gold, gold, None, 7, every)["training"]["eval_frequency"]
        for every in (50, 200)
    )
    assert (often, seldom) == (50, 200) if system != "ours" else often == seldom


def test_a_frozen_encoder_is_only_in_the_system_of_this_name(gold, tmp_path):
    base = str(write_encoder(tmp_path / "encoder"))
    frozen, ours = (config_of(each, gold, gold, None, 7, base=base) for each in ("frozen", "ours"))
    assert frozen["paths"]["encoder"] == base and base not in ours.to_str()
