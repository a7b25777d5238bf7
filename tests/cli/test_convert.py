import subprocess

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_psa.errors import InputError
from tests.helpers.commands import convert, succeed
from tests.helpers.paths import ROOT, SAMPLE
from tests.helpers.quick_python import PYTHON

COLUMNS = "EU NNP I-NP I-ORG\nsaid VBD I-VP O\n\nPeter NNP I-NP I-PER\n"


def docs(path):
    return list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))


def test_conll2003_says_what_it_found_and_counts(tmp_path):
    (tmp_path / "in").write_text(COLUMNS)
    result = succeed(convert("conll2003", tmp_path / "in", tmp_path / "out.spacy"))
    assert "entity column is IOB1" in result.stdout
    assert "2 sentences, 3 tokens, 2 entities" in result.stdout
    assert result.stderr == ""
    assert len(docs(tmp_path / "out.spacy")) == 2


def test_conll2003_warns_once_of_repairs(tmp_path):
    (tmp_path / "in").write_text(COLUMNS.replace("\n", "\r\n"))
    result = convert("conll2003", tmp_path / "in", tmp_path / "out.spacy", "--scheme", "iob1")
    assert result.stderr.count("warning:") == 1
    assert "repaired: 4 line(s) with CRLF" in result.stderr
    assert len(docs(tmp_path / "out.spacy")) == 2


def test_conll2003_error_leaves_no_file(tmp_path):
    (tmp_path / "in").write_text(COLUMNS + "broken\n")
    with pytest.raises(InputError, match=r"in:5: 1 column\(s\)"):
        convert("conll2003", tmp_path / "in", tmp_path / "out.spacy", "--scheme", "iob1")
    with pytest.raises(InputError, match="in:1: entity column: I-ORG follows"):
        convert("conll2003", tmp_path / "in", tmp_path / "out.spacy", "--scheme", "bioes")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_unknown_scheme_or_language_is_refused(tmp_path):
    (tmp_path / "in").write_text(COLUMNS)
    assert (
        convert("conll2003", tmp_path / "in", tmp_path / "o.spacy", "--scheme", "x").exit_code == 2
    )
    with pytest.raises(InputError, match="--lang zz"):
        convert("conll2003", tmp_path / "in", tmp_path / "o.spacy", "--lang", "zz")


def test_the_name_of_the_output_is_checked_first(tmp_path):
    for command in ("conll2003", "sample"):
        with pytest.raises(InputError, match="must end in"):
            convert(command, tmp_path / "none", tmp_path / "out.txt")


def test_sample_converts_all_layers(tmp_path):
    result = convert("sample", SAMPLE / "test.jsonl", tmp_path / "out.spacy")
    assert "300 sentences" in result.stdout
    converted = docs(tmp_path / "out.spacy")
    assert len(converted) == 300
    assert all(doc.spans["constituents"] and doc.has_annotation("TAG") for doc in converted)
    assert all(doc.spans["chunks"] for doc in converted)


def test_sample_error_leaves_no_file(tmp_path):
    (tmp_path / "in").write_text("{}")
    with pytest.raises(InputError, match="in:1: "):
        convert("sample", tmp_path / "in", tmp_path / "out.spacy")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_glove_is_what_spacy_init_vectors_reads(tmp_path):
    (tmp_path / "g.txt").write_text("the 1 2\ncat 3 4\n")
    result = convert("glove", tmp_path / "g.txt", tmp_path / "out.txt", "--dim", 2)
    assert "2 vectors of 2 numbers" in result.stdout
    from spacy.training.initialize import convert_vectors

    nlp = spacy.blank("en")
    convert_vectors(nlp, tmp_path / "out.txt", truncate=-1, prune=-1)
    assert nlp.vocab["cat"].vector.tolist() == [3.0, 4.0]


def test_glove_of_another_width_is_refused(tmp_path):
    (tmp_path / "g.txt").write_text("the 1 2\n")
    with pytest.raises(InputError, match=r"g\.txt:1: 2 numbers instead of 100"):
        convert("glove", tmp_path / "g.txt", tmp_path / "out.txt")


def test_help_imports_neither_spacy_nor_nltk():
    code = (
        "import sys; from spacy_psa.cli.convert import convert_app\n"
        "assert not {'spacy', 'torch', 'nltk', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([PYTHON, "-c", code], check=True, cwd=ROOT)


def test_the_given_glove_cut_converts(corpora, tmp_path):
    source = corpora / "glove" / "glove.6B.zip"
    result = convert("glove", source, tmp_path / "out.txt", "--dim", 100)
    assert "55,950 vectors" in result.stdout
    with open(tmp_path / "out.txt", "rb") as lines:
        assert next(lines) == b"55950 100\n"
        assert sum(1 for _ in lines) == 55950


TWO_COLUMNS = "Ada\tB-PER\nleft\tO\n\t\nRome\tB-LOC\n"


def test_columns_in_any_order_are_converted(tmp_path):
    (tmp_path / "in").write_text(TWO_COLUMNS)
    result = succeed(
        convert("columns", tmp_path / "in", tmp_path / "out.spacy", "--word", 0, "--ner", -1)
    )
    assert "entity column is IOB2" in result.stdout
    assert "2 sentences, 3 tokens, 2 entities" in result.stdout
    assert [doc.ents[0].label_ for doc in docs(tmp_path / "out.spacy")] == ["PER", "LOC"]


def test_columns_that_do_not_fit_leave_no_file(tmp_path):
    (tmp_path / "in").write_text(TWO_COLUMNS)
    with pytest.raises(InputError, match=r"in:1: there is no column 3"):
        convert("columns", tmp_path / "in", tmp_path / "out.spacy", "--ner", 3)
    with pytest.raises(InputError, match=r"choose --ner, --tag or --chunk"):
        convert("columns", tmp_path / "in", tmp_path / "out.spacy")
    with pytest.raises(InputError, match=r"add --draw 0.1"):
        convert("columns", tmp_path / "in", tmp_path / "out.spacy", "--ner", 1, "--part", "dev")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_the_parts_that_are_drawn_of_one_file_share_no_document(tmp_path):
    text = "".join(f"-DOCSTART- O\n\nw{i}\tB-X\n\nand\tO\n\n" for i in range(40))
    (tmp_path / "in").write_text(text)
    found = {}
    for part in ("train", "dev", "test"):
        out = tmp_path / f"{part}.spacy"
        options = ["--ner", 1, "--draw", 0.1, "--part", part]
        assert convert("columns", tmp_path / "in", out, *options).exit_code == 0
        found[part] = [doc.user_data["document"] for doc in docs(out)]
    assert {part: len(numbers) for part, numbers in found.items()} == {
        "train": 64,
        "dev": 8,
        "test": 8,
    }
    assert len(set().union(*found.values())) == 40 == sum(len({*n}) for n in found.values())
    assert convert("columns", tmp_path / "in", out, *options, "--documents").exit_code == 0
    assert [doc.user_data["document"] for doc in docs(out)] == found["test"][::2]
