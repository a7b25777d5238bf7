"""`spacy-psa analyze`: JSON and two pictures of each analysis, and one line for what is wrong."""

import json

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_psa.analysis.ablation import recalls
from spacy_psa.scoring.result import read_examples
from tests.analysis.test_parser_ablation import examples as tree_examples
from tests.analysis.test_parser_ablation import make as make_parser
from tests.helpers.commands import assert_one_error, command
from tests.helpers.pipelines import make_examples, make_nlp, small_encoder, small_model, train


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


def test_gates_are_told_and_drawn(folder, place):
    result = analyze("gates", folder / "psa", "Ada met Bob")
    found = figures(place, "gates")
    line = result.stdout.splitlines()[1].split("\t")
    assert line == ["met", *(f"{layer[1]:.3f}" for layer in found["layers"])]


def test_lengths_add_up_to_the_score_of_the_pipeline(folder, place):
    words = [f"psa={folder / 'psa'}", f"base={folder / 'bilstm'}", "--edge", 4, "--edge", 7]
    result = analyze("lengths", folder / "dev.spacy", *words)
    assert result.exit_code == 0, result.output
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
    result = analyze("parser", "parser", "trees.spacy", "--window", 2)
    assert result.exit_code == 0, result.output
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
        (["attention", "bilstm", "Ada"], "has no encoder with attention"),
        (["attention", "psa", "Ada", "--pipe", "nre"], "--pipe nre: no such component; take ner"),
        (["attention", "none", "Ada"], "none: no pipeline to open"),
        (["gates", "heads", "Ada met"], "no gates"),
        (["lengths", "dev.spacy", "psa", "--edge", "9", "--edge", "5"], "do not rise"),
        (["lengths", "dev.spacy", "psa", "--score", "tag_acc"], "has no tag_acc"),
        (["lengths", "none.spacy", "psa"], "none.spacy: "),
        (["lengths", "dev.spacy", "psa", "psa"], "two rows have this name"),
        (["convergence", "none.jsonl"], "none.jsonl: there is no training log"),
        (["blocks", "psa", "dev.spacy"], "has no trained SelfAttentiveBiLSTM.v1"),
        (["blocks", "heads", "dev.spacy", "--pipe", "nre"], "nre: is no crf_ner"),
        (["parser", "psa", "dev.spacy"], "has no trained FactoredTransformer.v1"),
        (["positions", "--width", "0"], "width is 0"),
    ],
)
def test_what_cannot_be_analyzed_is_one_error(folder, monkeypatch, words, reason):
    monkeypatch.chdir(folder)
    assert_one_error(analyze(*words), reason)
    assert not list(folder.glob("*.json")) and not list(folder.glob("*.png"))
