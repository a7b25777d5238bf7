import os
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_psa.cli.convert import convert_app
from spacy_psa.errors import InputError

ASSETS = Path(__file__).parents[2] / "assets" / "sample"
COLUMNS = "EU NNP I-NP I-ORG\nsaid VBD I-VP O\n\nPeter NNP I-NP I-PER\n"


def run(*arguments):
    result = CliRunner().invoke(convert_app, [str(argument) for argument in arguments])
    if isinstance(result.exception, InputError):
        raise result.exception
    return result


def docs(path):
    return list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))


def test_conll2003_says_what_it_found_and_counts(tmp_path):
    (tmp_path / "in").write_text(COLUMNS)
    result = run("conll2003", tmp_path / "in", tmp_path / "out.spacy")
    assert result.exit_code == 0
    assert "entity column is IOB1" in result.stdout
    assert "2 sentences, 3 tokens, 2 entities" in result.stdout
    assert result.stderr == ""
    assert len(docs(tmp_path / "out.spacy")) == 2


def test_conll2003_warns_once_of_repairs(tmp_path):
    (tmp_path / "in").write_text(COLUMNS.replace("\n", "\r\n"))
    result = run("conll2003", tmp_path / "in", tmp_path / "out.spacy", "--scheme", "iob1")
    assert result.stderr.count("warning:") == 1
    assert "repaired: 4 line(s) with CRLF" in result.stderr
    assert len(docs(tmp_path / "out.spacy")) == 2


def test_conll2003_error_leaves_no_file(tmp_path):
    (tmp_path / "in").write_text(COLUMNS + "broken\n")
    with pytest.raises(InputError, match=r"in:5: 1 column\(s\)"):
        run("conll2003", tmp_path / "in", tmp_path / "out.spacy", "--scheme", "iob1")
    with pytest.raises(InputError, match="in:1: entity column: I-ORG follows"):
        run("conll2003", tmp_path / "in", tmp_path / "out.spacy", "--scheme", "bioes")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_unknown_scheme_or_language_is_refused(tmp_path):
    (tmp_path / "in").write_text(COLUMNS)
    assert run("conll2003", tmp_path / "in", tmp_path / "o.spacy", "--scheme", "x").exit_code == 2
    with pytest.raises(InputError, match="--lang zz"):
        run("conll2003", tmp_path / "in", tmp_path / "o.spacy", "--lang", "zz")


def test_the_name_of_the_output_is_checked_first(tmp_path):
    for command in ("conll2003", "sample"):
        with pytest.raises(InputError, match="must end in"):
            run(command, tmp_path / "none", tmp_path / "out.txt")


def test_sample_converts_all_layers(tmp_path):
    result = run("sample", ASSETS / "test.jsonl", tmp_path / "out.spacy")
    assert "300 sentences" in result.stdout
    converted = docs(tmp_path / "out.spacy")
    assert len(converted) == 300
    assert all(doc.spans["constituents"] and doc.has_annotation("TAG") for doc in converted)
    assert all(doc.spans["chunks"] for doc in converted)


def test_sample_error_leaves_no_file(tmp_path):
    (tmp_path / "in").write_text("{}")
    with pytest.raises(InputError, match="in:1: "):
        run("sample", tmp_path / "in", tmp_path / "out.spacy")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_glove_is_what_spacy_init_vectors_reads(tmp_path):
    (tmp_path / "g.txt").write_text("the 1 2\ncat 3 4\n")
    result = run("glove", tmp_path / "g.txt", tmp_path / "out.txt", "--dim", 2)
    assert "2 vectors of 2 numbers" in result.stdout
    from spacy.training.initialize import convert_vectors

    nlp = spacy.blank("en")
    convert_vectors(nlp, tmp_path / "out.txt", truncate=-1, prune=-1)
    assert nlp.vocab["cat"].vector.tolist() == [3.0, 4.0]


def test_glove_of_another_width_is_refused(tmp_path):
    (tmp_path / "g.txt").write_text("the 1 2\n")
    with pytest.raises(InputError, match=r"g\.txt:1: 2 numbers instead of 100"):
        run("glove", tmp_path / "g.txt", tmp_path / "out.txt")


def test_help_imports_neither_spacy_nor_nltk():
    code = (
        "import sys; from spacy_psa.cli.convert import convert_app\n"
        "assert not {'spacy', 'torch', 'nltk', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ASSETS.parents[1])


def test_the_given_glove_cut_converts(tmp_path):
    folder = os.environ.get("SPACY_PSA_CORPORA")
    if not folder:
        pytest.skip("SPACY_PSA_CORPORA does not name the folder of the real corpora")
    source = Path(folder) / "glove" / "glove.6B.zip"
    result = run("glove", source, tmp_path / "out.txt", "--dim", 100)
    assert "55,950 vectors" in result.stdout
    with open(tmp_path / "out.txt", "rb") as lines:
        assert next(lines) == b"55950 100\n"
        assert sum(1 for _ in lines) == 55950
