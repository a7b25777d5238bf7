"""`convert` for the corpora beyond CoNLL-2003: what each says, and that errors leave no file."""

import zipfile

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_psa.errors import InputError
from tests.helpers.commands import convert, succeed
from tests.helpers.corpora import ONTONOTES, conllu

MRG = "( (S \n    (NP-SBJ (NNP Rome) )\n    (VP (VBD fell) (NP (-NONE- *) ))\n    (. .) ))\n"
INPUTS = {
    "conll2003": "-DOCSTART- -X- O O\n\nRome NNP I-NP I-LOC\nfell VBD I-VP O\n",
    "conll2000": "Rome NNP B-NP\nfell VBD B-VP\n",
    "ontonotes": ONTONOTES,
    "ptb": MRG,
    "brackets": "(TOP (S (NP (NNP Rome)) (VP (VBD fell)) (. .)))\n",
    "spmrl": "(VROOT (S (NP-SB (NE##case=nom## Rom)) (VVFIN##_## fiel)))\n",
    "ctb": "<S ID=1>\n( (IP (NP-SBJ (NR 罗马)) (VP (VV 来)) (PU 。)) )\n</S>\n",
    "psd": "( (IP-MAT (NP-SBJ-1;x (PRO he)) (VBD fell)) (ID 1.X,.1))\n",
    "export": (
        "#BOS 1 0 0 0\nRom\tNE\t--\tSB\t500\nfiel\tVVFIN\t--\tHD\t500\n#500\tS\t--\t--\t0\n#EOS 1\n"
    ),
    "conllu": conllu(("Rome", "NNP", "Entity=(1-place)"), ("fell", "VBD")),
    "bmes": "吴 B-NAME\n重 M-NAME\n阳 E-NAME\n， O\n",
    "sample": (
        '{"words": ["Yes"], "spaces": [false], "tags": ["UH"], "chunks": [], "ents": [], '
        '"tree": "(INTJ (UH Yes))"}\n'
    ),
}


BEGIN, *SENTENCE, END = ONTONOTES.splitlines(keepends=True)
TWICE = "".join([BEGIN, *SENTENCE, *SENTENCE, END])


@pytest.fixture
def write(tmp_path):
    def _write(name, text=None):
        path = tmp_path / name
        path.write_text(INPUTS[name] if text is None else text, encoding="utf8")
        return path

    return _write


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("conll2000", "1 sentences, 2 tokens, 2 chunks"),
        ("ontonotes", "1 sentences, 2 tokens, 1 entities, 3 constituents"),
        ("ptb", "1 sentences, 3 tokens, 3 constituents"),
        ("brackets", "1 sentences, 3 tokens, 3 constituents"),
        ("spmrl", "1 sentences, 2 tokens, 2 constituents"),
        ("ctb", "1 sentences, 3 tokens, 3 constituents"),
        ("export", "1 sentences, 2 tokens, 1 constituents"),
        ("conllu", "1 sentences, 2 tokens, 1 entities, 1 sc"),
        ("bmes", "1 sentences, 4 tokens, 1 entities"),
    ],
)
def test_counts_are_told_and_nothing_is_warned_of(write, tmp_path, command, told):
    result = succeed(convert(command, write(command), tmp_path / "out.spacy"))
    assert result.stdout.endswith(f"out.spacy: {told}\n")
    assert result.stderr == ""
    (doc,) = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("zh").vocab)
    assert sum(map(len, doc.spans.values())) + len(doc.ents) > 0


WRONG = [(command, other) for command in INPUTS for other in INPUTS if command != other]
# Some read as others: a tree a line is also what .mrg files hold, and most have no mark-up.
ALIKE = {"ptb": ["brackets", "spmrl", "psd"], "brackets": ["spmrl", "psd"],
         "spmrl": ["ptb", "brackets", "psd"], "ctb": ["ptb", "brackets", "spmrl", "psd"],
         "psd": ["ptb", "brackets", "spmrl"]}  # fmt: skip
