"""`spacy-psa report` and the result that it writes, on a pipeline of spaCy's own parts."""

import hashlib
import html
import json
from pathlib import Path

import pytest
import spacy
from markdown_it import MarkdownIt
from spacy.tokens import Doc, DocBin, Span

from spacy_psa.errors import InputError
from spacy_psa.scoring import provenance
from spacy_psa.scoring.report import per_type, plain
from spacy_psa.scoring.result import best, read_log
from tests.helpers.commands import assert_one_error, command, succeed

run = command("report")
ROW = '{"epoch": %s, "step": 1, "score": 0.5, "scores": {}, "losses": {}}\n'
KEYS = {
    *("format", "date", "model", "test", "scores", "partial_credit", "support", "genres", "speed"),
    *("seed", "dev", "best", "data", "versions", "machine", "commit", "modified", "config"),
    "command",
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Finds every London, so also one that is none, and no Ada."""
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "LOC", "pattern": "London"}])
    nlp.config["training"]["seed"] = 17
    nlp.to_disk(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def test_set(tmp_path: Path) -> Path:
    vocab = spacy.blank("en").vocab
    docs = [
        Doc(vocab, words=["Ada", "saw", "London"], ents=["B-PER", "O", "B-LOC"]),
        Doc(vocab, words=["Jack", "London", "wrote"], ents=["O", "O", "O"]),
    ]
    docs[0].spans["chunks"] = [Span(docs[0], 0, 1, "NP"), Span(docs[0], 2, 3, "NP")]
    DocBin(docs=docs).to_disk(tmp_path / "test.spacy")
    return tmp_path / "test.spacy"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    rows = [(0, 0, 0.0), (1, 10, 0.5), (2, 20, 0.5), (3, 30, 0.25)]
    path.write_text(
        "".join(
            json.dumps(
                {
                    "epoch": epoch,
                    "step": step,
                    "losses": {"ner": 1.5},
                    "scores": {"ents_f": 100 * score, "speed": 1000.0},
                    "score": score,
                }
            )
            + "\n"
            for epoch, step, score in rows
        )
    )
    return path


def test_scores_are_those_of_spacys_scorer(model, test_set, tmp_path):
    succeed(run(model, test_set, "--output", tmp_path / "out"))
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["scores"]["ents_p"] == written["scores"]["ents_r"] == 0.5
    assert written["scores"]["ents_per_type"]["LOC"] == {"p": 0.5, "r": 1.0, "f": 2 / 3}
    assert written["scores"]["ents_per_type"]["PER"] == {"p": 0.0, "r": 0.0, "f": 0.0}
    assert written["support"] == {"chunks": {"NP": 2}, "ents": {"LOC": 1, "PER": 1}}
    assert "speed" not in written["scores"]
    assert None not in written["scores"].values()


def test_entities_that_no_component_predicts_get_no_partial_credit(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "model")
    doc = Doc(nlp.vocab, words=["Ada", "left"], ents=["B-PER", "O"], sent_starts=[True, False])
    DocBin(docs=[doc]).to_disk(tmp_path / "test.spacy")
    succeed(run(tmp_path / "model", tmp_path / "test.spacy", "--output", tmp_path / "out"))
    assert json.loads((tmp_path / "out.json").read_text())["partial_credit"] == {}


def test_result_has_the_documented_keys(model, test_set, log, tmp_path):
    assert run(model, test_set, "--output", tmp_path / "out", "--log", log).exit_code == 0
    written = json.loads((tmp_path / "out.json").read_text())
    assert set(written) == KEYS
    assert written["format"] == 1
    assert written["seed"] == 17
    assert written["config"]["nlp"]["lang"] == "en"
    assert written["test"] == {"path": test_set.as_posix(), "documents": 2, "words": 6}
    assert written["model"]["pipeline"] == ["entity_ruler"]
    assert written["speed"]["words"] == 6 and written["speed"]["words_per_second"] > 0
    assert written["versions"]["spacy"] == spacy.__version__
    assert written["machine"]["cores"] >= 1
    assert (written["best"]["epoch"], written["best"]["score"]) == (2, 0.5)


def test_each_genre_has_its_scores(model, test_set, tmp_path):
    docs = list(DocBin().from_disk(test_set).get_docs(spacy.blank("en").vocab))
    for doc, genre in zip(docs, ("news", "fiction")):
        doc.user_data["genre"] = genre
    DocBin(docs=docs, store_user_data=True).to_disk(test_set)
    succeed(run(model, test_set, "--output", tmp_path / "out"))
    page = (tmp_path / "out.md").read_text()
    rows = "| fiction | 3 | 0.00 |\n| news | 3 | 66.67 |"
    assert f"## By genre\n\n| Genre | Words | ents_f |\n| --- | --- | --- |\n{rows}" in page
    genres = json.loads((tmp_path / "out.json").read_text())["genres"]
    assert genres["news"]["scores"]["ents_p"] == 1 and genres["news"]["words"] == 3


def test_checksums_are_of_the_test_file_and_of_each_file_of_the_data(model, test_set, tmp_path):
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "a.txt").write_bytes(b"hello")
    (tmp_path / "b.txt").write_bytes(b"")
    arguments = ["--data", tmp_path / "data", "--data", tmp_path / "b.txt"]
    assert run(model, test_set, "--output", tmp_path / "out", *arguments).exit_code == 0
    assert json.loads((tmp_path / "out.json").read_text())["data"] == {
        test_set.as_posix(): hashlib.md5(test_set.read_bytes()).hexdigest(),
        (tmp_path / "data/deep/a.txt").as_posix(): "5d41402abc4b2a76b9719d911017c592",
        (tmp_path / "b.txt").as_posix(): "d41d8cd98f00b204e9800998ecf8427e",
    }


def test_markdown_has_the_figures_for_a_reader(model, test_set, log, tmp_path):
    result = run(model, test_set, "--output", tmp_path / "v1.0", "--log", log)
    page = (tmp_path / "v1.0.md").read_text()
    assert "| ents | 50.00 | 50.00 | 50.00 |" in page
    assert "| ents | LOC | 1 | 50.00 | 100.00 | 66.67 |" in page
    assert "| ents | exact | 50.00 | 50.00 | 50.00 |" in page
    assert "| ents | 1 token | 2 | 50.00 | 50.00 | 50.00 | 50.00 |" in page
    assert "Best: 50.00 in epoch 2, step 20." in page
    assert "| 3 | 30 | 25.00 |" in page
    assert "| run | seed | 17 |" in page
    assert '[nlp]\nlang = "en"' in page
    assert "token_" not in page.partition("## Made by")[0]
    assert "66.67" in result.stdout and "words a second" in result.stdout


@pytest.mark.parametrize(
    ("option", "content", "reason"),
    [
        ("--log", '{"epoch": 1}\n', ":1: is not a line of spacy.ConsoleLogger.v3"),
        ("--log", '{"epoch": 0, "step": 0, "losses"', ":1: is not a line of"),
        ("--log", ROW % "Infinity", ":1: is not a line of"),
        ("--log", None, "no training log"),
        ("--data", None, "no such file"),
    ],
)
def test_bad_file_gives_one_line_and_writes_nothing(
    model, test_set, tmp_path, option, content, reason
):
    if content is not None:
        (tmp_path / "given").write_text(content)
    result = run(model, test_set, "--output", tmp_path / "out", option, tmp_path / "given")
    assert_one_error(result, reason)
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("content", [b"no docbin", b"", None])
def test_bad_test_file_gives_one_line(model, tmp_path, content):
    path = tmp_path / "bad.spacy"
    if content is not None:
        path.write_bytes(content)
    result = run(model, path, "--output", tmp_path / "out")
    assert_one_error(result, str(path))


def test_documents_without_annotation_are_one_error_and_write_nothing(model, tmp_path):
    DocBin(docs=[spacy.blank("en")("Ada saw London")]).to_disk(tmp_path / "bare.spacy")
    result = run(model, tmp_path / "bare.spacy", "--output", tmp_path / "report")
    assert_one_error(result, "bare.spacy: has none of the annotation that")
    assert not list(tmp_path.glob("report*"))


def test_labels_are_shown_as_they_are(tmp_path):
    labels = ["[red]X", "[/red]x", "<b>", "a|b", "two\nlines"]
    nlp = spacy.blank("en")
    words = [f"w{i}" for i in range(len(labels))]
    patterns = [{"label": label, "pattern": w} for label, w in zip(labels, words, strict=True)]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    nlp.to_disk(tmp_path / "model")
    doc = Doc(nlp.vocab, words=words)
    doc.set_ents([Span(doc, i, i + 1, label) for i, label in enumerate(labels)])
    DocBin(docs=[doc]).to_disk(tmp_path / "test.spacy")
    result = succeed(run(tmp_path / "model", tmp_path / "test.spacy", "--output", tmp_path / "out"))
    assert "[red]X" in result.stdout and "[/red]x" in result.stdout
    rows = (tmp_path / "out.md").read_text().partition("## By type")[2]
    rows = rows.partition("## Partial credit")[0].splitlines()
    found = {row.split(" | ")[1] for row in rows if row.startswith("| ents |")}
    assert found == {"&#91;red&#93;X", "&#91;/red&#93;x", "&lt;b&gt;", "a&#124;b", "two lines"}


@pytest.mark.parametrize(
    "text",
    [
        "![x](//e.org/p.png)", "[a](javascript:b)", "`a`", "*a* __b__ _c_", "~~a~~", "<img src=x>",
        "# a", "- a", "+ a", "1. a", "2) a", "---", "a\n\n# b", "\\[a](b)", "&lt;b&gt;", "B-x_y",
    ],
)  # fmt: skip
def test_markdown_shows_a_text_as_it_is(text):
    drawn = MarkdownIt("gfm-like", {"linkify": False}).render(plain(text))
    assert drawn == f"<p>{html.escape(' '.join(text.split()))}</p>\n"


def test_log_scores_become_fractions(log):
    rows = read_log(log)
    assert [row["scores"]["ents_f"] for row in rows] == [row["score"] for row in rows]
    assert rows[0]["scores"]["speed"] == 1000.0


def test_best_is_the_last_of_equal_scores_as_spacy_saves_it(log):
    row = best(read_log(log))
    assert row is not None and row["step"] == 20
    assert best([]) is None


def test_commit_is_none_outside_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance.commit(tmp_path) == (None, None)


def test_missing_package_has_no_version(monkeypatch):
    monkeypatch.setattr(provenance, "PACKAGES", ("spacy", "surely-not-installed"))
    found = provenance.versions()
    assert found["spacy"] == spacy.__version__
    assert found["surely-not-installed"] is None


def test_checksum_of_what_is_not_there_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        provenance.checksums([tmp_path / "none"])


def test_scores_of_types_that_are_no_f1_are_left_out():
    ents = {"PER": {"p": 0.5, "r": 1.0, "f": 2 / 3}}
    scores = {"cats_auc_per_type": {"A": 0.5}, "ents_per_type": ents}
    rows = per_type({"scores": scores, "support": {"ents": {"PER": 2}}})
    assert rows == [["ents", "PER", "2", "50.00", "100.00", "66.67"]]
