"""`spacy-psa analyze`: JSON and two pictures of each analysis, and one line for what is wrong."""

import json

import numpy
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_psa.analysis.attention import inspect
from spacy_psa.errors import InputError
from spacy_psa.laboratory.analyses.ablation import check_encoder, recalls
from spacy_psa.scoring.result import read_examples
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.pipelines import (
    hash_embed,
    make_examples,
    make_nlp,
    small_encoder,
    small_model,
    train,
)
from tests.laboratory.analyses.test_parser_ablation import examples as tree_examples
from tests.laboratory.analyses.test_parser_ablation import make as make_parser


def analyze(name, *words):
    return command("analyze", name)(*words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three pipelines and the data that they have learned."""
    folder = tmp_path_factory.mktemp("analyze")
    encoders = {
        "psa": small_encoder(),
        "heads": {"@architectures": "spacy-psa.SelfAttentiveBiLSTM.v1", "hidden": 6, "heads": 3},
        "bilstm": small_encoder("BiLSTM"),
    }
    for name, encoder in encoders.items():
        nlp = make_nlp(small_model(encoder=encoder))
        train(nlp, steps=10)
        nlp.to_disk(folder / name)
    DocBin(docs=[eg.reference for eg in make_examples(nlp)]).to_disk(folder / "dev.spacy")
    return folder


@pytest.fixture
def place(folder, tmp_path, monkeypatch):
    """The current folder; `folder` has the models."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def figures(place, name):
    """The figures of an analysis, whose pictures are there, too."""
    assert (place / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (place / f"{name}.svg").read_text(encoding="utf8")
    record = json.loads((place / f"{name}.json").read_text(encoding="utf8"))
    assert record["analysis"] == name and {"versions", "machine", "commit"} <= record.keys()
    return record["figures"]


def test_attention_of_a_sentence_and_of_a_word(folder, place):
    assert analyze("attention", folder / "heads", "Ada met Bob").exit_code == 0
    found = figures(place, "attention")
    (heads,) = found["layers"]
    assert len(heads) == 3
    assert all(sum(row) == pytest.approx(1, abs=1e-5) for matrix in heads for row in matrix)
    assert analyze("attention", folder / "psa", "Ada met Bob", "--word", "met").exit_code == 0
    found = figures(place, "attention")
    assert found["word"] == 1 and [len(layer) for layer in found["layers"]] == [1, 1]
    assert found["layers"][0][0][1] == 0  # PSA does not attend to the token itself


def test_a_word_that_is_there_twice_is_said_to_be_drawn_once(folder, place):
    result = analyze("attention", folder / "psa", "Ada met Ada", "--word", "Ada")
    assert result.exit_code == 0 and figures(place, "attention")["word"] == 0
    assert result.stderr == "--word Ada: is there 2 times; the first one is drawn\n"
    assert analyze("attention", folder / "psa", "Ada met Ada", "--word", "met").stderr == ""


@pytest.fixture
def reading_tags(place):
    """A function that makes a pipeline whose encoder reads the tags of rules."""

    def make(encoder):
        embed = {"@architectures": "spacy-psa.TagEmbed.v1", "width": 4}
        encode = {"@architectures": f"spacy-psa.{encoder}.v1", "hidden": 10}
        tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
        model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": tok2vec}
        nlp = spacy.blank("en")
        rules = nlp.add_pipe("attribute_ruler")
        nlp.add_pipe("crf_ner", name="ner", config={"model": model})
        examples = make_examples(nlp)
        optimizer = nlp.initialize(lambda: examples)
        for word in {token.text for example in examples for token in example.reference}:
            rules.add(patterns=[[{"ORTH": word}]], attrs={"TAG": word.upper()})
        for _ in range(20):
            nlp.update(examples, sgd=optimizer, annotates=["attribute_ruler"])
        nlp.to_disk(place / "tags")
        return nlp

    return make


def test_attention_is_that_over_what_the_components_before_it_predict(place, reading_tags):
    nlp = reading_tags("PSABiLSTM")
    rules, ner = nlp.get_pipe("attribute_ruler"), nlp.get_pipe("ner")
    assert analyze("attention", "tags", "Ada met Bob").exit_code == 0
    found = figures(place, "attention")["layers"][0][0]
    (seen,) = inspect(ner, [rules(nlp.make_doc("Ada met Bob"))])
    (blind,) = inspect(ner, [nlp.make_doc("Ada met Bob")])
    numpy.testing.assert_allclose(found, seen.layers[0].attention, atol=1e-6)
    assert not numpy.allclose(found, blind.layers[0].attention, atol=1e-6)


def test_blocks_are_zeroed_in_the_whole_pipeline(folder, place, reading_tags):
    nlp = reading_tags("SelfAttentiveBiLSTM")
    assert analyze("blocks", "tags", folder / "dev.spacy").exit_code == 0
    examples = read_examples(nlp, folder / "dev.spacy")
    whole = [Example(nlp(eg.predicted.copy()), eg.reference) for eg in examples]
    for label, row in figures(place, "blocks")["type"]["HC"].items():
        gold = [t.ent_type_ or "NONE" for eg in whole for t in eg.reference]
        said = [t.ent_type_ or "NONE" for eg in whole for t in eg.predicted]
        right = sum(a == b == label for a, b in zip(gold, said, strict=True))
        assert row["recall"] == pytest.approx(right / gold.count(label))


def test_a_dollar_in_a_word_or_a_name_is_drawn_as_it_is(folder, place):
    odd = "a$\\frac$b"
    for name in ("attention", "gates"):
        assert analyze(name, folder / "psa", f"It costs {odd}").exit_code == 0
        assert odd in figures(place, name)["words"]
    assert analyze("attention", folder / "psa", odd, "--word", odd).exit_code == 0
    assert figures(place, "attention")["word"] == 0
    assert analyze("lengths", folder / "dev.spacy", f"$x^$={folder / 'psa'}").exit_code == 0
    assert [*figures(place, "lengths")["models"]] == ["$x^$"]


def test_no_json_is_written_if_a_picture_cannot_be(folder, place):
    (place / "attention.svg").mkdir()
    assert analyze("attention", folder / "psa", "Ada met Bob").exit_code == 2
    assert not (place / "attention.json").exists()


@pytest.fixture(scope="module")
def shared(folder):
    """A pipeline whose recognizer listens to a self-attentive encoder."""
    nlp = spacy.blank("en")
    encode = {"@architectures": "spacy-psa.SelfAttentiveBiLSTM.v1", "hidden": 6, "heads": 3}
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": hash_embed(), "encode": encode}
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 24}
    nlp.add_pipe("tok2vec", config={"model": tok2vec})
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": listener}
    nlp.add_pipe("crf_ner", name="ner", config={"model": model})
    train(nlp, steps=2)
    nlp.to_disk(folder / "shared")
    return nlp


def test_blocks_of_a_shared_encoder_are_refused_with_advice_that_works(folder, place, shared):
    advice = 'nlp.replace_listeners("tok2vec", "ner", ["model.tok2vec"])'
    assert_one_error(analyze("blocks", folder / "shared", folder / "dev.spacy"), advice)
    nlp = spacy.load(folder / "shared")
    nlp.replace_listeners("tok2vec", "ner", ["model.tok2vec"])
    nlp.to_disk(place / "own")
    succeed(analyze("blocks", "own", folder / "dev.spacy"))
    assert [*figures(place, "blocks")["chunk"]] == ["HC", "H", "C", "C1", "C2", "C3"]


def test_the_advice_names_the_listener_inside_a_memory(folder, place):
    nlp = spacy.load(folder / "shared")
    listener = nlp.get_pipe_config("ner")["model"]["tok2vec"]
    memory = {"@architectures": "spacy-psa.DocumentMemory.v1", "tok2vec": listener, "width": 8}
    model = {"@architectures": "spacy-psa.CRF.v1", "tok2vec": memory}
    nlp.add_pipe("crf_ner", name="wide", config={"model": model}).add_label("PER")
    with pytest.raises(InputError, match=r'"tok2vec", "wide", \["model.tok2vec.tok2vec"\]'):
        check_encoder(nlp, "wide")


def test_a_listener_is_told_to_name_the_component_that_it_listens_to(folder, place, shared):
    assert_one_error(
        analyze("attention", folder / "shared", "Ada", "--pipe", "ner"), "it listens", "(--pipe)"
    )
    assert analyze("attention", folder / "shared", "Ada", "--pipe", "tok2vec").exit_code == 0


def write_docs(nlp, path, *labels):
    """A document with an entity of each label; None for one without annotation."""
    docs = []
    for label in labels:
        iob = None if label is None else [f"B-{label}", "O"]
        docs.append(Doc(nlp.vocab, words=["Ada", "met"], ents=iob))
    DocBin(docs=docs).to_disk(path)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["blocks", "heads", "bare.spacy"], "bare.spacy: has no gold annotation for 'ner'"),
        (
            ["blocks", "heads", "other.spacy"],
            "other.spacy: document 2 has the label 'GPE', which 'ner' of ",
        ),
        (["lengths", "bare.spacy", "psa"], "bare.spacy: has no gold annotation for ents_f"),
    ],
)
def test_data_that_does_not_fit_is_one_error_that_names_it(folder, place, words, reason):
    nlp = spacy.load(folder / "heads")
    write_docs(nlp, place / "bare.spacy", None)
    write_docs(nlp, place / "other.spacy", "PER", "GPE")
    name, *rest = words
    paths = [place / word if word.endswith(".spacy") else folder / word for word in rest]
    assert_one_error(analyze(name, *paths), reason)
    assert sorted(path.name for path in place.iterdir()) == ["bare.spacy", "other.spacy"]


