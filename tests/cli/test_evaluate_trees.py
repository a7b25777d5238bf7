"""`spacy-psa evaluate-trees`."""

import gzip
import json
import re
import subprocess
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from typer.testing import Result

from benchmarks.parseval.evalb import parse_evalb
from spacy_psa.corpora.readers import make_doc
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.real_evalb import real_evalb
from tests.helpers.trees import JUDGED, parse_tree

EVALB = real_evalb("SPACY_PSA_EVALB")
GOLD, TEST = map(list, zip(*JUDGED, strict=True))


run = command("evaluate-trees")


def write(path: Path, trees: list[str]) -> Path:
    path.write_text("\n".join(trees) + "\n", encoding="utf8")
    return path


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write(tmp_path / "gold.txt", GOLD)


@pytest.fixture
def test(tmp_path: Path) -> Path:
    return write(tmp_path / "test.txt", TEST)


def rows(result: Result) -> dict[str, list[str]]:
    """The table by its first column."""
    assert result.exit_code == 0, result.output
    lines = [line.strip("│┃ ").split("│") for line in result.stdout.splitlines() if "│" in line]
    return {name.strip(): [cell.strip() for cell in cells] for name, *cells in lines}


def docbin(path: Path, trees: list[str], tags: bool = True) -> Path:
    vocab = spacy.blank("en").vocab
    docs = []
    for tree in trees:
        words, parts, spans = parse_tree(tree)
        docs.append(make_doc(vocab, words, parts if tags else None, constituents=spans))
    DocBin(docs=docs).to_disk(path)
    return path


def test_the_table_has_all_figures_of_evalb_with_two_decimals(gold, test):
    assert rows(run(gold, test, "--max-length", 3)) == {
        "Sentences": ["3", "2"],
        "Error sentences": ["0", "0"],
        "Skipped sentences": ["0", "0"],
        "Valid sentences": ["3", "2"],
        "Bracketing recall": ["78.57", "71.43"],
        "Bracketing precision": ["91.67", "83.33"],
        "Bracketing F1": ["84.62", "76.92"],
        "Complete match": ["33.33", "50.00"],
        "Average crossing": ["0.33", "0.50"],
        "No crossing": ["66.67", "50.00"],
        "2 or less crossing": ["100.00", "100.00"],
        "Tagging accuracy": ["83.33", "80.00"],
    }


def test_the_second_column_is_of_40_words_or_the_rules_own(gold, test, tmp_path):
    assert "<= 40" in run(gold, test).stdout
    prm = tmp_path / "rules.prm"
    prm.write_text("CUTOFF_LEN 3\nDELETE_LABEL S\n")
    found = run(gold, test, "--prm", prm)
    assert "<= 3" in found.stdout
    # 11 gold brackets without S, of which 5, 0 (PRT is not ADVP) and 2 are found.
    assert rows(found)["Bracketing recall"] == ["63.64", "40.00"]
    assert "<= 70" in run(gold, test, "--keep-punctuation").stdout


def test_kept_punctuation_counts(tmp_path):
    gold = write(tmp_path / "gold", ["(S (NP (NN a) (, ,)) (VP (VB b)))"])
    test = write(tmp_path / "test", ["(S (NP (NN a)) (, ,) (VP (VB b)))"])
    assert rows(run(gold, test))["Bracketing F1"] == ["100.00"] * 2
    assert rows(run(gold, test, "--keep-punctuation"))["Bracketing F1"] == ["66.67"] * 2


def test_trees_over_several_lines_compressed_ones_and_docs_are_the_same(gold, test, tmp_path):
    expected = run(gold, test).stdout
    long = write(tmp_path / "gold.mrg", [tree.replace(" (", "\n  (") for tree in GOLD])
    packed = tmp_path / "test.gz"
    packed.write_bytes(gzip.compress(test.read_bytes()))
    docs = docbin(tmp_path / "gold.spacy", GOLD), docbin(tmp_path / "test.spacy", TEST)
    for pair in ((long, packed), docs, (gold, docs[1])):
        assert run(*pair).stdout == expected


