"""`spacy-psa find-errors` and `correct`: from a damaged corpus to a corrected one."""

import json
from functools import partial

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.util import load_config

from spacy_psa.corpora.docbin import read_docbin, write_docbin
from spacy_psa.laboratory.experiments.processes import start
from spacy_psa.laboratory.find_errors import MODULE, Fold
from spacy_psa.laboratory.find_errors import find_errors as search
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.paths import CONFIGS
from tests.helpers.patience import PATIENCE, wait_for
from tests.helpers.pipelines import entities, make_examples, make_nlp, small_encoder, small_model

find_errors, correct = command("find-errors"), command("correct")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    nlp = make_nlp()
    optimizer = nlp.initialize(lambda: make_examples(nlp))
    optimizer.learn_rate = 0.02
    for _ in range(30):
        nlp.update(make_examples(nlp), sgd=optimizer)
    path = tmp_path_factory.mktemp("models") / "model"
    nlp.to_disk(path)
    return path


@pytest.fixture
def corpus(tmp_path):
    docs = [example.reference for example in make_examples(spacy.blank("en"))]
    write_docbin(docs, tmp_path / "dev.spacy")
    for i, doc in enumerate(docs):
        doc.user_data["document"] = i // 2
    docs[0].set_ents([Span(docs[0], 0, 2, "ORG"), *list(docs[0].ents)[1:]])
    write_docbin(docs, tmp_path / "train.spacy")
    return tmp_path


@pytest.fixture
def config(corpus):
    settings = load_config(CONFIGS / "ner" / "bilstm_crf.cfg")
    settings["components"]["ner"]["model"] = small_model(encoder=small_encoder("BiLSTM"))
    settings["paths"].update(train=str(corpus / "train.spacy"), dev=str(corpus / "dev.spacy"))
    settings["training"].update(max_steps=2, max_epochs=0, eval_frequency=1)
    settings["initialize"]["vectors"] = None
    settings.to_disk(corpus / "config.cfg")
    return corpus / "config.cfg"


def put_label(path, label):
    doc = Doc(spacy.blank("en").vocab, words=["Ada", "Lovelace"])
    doc.set_ents([Span(doc, 0, 2, label)])
    write_docbin([doc], path)


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_errors_are_found_decided_and_corrected(model, corpus):
    source, errors, target = corpus / "train.spacy", corpus / "e.jsonl", corpus / "out.spacy"
    result = succeed(find_errors(source, "--model", model, "-o", errors))
    assert "Ada Lovelace (ORG)" in result.stdout and "Ada Lovelace (PER)" in result.stdout
    first, *others = rows_of(errors)
    assert (first["doc"], first["kind"], first["layer"]) == (0, "type", "ents")
    assert "".join(first["words"]).startswith("Ada Lovelace met")
    assert_one_error(correct(source, errors, target), "no decision yet")
    decisions = [{"number": row["number"], "accept": False} for row in [first, *others]]
    decisions += [{"number": 1, "accept": None}, {"number": 1, "accept": True}]
    lines = "".join(f"{json.dumps(each)}\n" for each in decisions)
    (corpus / "e.decisions.jsonl").write_text(lines)
    assert_one_error(correct(source, errors, source), "train.spacy: is the corpus")
    (corpus / "e.decisions.jsonl").write_text('{"number": 99, "accept": true}\n')
    assert_one_error(correct(source, errors, target), "decides about row 99, which is not in")
    (corpus / "e.decisions.jsonl").write_text(lines)
    log = corpus / "out.log.jsonl"
    assert f"1 corrections, see {log}" in correct(source, errors, target).stdout
    vocab = spacy.blank("en").vocab
    corrected, expected = (read_docbin(path, vocab) for path in (target, corpus / "dev.spacy"))
    assert [entities(doc) for doc in corrected] == [entities(doc) for doc in expected]
    assert rows_of(log) == [first]
    (corpus / "e.decisions.jsonl").unlink()
    above = correct(source, errors, target, "--above", first["chance"])
    assert "corrections" in above.stdout
    assert_one_error(correct(target, errors, corpus / "twice.spacy", "--above", 0), "row 1")


def test_folds_are_judged_by_the_others_and_not_trained_twice(config, corpus):
    arguments = corpus / "train.spacy", "--config", config, "--folds", 2, "--jobs", 2
    output = "-o", corpus / "errors.jsonl"
    folder = corpus / "errors-folds"
    first = f"serve {folder / 'fold-1' / 'model-best'} --review"
    assert first in succeed(find_errors(*arguments, *output)).stdout
    logs = [(folder / name / "output.txt").read_text() for name in ("fold-1", "fold-2")]
    learned = [len(read_docbin(folder / f"fold-{i}" / "train.spacy", spacy.blank("en").vocab))
               for i in (1, 2)]  # fmt: skip
    assert sum(learned) == 8 and 0 not in learned
    before = (corpus / "errors.jsonl").read_bytes()
    assert find_errors(*arguments, *output).exit_code == 0
    assert (corpus / "errors.jsonl").read_bytes() == before
    for name, log in zip(("fold-1", "fold-2"), logs):
        again = (folder / name / "output.txt").read_text().removeprefix(log)
        assert "is finished" in again