WRONG = [(command, other) for command, other in WRONG if other not in ALIKE.get(command, [])]


@pytest.mark.parametrize(("command", "other"), WRONG)
def test_another_format_gives_one_error_and_no_file(write, tmp_path, command, other):
    path = write(other)
    with pytest.raises(InputError) as caught:
        convert(command, path, tmp_path / "out.spacy")
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == [other]


@pytest.mark.parametrize(
    "command", ["conll2000", "ontonotes", "ptb", "brackets", "spmrl", "export"]
)
def test_the_name_of_the_output_is_checked_first(tmp_path, command):
    with pytest.raises(InputError, match="must end in"):
        convert(command, tmp_path / "none", tmp_path / "out.txt")


def test_conll2000_draws_a_development_set(write, tmp_path):
    path = write("many", "".join(f"w{i} NN O\n\n" for i in range(10)))
    written = {}
    for part in ("train", "dev"):
        out = tmp_path / f"{part}.spacy"
        succeed(convert("conll2000", path, out, "--dev", 4, "--seed", 1, "--part", part))
        docs = DocBin().from_disk(out).get_docs(spacy.blank("en").vocab)
        written[part] = {doc[0].text for doc in docs}
    assert len(written["dev"]) == 4
    assert written["train"] == {f"w{i}" for i in range(10)} - written["dev"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["ptb", "--sections", "x"], "--sections x"),
        (["ctb", "--files", "270-1"], "--files 270-1"),
        (["export", "--sentences", "all"], "--sentences all"),
        (["ontonotes", "--sections", "21-02"], "--sections 21-02"),
        (["conll2000", "--part", "dev"], "such as --dev 1000"),
        (["conll2000", "--dev", "9"], "cannot draw 9 of 1"),
        (["conll2000", "--member", "train.txt"], "--member is for archives"),
    ],
)
def test_options_that_do_not_fit_are_errors(write, tmp_path, arguments, reason):
    path = write(arguments[0])
    with pytest.raises(InputError, match=reason):
        convert(arguments[0], path, tmp_path / "out.spacy", *arguments[1:])
    assert [file.name for file in tmp_path.iterdir()] == [arguments[0]]


@pytest.mark.parametrize(
    ("command", "options", "labels"),
    [
        ("ptb", [], ["S", "NP", "VP"]),
        ("ptb", ["--labels", "functions"], ["S", "NP-SBJ", "VP"]),
        ("spmrl", ["--labels", "whole"], ["S", "NP-SB"]),
        ("ctb", ["--labels", "functions"], ["IP", "NP-SBJ", "VP"]),
        ("psd", [], ["IP", "NP"]),
        ("psd", ["--labels", "whole"], ["IP-MAT", "NP-SBJ-1;x"]),
    ],
)
def test_functions_of_labels_are_kept_if_asked_for(write, tmp_path, command, options, labels):
    out = tmp_path / "out.spacy"
    assert convert(command, write(command), out, *options).exit_code == 0
    (doc,) = DocBin().from_disk(out).get_docs(spacy.blank("en").vocab)
    assert [span.label_ for span in doc.spans["constituents"]] == labels


@pytest.mark.parametrize(("option", "count"), [("--x-over-x", 2), ("--merge-x-over-x", 1)])
@pytest.mark.parametrize("command", ["ptb", "brackets", "spmrl", "ctb"])
def test_x_over_x_is_kept_or_merged(write, tmp_path, command, option, count):
    path = write("same", "( (NP (NP (DT the) (NN end))))\n")
    result = convert(command, path, tmp_path / "out.spacy", option)
    assert f"{count} constituents" in result.stdout


def test_brackets_may_take_several_lines(write, tmp_path):
    path, out = (
        write("indented", "(S\n  (NP-SBJ (PRP I))\n  (VP (VBD came)))\n"),
        tmp_path / "o.spacy",
    )
    assert "3 constituents" in convert("brackets", path, out, "--indented").stdout
    with pytest.raises(InputError, match="not closed on its line"):
        convert("brackets", path, out)