def test_traces_of_the_gold_file_are_no_words(tmp_path):
    gold = write(tmp_path / "gold", ["( (S (NP-SBJ (-NONE- *)) (VP (VB go))) )"])
    test = write(tmp_path / "test", ["(S (VP (VB go)))"])
    assert rows(run(gold, test))["Complete match"] == ["100.00"] * 2


def test_a_prediction_without_parts_of_speech_has_no_tagging_accuracy(gold, tmp_path):
    found = rows(run(gold, docbin(tmp_path / "test.spacy", TEST, tags=False)))
    assert found["Tagging accuracy"] == ["-", "-"]
    assert found["Bracketing F1"] == ["84.62"] * 2


def test_errors_and_sentences_without_parse_are_counted_and_told(gold, tmp_path):
    test = write(tmp_path / "test", ["(())", TEST[1].replace("up", "off"), TEST[2]])
    found = run(gold, test, "--per-sentence")
    assert rows(found)["Error sentences"] == rows(found)["Skipped sentences"] == ["1", "1"]
    lines = found.stdout.splitlines()[1:4]
    assert [line.split()[2] for line in lines] == ["skip", "error", "ok"]
    assert "'up' and 'off' differ" in lines[1]
    assert lines[2].split()[3:] == ["100.00", "100.00", "3", "3", "3", "0", "2", "2"]


def test_figures_are_written_as_json(gold, test, tmp_path):
    path = tmp_path / "new" / "scores.json"
    run(gold, test, "--json", path, "--per-sentence")
    record = json.loads(path.read_text())
    assert record["all"]["f1"] == pytest.approx(22 / 26)
    assert (record["all"]["matched"], record["all"]["gold"]) == (11, 14)
    assert record["up_to_cutoff"] == record["all"]
    assert record["params"]["cutoff"] == 40
    assert record["per_label"]["NP"]["p"] == pytest.approx(4 / 5)
    assert [sentence["crossing"] for sentence in record["sentences"]] == [0, 1, 0]
    assert list(record["data"]) == [gold.as_posix(), test.as_posix()]
    run(gold, test, "--json", path)
    assert "sentences" not in json.loads(path.read_text())


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("(S (NN a))\n\n(S (NN b)\n", ":3:", "not closed"),
        ("(S (NN a))\n(S (NN b)))\n", ":2:", "where a bracket should be|too many"),
        ("(S (NN a))\n(S b (NN c))\n", ":2:", "no part of speech"),
        ("", ":1:", "no trees"),
        ("a b\n", ":1:", "where a bracket should be"),
    ],
)
def test_a_file_that_is_no_trees_is_one_error_with_its_line(gold, tmp_path, text, place, reason):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    target = tmp_path / "out.json"
    found = run(gold, path, "--json", target)
    assert found.exit_code == 2
    (line,) = found.stderr.splitlines()
    assert f"bad.txt{place}" in line
    assert any(part in line for part in reason.split("|"))
    assert not target.exists()


@pytest.mark.parametrize("shorter", ["gold", "test"])
def test_files_of_different_numbers_of_trees_are_refused(tmp_path, shorter):
    paths = {"gold": tmp_path / "gold", "test": tmp_path / "test"}
    for name, path in paths.items():
        write(path, GOLD[: 2 if name == shorter else 3])
    found = run(*paths.values())
    longer = "test" if shorter == "gold" else "gold"
    assert found.exit_code == 2
    assert f"{paths[longer]}:3: sentence 3 has no tree in {paths[shorter]}" in found.stderr


def test_docs_without_constituents_and_broken_files_are_named(gold, tmp_path):
    path = tmp_path / "test.spacy"
    DocBin(docs=[Doc(spacy.blank("en").vocab, words=["a"])]).to_disk(path)
    found = run(gold, path)
    assert found.exit_code == 2
    assert "test.spacy, document 1: no constituents" in found.stderr
    path.write_bytes(b"no")
    found = run(gold, path)
    assert found.exit_code == 2
    assert "not a .spacy file" in found.stderr
    assert run(gold, tmp_path / "missing.spacy").exit_code == 2
    assert run(gold, tmp_path / "missing").exit_code == 2