def test_the_training_of_a_fold_ends_with_the_process_that_started_it(config, corpus):
    settings = load_config(config)
    settings["training"]["max_steps"] = 10**6
    settings.to_disk(config)
    process = start(corpus, ["-1"], module=MODULE)
    try:
        wait_for((corpus / "model-last").exists)
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(PATIENCE) == 1
    finally:
        process.kill()


def test_docs_without_annotation_are_counted_in_all_folds(model, corpus):
    nlp = spacy.blank("en")
    docs = read_docbin(corpus / "train.spacy", nlp.vocab)
    bare = [Doc(nlp.vocab, words=[token.text for token in doc]) for doc in docs]
    write_docbin([*docs, *bare], corpus / "half.spacy")
    folds = [Fold(list(range(8)), model), Fold(list(range(8, 16)), model)]
    rows, found, _ = search(corpus / "half.spacy", corpus / "errors.jsonl", lambda docs: folds)
    assert rows and {row["doc"] for row in rows} <= set(range(8)) and found.bare == 8
    write_docbin(bare, corpus / "bare.spacy")
    none = find_errors(corpus / "bare.spacy", "--model", model, "-o", corpus / "none.jsonl")
    assert_one_error(none, "bare.spacy: no document has annotation of ner")
    assert not (corpus / "none.jsonl").exists()


def test_a_component_that_is_not_asked_is_one_error(corpus):
    nlp = spacy.blank("en")
    nlp.add_pipe("spancat")
    nlp.to_disk(corpus / "nested")
    result = find_errors(corpus / "train.spacy", "--model", corpus / "nested")
    assert_one_error(
        result, "no crf_ner, crf_spans, crf_chunker, crf_tagger or constituency_parser among"
    )


def test_folds_are_not_trained_for_a_component_that_cannot_be_asked(config, corpus):
    result = find_errors(corpus / "train.spacy", "--config", config, "--pipe", "parser")
    assert_one_error(result, "--pipe parser: no such crf_ner")
    settings = load_config(config)
    settings["components"]["ner"] = {"factory": "ner"}
    settings.to_disk(config)
    assert_one_error(find_errors(corpus / "train.spacy", "--config", config), "no crf_ner")
    settings["components"]["ner"] = {"factory": "crf_nix"}
    settings.to_disk(config)
    result = find_errors(corpus / "train.spacy", "--config", config)
    assert_one_error(result, "config.cfg: no pipeline can be made")
    assert not (corpus / "errors-folds").exists()


def test_a_list_with_decisions_is_not_replaced(model, corpus):
    ask = partial(find_errors, corpus / "train.spacy", "--model", model, "-o")
    succeed(ask(corpus / "e.jsonl"))
    before = (corpus / "e.jsonl").read_bytes()
    (corpus / "e.decisions.jsonl").write_text('{"number": 1, "accept": true}\n')
    assert_one_error(ask(corpus / "e.jsonl"), "e.decisions.jsonl: has decisions about an earlier")
    assert (corpus / "e.jsonl").read_bytes() == before
    assert_one_error(ask(corpus), "is a folder")
    assert_one_error(ask(corpus / "train.spacy"), "is the corpus")


def test_bad_arguments_cause_one_line_and_code_2(model, config, corpus):
    source = corpus / "train.spacy"
    assert_one_error(find_errors(source), "use --model PIPELINE or --config")
    assert_one_error(find_errors(source, "--model", model, "--paths.dev", "x"), "--paths.dev")
    put_label(corpus / "other.spacy", "FULL NAME")
    other = find_errors(corpus / "other.spacy", "--model", model)
    assert_one_error(other, "other.spacy: ner: the annotation has the label 'FULL NAME'")
    for option in ("--folds", "--jobs", "--seed", "--work"):
        needless = find_errors(source, "--model", model, option, 2)
        assert_one_error(needless, f"{option}: is for --config, not for --model")
    few = find_errors(source, "--config", config, "--folds", 5)
    assert_one_error(few, "4 document(s) are too few for 5 folds")
    settings = load_config(config)
    settings["corpora"]["dev"]["path"] = None
    settings.to_disk(config)
    assert_one_error(find_errors(source, "--config", config, "--folds", 2), "dev")
    (corpus / "bad.jsonl").write_text("{}\n")
    bad = correct(source, corpus / "bad.jsonl", corpus / "out.spacy", "--above", 0.5)
    assert_one_error(bad, "bad.jsonl:1: not a line")
    assert not (corpus / "out.spacy").exists()