def test_discontinuous_trees_are_told(write, tmp_path):
    crossed = (
        "#BOS 1\nDas PDS -- OA 500\nwill VMFIN -- HD 501\nsehen VVINF -- HD 500\n"
        "#500 VP -- OC 501\n#501 S -- -- 0\n#EOS 1\n"
    )
    path = write("crossed", INPUTS["export"] + crossed)
    result = convert("export", path, tmp_path / "out.spacy")
    assert "1 discontinuous tree(s) left out" in result.stderr and ": 1 sentences" in result.stdout
    result = convert("export", path, tmp_path / "out.spacy", "--discontinuous", "raise")
    assert "1 discontinuous tree(s) made continuous" in result.stderr
    assert ": 2 sentences" in result.stdout


def test_sections_and_folders_are_taken_from_archives(write, tmp_path):
    archive = tmp_path / "c.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("v4/data/train/a.v4_gold_conll", ONTONOTES)
        opened.writestr("v4/data/test/b.v4_gold_conll", ONTONOTES.replace("02", "23"))
        opened.writestr("mrg/wsj_0203.mrg", MRG)
        opened.writestr("mrg/wsj_2301.mrg", MRG * 2)
    out = tmp_path / "out.spacy"
    for options, count in (
        (["ontonotes"], 2),
        (["ontonotes", "--folder", "v4/data/train"], 1),
        (["ontonotes", "--sections", "23"], 1),
        (["ptb"], 3),
        (["ptb", "--sections", "02-21"], 1),
    ):
        result = convert(options[0], archive, out, *options[1:])
        assert f": {count} sentences" in result.stdout


@pytest.mark.parametrize(
    ("format", "text", "options"),
    [
        ("conll2003", f"{INPUTS['conll2003']}\nRome NNP I-NP I-LOC\n", []),
        ("columns", f"{INPUTS['conll2003']}\nRome NNP I-NP I-LOC\n", ["--ner", -1]),
        ("ontonotes", TWICE, []),
    ],
)
def test_documents_keep_their_sentences(write, tmp_path, format, text, options):
    source, out = write(format, text), tmp_path / "out.spacy"
    result = succeed(convert(format, source, out, "--documents", *options))
    assert "2 sentences" in result.stdout
    [doc] = DocBin().from_disk(out).get_docs(spacy.blank("en").vocab)
    assert len(list(doc.sents)) == 2
    assert "document" in doc.user_data
    assert "warning" not in result.stderr


def test_documents_of_a_file_that_names_none_are_its_sentences_and_a_warning(write, tmp_path):
    source, out = write("columns", "Ada B-PER\n\nRome B-LOC\n"), tmp_path / "out.spacy"
    result = convert("columns", source, out, "--documents", "--ner", -1)
    assert result.exit_code == 0 and "marks no documents" in result.stderr
    assert len(list(DocBin().from_disk(out).get_docs(spacy.blank("en").vocab))) == 2


def test_an_output_without_sentences_names_what_was_left_out(write, tmp_path):
    path = write("empty", "( (S (NP (-NONE- *))))\n")
    with pytest.raises(InputError, match=r"nothing is left to write: 1 tree\(s\) without words"):
        convert("ptb", path, tmp_path / "out.spacy")
    assert not (tmp_path / "out.spacy").exists()


def test_brackets_reads_the_files_of_a_folder(tmp_path):
    folder = tmp_path / "trees"
    folder.mkdir()
    for name in ("one.ptb", "two.parse"):
        (folder / name).write_text("(S\n (NN a))\n")
    succeed(convert("brackets", folder, tmp_path / "out.spacy", "--indented"))
    docs = (
        DocBin(store_user_data=True)
        .from_disk(tmp_path / "out.spacy")
        .get_docs(spacy.blank("en").vocab)
    )
    assert [doc.user_data["document"] for doc in docs] == ["one", "two"]
    with pytest.raises(InputError, match=r"one\.ptb:1: the tree is not closed on its line"):
        convert("brackets", folder, tmp_path / "out.spacy")