def test_a_constituent_over_two_sentences_is_refused(gold, tmp_path):
    words, tags, _ = parse_tree(GOLD[2])
    doc = make_doc(spacy.blank("en").vocab, words, tags, constituents=[(0, 2, "S")])
    doc[1].is_sent_start = True
    DocBin(docs=[doc]).to_disk(tmp_path / "test.spacy")
    found = run(gold, tmp_path / "test.spacy")
    assert found.exit_code == 2
    assert "a constituent crosses the end of its sentence" in found.stderr


def test_rules_that_cannot_be_read_are_one_error(gold, test, tmp_path):
    found = run(gold, test, "--prm", tmp_path / "none.prm")
    assert found.exit_code == 2
    assert "none.prm" in found.stderr


UNTAGGED = [re.sub(r"\((\S+) ([^()\s]+)\)", r"(X \2)", tree) for tree in TEST]
PUNCTUATED = "(S (NP (PRP I)) (, ,) (VP (VBP go)) (. .))"


def test_trees_of_an_untagged_parser_score_as_with_the_gold_tags(gold, test, tmp_path):
    untagged = write(tmp_path / "untagged.txt", UNTAGGED)
    found = run(gold, untagged)
    assert rows(found) | {"Tagging accuracy": []} == rows(run(gold, test)) | {
        "Tagging accuracy": []
    }
    assert rows(found)["Tagging accuracy"] == ["-", "-"]
    assert found.stderr == ""


def test_gold_punctuation_is_deleted_on_both_sides(tmp_path):
    gold = write(tmp_path / "gold.txt", [PUNCTUATED])
    untagged = PUNCTUATED.replace("(, ,)", "(X ,)").replace("(. .)", "(X .)")
    for tags in ("PRP", "X"):
        one = re.sub(r"\((PRP|VBP) ", "(X ", untagged) if tags == "X" else untagged
        found = run(gold, write(tmp_path / "test.txt", [one]), *["--gold-tags"] * (tags == "PRP"))
        assert rows(found)["Bracketing F1"] == ["100.00", "100.00"]
        assert rows(found)["Error sentences"] == ["0", "0"]


def test_sentences_that_are_left_out_are_counted_in_a_warning(gold, tmp_path):
    other = write(tmp_path / "other.txt", [TEST[0], TEST[1].replace("we", "you"), TEST[2]])
    found = run(gold, other)
    assert rows(found)["Error sentences"] == ["1", "1"]
    assert "warning: 1 of 3 sentences are errors and left out" in found.stderr
    assert "sentence 2 (" in found.stderr
    assert "other.txt:2): the words 'we' and 'you' differ" in found.stderr
    tagged = write(tmp_path / "t.txt", [TEST[0].replace("(. .)", "(NN .)"), *TEST[1:]])
    assert "--gold-tags" in run(gold, tagged).stderr
    assert run(gold, tagged, "--gold-tags").stderr == ""


def test_trees_of_other_sentences_alone_are_an_error_that_names_the_line(gold, tmp_path):
    words = ["(S (NN other))"] * len(TEST)
    other = write(tmp_path / "other.txt", words)
    assert_one_error(run(gold, other), "other.txt:1: no sentence has the words of its gold tree")


def test_white_space_inside_a_word_is_what_brackets_have_for_it(tmp_path):
    doc = Doc(spacy.blank("en").vocab, words=["1\u00a0000", "left"], tags=["CD", "VBD"])
    doc.spans["constituents"] = [Span(doc, 0, 2, "S")]
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    assert command("trees")(tmp_path / "gold.spacy", tmp_path / "gold.txt").exit_code == 0
    found = run(tmp_path / "gold.spacy", tmp_path / "gold.txt")
    assert rows(found)["Error sentences"] == ["0", "0"]