def test_gates_are_told_and_drawn(folder, place):
    result = analyze("gates", folder / "psa", "Ada met Bob")
    found = figures(place, "gates")
    line = result.stdout.splitlines()[1].split("\t")
    assert line == ["met", *(f"{layer[1]:.3f}" for layer in found["layers"])]


def test_lengths_add_up_to_the_score_of_the_pipeline(folder, place):
    words = [f"psa={folder / 'psa'}", f"base={folder / 'bilstm'}", "--edge", 4, "--edge", 7]
    succeed(analyze("lengths", folder / "dev.spacy", *words))
    found = figures(place, "lengths")
    assert found["score"] == "ents_f" and [*found["models"]] == ["psa", "base"]
    for name, model in (("psa", "psa"), ("base", "bilstm")):
        nlp = spacy.load(folder / model)
        bins = found["models"][name]
        assert [each["tokens"] for each in bins] == ["1-3", "4-6", "7+"]
        right, given, gold = (sum(b[k] for b in bins) for k in ("right", "predicted", "gold"))
        score = nlp.evaluate(read_examples(nlp, folder / "dev.spacy"))["ents_f"]
        assert 2 * right / (given + gold) == pytest.approx(score)


def test_logs_of_trainings_are_compared(place):
    for name, scores in (("a", [0.0, 0.5, 0.6]), ("b", [0.0, 0.6, 0.6])):
        rows = [
            {"epoch": n, "step": 10 * n, "score": s, "scores": {}, "losses": {}}
            for n, s in enumerate(scores)
        ]
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = analyze("convergence", "a=a.jsonl", "b=b.jsonl")
    assert "b: best 60.00; 90% in epoch 1, 95% in epoch 1, 99% in epoch 1" in result.stdout
    assert figures(place, "convergence")["a"]["reached"]["99"] == 2.0