def test_tokens_of_white_space_are_no_words_in_docs(tmp_path):
    doc = Doc(spacy.blank("en").vocab, words=["Ada", "  ", "left", "."], tags=list("NXVP"))
    doc.spans["constituents"] = [Span(doc, 0, 4, "S"), Span(doc, 0, 1, "NP"), Span(doc, 2, 3, "VP")]
    DocBin(docs=[doc]).to_disk(tmp_path / "gold.spacy")
    assert command("trees")(tmp_path / "gold.spacy", tmp_path / "gold.txt").exit_code == 0
    result = succeed(run(tmp_path / "gold.spacy", tmp_path / "gold.txt"))
    assert "100.00" in result.stdout and "deletion" not in result.output


THIS = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"
CLAUSE = "(A (P this)) (B (Q is) (A (R a) (T test)))"
SAMPLE = [
    *[(THIS, THIS)],
    *[(THIS, THIS.replace("(A (R", "(C (R")), (THIS, THIS.replace("(T", "(U"))],
    *[(THIS, THIS.replace("(A (P", "(C (P").replace("(T", "(U"))],
    *[(THIS, "(S (A (P this)) (B (Q is) (R a) (A (T test))))")],
    *[(THIS, "(S (A (P this) (Q is)) (A (R a) (T test)))")],
    *[(THIS, "(S (P this) (Q is) (R a) (T test))"), (THIS, "(P this) (Q is) (R a) (T test)")],
    *[(THIS, "(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))")],
    *[(THIS, "(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))"), (THIS, "")],
    *[(THIS, "(S (A (P this)) (B (Q was) (A (A (R a) (T test)))))")],
    *[(THIS, "(S (A (P this)) (B (Q is) (U not) (A (A (R a) (T test)))))"), (THIS, "")],
    *[(THIS, f"(TOP {THIS})"), (THIS, THIS.replace(" (B", " (NONE *) (B"))],
    *[(THIS, THIS.replace(" (B", " (S (NONE abc) (A (NONE *))) (B"))],
    *[(THIS, THIS.replace("(T", "(TT")), (THIS, THIS.replace("this", "This"))],
    *[(THIS, THIS.replace("this", "That"))],
    *[(THIS.replace("(A (P", "(A-SBJ-1 (P").replace("(B", "(B-WHATEVER"), THIS)],
    *[(f"(S{f' {CLAUSE}' * 11})",) * 2, (f"(S {CLAUSE} (-NONE- *))",) * 2],
    *[(f"(S {CLAUSE} (: *))",) * 2],
]
"""The sentences of EVALB's own sample, sample.gld and sample.tst."""
SAMPLE_PRM = """DEBUG 0
MAX_ERROR 10
CUTOFF_LEN 40
LABELED 1
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL ,
DELETE_LABEL :
DELETE_LABEL ``
DELETE_LABEL ''
DELETE_LABEL_FOR_LENGTH -NONE-
EQ_LABEL T TT
EQ_WORD This this
"""
SAMPLE_ROWS = """
 1  4 ok    4  4  4 0  4  4
 2  4 ok    3  4  4 0  4  4
 3  4 ok    4  4  4 0  4  3
 4  4 ok    3  4  4 0  4  3
 5  4 ok    3  4  4 0  4  4
 6  4 ok    2  4  3 1  4  4
 7  4 ok    1  4  1 0  4  4
 8  4 ok    0  4  0 0  4  4
 9  4 ok    4  4  5 0  4  4
10  4 ok    4  4  8 0  4  4
11  4 skip  0  0  0 0  0  0
12  4 error 0  0  0 0  0  0
13  4 error 0  0  0 0  0  0
14  4 skip  0  0  0 0  0  0
15  4 ok    4  4  4 0  4  4
16  4 error 0  0  0 0  0  0
17  4 error 0  0  0 0  0  0
18  4 ok    4  4  4 0  4  4
19  4 ok    4  4  4 0  4  4
20  4 error 0  0  0 0  0  0
21  4 ok    4  4  4 0  4  4
22 44 ok   34 34 34 0 44 44
23  4 ok    4  4  4 0  4  4
24  5 ok    4  4  4 0  4  4
"""
"""Number, length, status, matched, gold and test brackets, crossing, words and right tags."""


@pytest.fixture
def sample(tmp_path: Path) -> tuple[Path, Path, Path]:
    gold, test = zip(*SAMPLE, strict=True)
    prm = tmp_path / "sample.prm"
    prm.write_text(SAMPLE_PRM)
    return (write(tmp_path / "sample.gld", gold), write(tmp_path / "sample.tst", test), prm)


def test_evalbs_own_sample_has_evalbs_own_figures(sample, tmp_path):
    gold, test, prm = sample
    path = tmp_path / "figures.json"
    found = run(gold, test, "--prm", prm, "--json", path, "--per-sentence")
    figures = rows(found).values()
    assert [" ".join(figure) for figure in figures] == [
        *("24 23", "5 5", "2 2", "17 16", "87.76 81.25", "90.53 85.25", "89.12 83.20"),
        *("52.94 50.00", "0.06 0.06", "94.12 93.75", "100.00 100.00", "98.15 96.88"),
    ]
    names = ("length", "status", "matched", "gold", "test", "crossing", "words", "tags")
    sentences = json.loads(path.read_text())["sentences"]
    assert [[str(sentence[name]) for name in names] for sentence in sentences] == [
        line.split()[1:] for line in SAMPLE_ROWS.strip().splitlines()
    ]
    assert [sentences[i]["f1"] for i in (0, 1, 6, 10)] == pytest.approx([1, 0.75, 0.4, 0])


@pytest.mark.skipif(not EVALB, reason="SPACY_PSA_EVALB names no EVALB, or no C compiler")
def test_the_real_evalb_has_the_same_figures_of_its_sample(sample):
    gold, test, prm = sample
    done = subprocess.run([EVALB, "-p", prm, gold, test], capture_output=True, text=True)
    columns, lines = parse_evalb(done.stdout)
    ours = rows(run(gold, test, "--prm", prm))
    for i, column in enumerate(columns):
        assert column.items() <= {name: cells[i] for name, cells in ours.items()}.items()
    assert [" ".join(map(str, line)) for line in lines] == [
        " ".join(line.split()[1:]) for line in SAMPLE_ROWS.strip().splitlines()
    ]


def test_blank_lines_are_sentences_only_if_the_files_have_as_many_lines(gold, tmp_path):
    blank = write(tmp_path / "blank.txt", ["", *TEST[1:]])
    assert rows(run(gold, blank))["Skipped sentences"] == ["1", "1"]
    at_the_end = write(tmp_path / "end.txt", [*TEST, "", ""])
    assert rows(run(gold, at_the_end))["Sentences"] == ["3", "3"]
    between = write(tmp_path / "between.txt", "\n\n".join(TEST).split("\n"))
    assert rows(run(gold, between)) == rows(run(gold, at_the_end))


def test_a_missing_line_is_named_in_the_file_that_has_it(gold, tmp_path):
    short = write(tmp_path / "short.txt", ["", TEST[1]])
    found = run(gold, short)
    assert_one_error(found, f"{gold}:3: sentence 3 has no tree in {short}")


def test_gold_tags_are_advised_only_where_the_words_are_the_same(gold, tmp_path):
    other = write(tmp_path / "other.txt", [TEST[0], TEST[1].replace("we", "you"), TEST[2]])
    assert "--gold-tags" not in run(gold, other).stderr
    wrong = write(tmp_path / "wrong.txt", ["(S (NN other))"] * len(TEST))
    assert "--gold-tags" not in run(gold, wrong).stderr


def test_comments_are_not_sentences(gold, tmp_path):
    test = write(tmp_path / "test.txt", ["# parsed by hand", "", *TEST[1:]])
    found = rows(run(gold, test))
    assert found["Sentences"] == ["3", "3"]
    assert found["Skipped sentences"] == ["1", "1"]