def test_recalls_without_heads(folder, place):
    assert analyze("blocks", folder / "heads", folder / "dev.spacy").exit_code == 0
    found = figures(place, "blocks")
    nlp = spacy.load(folder / "heads")
    plain = recalls(nlp.get_pipe("ner"), read_examples(nlp, folder / "dev.spacy"))
    assert [*found["chunk"]] == ["HC", "H", "C", "C1", "C2", "C3"]
    assert {*found["type"]["HC"]} == {"LOC", "NONE", "ORG", "PER"}
    for setup, row in plain.items():
        for name, recall in row.items():
            assert found["chunk"][setup][name]["recall"] == recall.rate


def test_a_parser_without_position(place):
    nlp = make_parser()
    nlp.initialize(lambda: tree_examples(nlp))
    nlp.to_disk(place / "parser")
    DocBin(docs=[eg.reference for eg in tree_examples(nlp)]).to_disk(place / "trees.spacy")
    result = succeed(analyze("parser", "parser", "trees.spacy", "--window", 2))
    assert "| layers | without content | without position |" in result.stdout
    rows = figures(place, "parser")["rows"]
    assert len(rows) == 9 and all(0 <= row["f"] <= 1 for row in rows)


def test_position_encodings(place):
    assert analyze("positions", "--width", 16, "--distance", 5).exit_code == 0
    found = figures(place, "positions")
    assert found["plain"]["16"][5] == pytest.approx(8)  # 16 / 2 cosines of 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["attention", "psa", "Ada met", "--word", "Bob"], "--word Bob: is not in the sentence"),
        (["attention", "psa", " ".join("a" * 81)], "81 tokens are too many"),
        (["attention", "psa", ""], "TEXT: has no token"),
        (["attention", "bilstm", "Ada"], "holds no encoder with attention"),
        (["attention", "psa", "Ada", "--pipe", "nre"], "--pipe nre: no such component; choose ner"),
        (["attention", "none", "Ada"], "none: no pipeline to open"),
        (["gates", "heads", "Ada met"], "no gates"),
        (["lengths", "dev.spacy", "psa", "--edge", "9", "--edge", "5"], "9, 5: use numbers"),
        (["lengths", "dev.spacy", "psa", "--edge", "1"], "--edge: 1: use numbers from 2 on"),
        (["lengths", "dev.spacy", "psa", "--score", "tag_acc"], "psa: the pipeline has no"),
        (["lengths", "none.spacy", "psa"], "none.spacy: cannot be read (No such file"),
        (["lengths", "dev.spacy", "psa", "psa"], "two rows have this name"),
        (["convergence", "none.jsonl"], "none.jsonl: there is no training log"),
        (["blocks", "psa", "dev.spacy"], "of its own, and the pipeline has none"),
        (["blocks", "heads", "dev.spacy", "--pipe", "nre"], "nre: is not a crf_ner"),
        (["parser", "psa", "dev.spacy"], "no constituency_parser among its components (ner)"),
        (["positions", "--width", "0"], "width is 0"),
    ],
)
def test_what_cannot_be_analyzed_is_one_error(folder, monkeypatch, words, reason):
    monkeypatch.chdir(folder)
    assert_one_error(analyze(*words), reason)
    assert not list(folder.glob("*.json")) and not list(folder.glob("*.png"))
