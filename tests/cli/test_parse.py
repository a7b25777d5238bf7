"""`spacy-psa parse` and `spacy-psa trees`: files in, trees out."""

import json
from xml.etree import ElementTree

import nltk
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_psa.corpora.treebanks import read_bracket_docs
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.parsers import chart_model, make_parser, train_parser
from tests.helpers.pipelines import make_nlp, train
from tests.helpers.trees import BRACKETS, constituents, tree_doc

run = command("parse")
write_trees = command("trees")
ADA = "Ada met Evans in Bath ."
UNTAGGED = "(S (NP (X Ada)) (VP (X met) (NP (X Evans)) (PP (X in) (NP (X Bath)))) (X .))"
TAGGED = BRACKETS[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    nlp = make_parser(loss="log_likelihood")
    train_parser(nlp, 60)
    path = tmp_path_factory.mktemp("parser") / "model"
    nlp.to_disk(path)
    return path


def written(path, text):
    path.write_text(text, encoding="utf8")
    return path


def test_a_tokenised_sentence_a_line_becomes_a_tree_a_line(model, tmp_path):
    source = written(tmp_path / "in.tok", f"{ADA}\n\nYes\n")
    succeed(run(model, source, tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text().splitlines() == [UNTAGGED, "(())", "(TOP (X Yes))"]


def test_text_becomes_trees_of_its_sentences(model, tmp_path):
    source = written(tmp_path / "in.txt", f"{ADA} {ADA}\n\n{ADA}\n")
    succeed(run(model, source, tmp_path / "out.txt", "--sentencizer"))
    assert (tmp_path / "out.txt").read_text().splitlines() == [UNTAGGED] * 3


def test_stdin_to_stdout(model):
    result = run(model, "-", "--input-format", "tokens", stdin=f"{ADA}\n")
    assert (result.exit_code, result.stdout) == (0, f"{UNTAGGED}\n")
    assert "1 docs, 6 words" in result.stderr


def test_the_words_and_tags_of_trees_are_parsed_anew(model, tmp_path):
    flat = "(TOP (NNP Ada) (VBD met) (NNP Evans) (IN in) (NNP Bath) (. .))"
    source = written(tmp_path / "gold.txt", f"{flat}\n(())\n(TOP (UH Yes\n")
    result = run(model, source, "-", "--input-format", "brackets", "--skip-bad")
    assert result.stdout.splitlines() == [TAGGED, "(())", "(())"]
    assert "gold.txt:3" in result.stderr


def test_trees_that_are_read_as_text_are_warned_of(model, tmp_path):
    source = written(tmp_path / "gold.txt", f"{TAGGED}\n")
    with pytest.warns(UserWarning, match="gold.txt:1: looks like a tree.*--input-format brackets"):
        assert run(model, source, "-").exit_code == 0


def test_columns_with_tags_give_trees_with_these_tags(model, tmp_path):
    rows = "Ada NNP\nmet VBD\nEvans NNP\nin IN\nBath NNP\n. .\n\nYes UH\n"
    source = written(tmp_path / "in.conll", rows)
    succeed(run(model, source, tmp_path / "out.txt", "--tag-column", 1))
    assert (tmp_path / "out.txt").read_text().splitlines() == [TAGGED, "(TOP (UH Yes))"]


def test_an_empty_column_stays_a_column(model, tmp_path):
    """A no-break space at the beginning is a word of white space, which trees leave out."""
    rows = "Yes\tUH\t\n\u00a0\tSYM\t\n"
    source = written(tmp_path / "in.conll", rows)
    succeed(run(model, source, tmp_path / "out.txt", "--tag-column", 1))
    assert (tmp_path / "out.txt").read_text() == "(TOP (UH Yes))\n"
    result = run(model, source, tmp_path / "out.txt", "--tag-column", 3)
    assert_one_error(result, "has 3 column(s), too few for the word (0) and the tag (3)")


@pytest.mark.parametrize(
    "rows",
    [
        "-DOCSTART- -X-\n\nYes UH\n-DOCSTART- -X-\nYes UH\n",
        "#begin document (x); part 000\nYes UH\n\n#end document\n# newdoc\n\nYes UH\n",
    ],
)
def test_lines_between_documents_and_comments_alone_are_no_sentences(model, tmp_path, rows):
    source = written(tmp_path / "in.conll", rows)
    succeed(run(model, source, tmp_path / "out.txt", "--tag-column", 1))
    assert (tmp_path / "out.txt").read_text().splitlines() == ["(TOP (UH Yes))"] * 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("in.tok", "-LRB- 1\\/2 -RRB-\n"),
        ("in.conll", "-LRB-\n1\\/2\n-RRB-\n"),
        ("in.jsonl", '{"tokens": ["-LRB-", "1\\\\/2", "-RRB-"]}\n'),
    ],
)
def test_tokens_as_a_treebank_writes_them_are_seen_as_in_text(model, tmp_path, name, content):
    source = written(tmp_path / name, content)
    assert run(model, source, tmp_path / "out.spacy").exit_code == 0
    (doc,) = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab)
    assert [token.text for token in doc] == ["(", "1/2", ")"]
    tree = spacy.load(model).get_pipe("parser").parse(["-LRB-", "1\\/2"])
    assert tree.leaves() == ["-LRB-", "1\\/2"]


def test_a_no_break_space_is_part_of_a_token(model, tmp_path):
    source = written(tmp_path / "in.tok", "1\u00a0000 people\n")
    assert run(model, source, tmp_path / "out.spacy").exit_code == 0
    (doc,) = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab)
    assert [token.text for token in doc] == ["1\u00a0000", "people"]


def test_a_sentence_that_cannot_be_parsed_keeps_lines_aligned(model, tmp_path):
    crossing = Doc(spacy.blank("en").vocab, words=["a", "b", "c"], tags=["X"] * 3)
    crossing.spans["constituents"] = [Span(crossing, 0, 2, "A"), Span(crossing, 1, 3, "B")]
    docs = [crossing, tree_doc(crossing.vocab, TAGGED)]
    DocBin(docs=docs).to_disk(tmp_path / "in.spacy")
    result = write_trees(tmp_path / "in.spacy", tmp_path / "out.txt")
    assert result.exit_code == 0 and "document 1: not annotated" in result.stderr
    assert (tmp_path / "out.txt").read_text().splitlines() == ["(())", TAGGED]
    source = written(tmp_path / "in.jsonl", '{"tokens": 3}\n{"tokens": ["Yes"]}\n')
    assert run(model, source, tmp_path / "out.txt", "--skip-bad").exit_code == 0
    assert (tmp_path / "out.txt").read_text().splitlines() == ["(())", "(TOP (X Yes))"]


@pytest.mark.parametrize("where", ["after", "disabled", "before"])
def test_the_sentencizer_comes_before_the_parser_whatever_the_pipeline_has(model, tmp_path, where):
    nlp = spacy.load(model)
    nlp.add_pipe("sentencizer", first=True if where != "after" else None)
    if where == "disabled":
        nlp.disable_pipe("sentencizer")
    nlp.to_disk(tmp_path / "model")
    source = written(tmp_path / "in.txt", f"{ADA} {ADA}\n")
    succeed(run(tmp_path / "model", source, tmp_path / "out.txt", "--sentencizer"))
    assert (tmp_path / "out.txt").read_text().splitlines() == [UNTAGGED] * 2


def test_docs_keep_all_annotation_but_their_trees(model, tmp_path):
    doc = tree_doc(spacy.blank("en").vocab, TAGGED)
    doc.spans["constituents"] = [Span(doc, 0, 6, "WRONG")]
    doc.spans["sc"] = [Span(doc, 0, 2, "PART")]
    doc.set_ents([Span(doc, 0, 1, "PER")])
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "in.spacy")
    assert run(model, tmp_path / "in.spacy", tmp_path / "out.spacy").exit_code == 0
    (found,) = DocBin().from_disk(tmp_path / "out.spacy").get_docs(doc.vocab)
    assert [ent.label_ for ent in found.ents] == ["PER"]
    assert [span.label_ for span in found.spans["sc"]] == ["PART"]
    assert constituents(found) == constituents(tree_doc(doc.vocab, TAGGED))


@pytest.mark.parametrize("form", ["spacy", "brackets", "jsonl"])
def test_evidence_on_a_doc_counts_whatever_is_written(tmp_path, form):
    nlp = make_parser(loss="log_likelihood", required_spans_key="yes", forbidden_spans_key="no")
    train_parser(nlp, 60)
    nlp.to_disk(tmp_path / "model")
    doc = Doc(nlp.vocab, words=ADA.split())
    doc.spans["yes"], doc.spans["no"] = [Span(doc, 1, 3, "NP")], [Span(doc, 0, 1, "NP")]
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
    succeed(run(tmp_path / "model", tmp_path / "in.spacy", tmp_path / "out", "--format", form))
    if form == "spacy":
        (found,) = DocBin().from_disk(tmp_path / "out").get_docs(nlp.vocab)
        (tree,) = map(str, found._.parse_trees)
    elif form == "jsonl":
        (tree,) = json.loads((tmp_path / "out").read_text())["trees"]
    else:
        (tree,) = (tmp_path / "out").read_text().splitlines()
    found = nltk.Tree.fromstring(tree)
    phrases = [each.leaves() for each in found.subtrees() if each.label() == "NP"]
    assert ["met", "Evans"] in phrases and ["Ada"] not in phrases


def test_columns_of_conll_u_are_read_by_number(model, tmp_path):
    lines = [
        "# sent_id = 1",
        "# A B",
        "1-2\tAdamet\t_",
        "1\tAda\tNNP",
        "2\tmet\tVBD",
        "2.1\tgap\tX",
    ]
    source = written(tmp_path / "in.conll", "\n".join(lines) + "\n")
    succeed(run(model, source, tmp_path / "out.txt", "--word-column", 1, "--tag-column", 2))
    (tree,) = (tmp_path / "out.txt").read_text().splitlines()
    assert "(NNP Ada)" in tree and "(VBD met)" in tree and tree.count("(") <= 6


def test_a_number_sign_is_a_word_where_comments_are_not(model, tmp_path):
    text = "# # B\n5 CD I\n\n# sent = 2\n# the answer\nYes UH B\n# # I\n"
    source = written(tmp_path / "in.conll", text)
    succeed(run(model, source, tmp_path / "out.txt", "--tag-column", 1))
    trees = [nltk.Tree.fromstring(line) for line in (tmp_path / "out.txt").read_text().splitlines()]
    assert [tree.pos() for tree in trees] == [
        [("#", "#"), ("5", "CD")],
        [("Yes", "UH"), ("#", "#")],
    ]


def test_tags_of_docs_are_in_their_trees(model, tmp_path):
    DocBin(docs=[tree_doc(spacy.blank("en").vocab, TAGGED)]).to_disk(tmp_path / "in.spacy")
    succeed(run(model, tmp_path / "in.spacy", tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text().splitlines() == [TAGGED]


def test_sentences_without_words_keep_lines_aligned_in_each_format(model, tmp_path):
    tokens = [ADA.split(), [], [" "], ["Yes"]]
    lines = "".join(json.dumps({"tokens": words}) + "\n" for words in tokens)
    expected = [UNTAGGED, "(())", "(())", "(TOP (X Yes))"]
    assert run(model, written(tmp_path / "in.jsonl", lines), tmp_path / "a.txt").exit_code == 0
    assert run(model, tmp_path / "in.jsonl", tmp_path / "a.spacy").exit_code == 0
    assert run(model, tmp_path / "a.spacy", tmp_path / "b.txt").exit_code == 0
    assert write_trees(tmp_path / "a.spacy", tmp_path / "c.txt").exit_code == 0
    for name in "abc":
        assert (tmp_path / f"{name}.txt").read_text().splitlines() == expected, name
    # The reader of brackets leaves them out again.
    docs = read_bracket_docs(tmp_path / "a.txt", spacy.blank("en").vocab)
    assert [len(doc) for doc in docs] == [6, 1]


def test_a_key_of_the_annotation_cannot_have_the_text(model, tmp_path):
    source = written(tmp_path / "in.jsonl", '{"trees": "Ada left."}\n')
    result = run(model, source, tmp_path / "out.jsonl", "--text-key", "trees")
    assert_one_error(result, "--text-key trees: the trees have this key")


def test_trees_in_the_input_are_replaced_with_a_warning(model, tmp_path):
    source = written(tmp_path / "in.jsonl", '{"text": "Ada", "trees": 3}\n')
    result = run(model, source, tmp_path / "out.jsonl")
    assert result.exit_code == 0 and "replaces keys of the input: trees" in result.stderr
    assert json.loads((tmp_path / "out.jsonl").read_text())["trees"] == ["(NP (X Ada))"]


@pytest.mark.parametrize("name", ["out.jsonl", "out.spacy", "out.txt"])
def test_trees_follow_tokens_that_a_later_component_merges(model, tmp_path, name):
    nlp = spacy.load(model)
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PLACE", "pattern": "in Bath"}])
    stops = nlp.add_pipe("span_ruler", config={"spans_key": "stops"})
    stops.add_patterns([{"label": "STOP", "pattern": "."}])
    nlp.add_pipe("merge_entities")
    nlp.to_disk(tmp_path / "merging")
    source = written(tmp_path / "in.tok", f"{ADA}\n")
    result = run(tmp_path / "merging", source, tmp_path / name)
    assert result.exit_code == 0 and "not annotated" not in result.stderr, result.output
    if name == "out.spacy":
        assert write_trees(tmp_path / name, tmp_path / "out.txt").exit_code == 0
    if name == "out.jsonl":
        row = json.loads((tmp_path / name).read_text())
        (stop,) = row["spans"]["stops"]
        assert row["text"][stop["start"] : stop["end"]] == "."
    else:
        (line,) = (tmp_path / "out.txt").read_text().splitlines()
        assert nltk.Tree.fromstring(line).leaves() == ["Ada", "met", "Evans", "in_Bath", "."]


def test_json_lines_have_trees_spans_and_confidences(model, tmp_path):
    rows = [
        {"text": ADA, "id": 7},
        {"tokens": ADA.split(), "tags": ["NNP", "VBD", "NNP", "IN", "NNP", "."]},
    ]
    source = written(tmp_path / "in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    succeed(run(model, source, tmp_path / "out.jsonl"))
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert first["id"] == 7 and first["trees"] == [UNTAGGED] and second["trees"] == [TAGGED]
    span = first["spans"]["constituents"][0]
    assert (span["start"], span["end"], span["label"]) == (0, len(ADA), "S")
    assert 0.5 < span["score"] <= 1


def test_indented_trees_and_docs_read_back_as_the_same_trees(model, tmp_path):
    source = written(tmp_path / "in.tok", f"{ADA}\n")
    for name in ("out.mrg", "out.spacy", "out.txt"):
        assert run(model, source, tmp_path / name).exit_code == 0
    assert len((tmp_path / "out.mrg").read_text().splitlines()) > 2
    (doc,) = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab)
    (read,) = read_bracket_docs(tmp_path / "out.txt", doc.vocab)
    assert constituents(doc) == constituents(read)
    assert " ".join((tmp_path / "out.mrg").read_text().split()) == UNTAGGED


def test_a_drawing_has_all_words(model, tmp_path):
    source = written(tmp_path / "in.tok", f"{ADA}\nYes\n")
    assert run(model, source, tmp_path / "out.svg").exit_code == 0
    root = ElementTree.parse(tmp_path / "out.svg").getroot()
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Ada", "Bath", "Yes"} <= set(words)


def test_several_processes_give_the_same_file(model, tmp_path):
    source = written(tmp_path / "in.tok", f"{ADA}\nYes\n\n" * 5)
    for n in (1, 2):
        succeed(run(model, source, tmp_path / f"{n}.txt", "--n-process", n, "--batch-size", 4))
    assert (tmp_path / "1.txt").read_bytes() == (tmp_path / "2.txt").read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "reasons"),
    [
        ("in.xyz", "a", ["in.xyz: cannot tell the format"]),
        ("in.conll", "Ada\n", ["in.conll:1: the row 'Ada' has 1 column(s)"]),
        ("in.jsonl", '{"tokens": [1]}\n', ['in.jsonl:1: "tokens" is not a list of strings']),
        ("in.jsonl", '{"tokens": ["a"], "tags": []}\n', ["in.jsonl:1: 0 tags for 1 tokens"]),
        ("in.jsonl", '{"tokens": ["a", ""]}\n', ["in.jsonl:1: token 2 is empty"]),
        ("in.tok", "", ["in.tok:1: has no sentence"]),
    ],
)
def test_malformed_input_is_one_error_and_writes_nothing(model, tmp_path, name, content, reasons):
    source = written(tmp_path / name, content)
    target = written(tmp_path / "out.txt", "earlier")
    assert_one_error(run(model, source, target, "--tag-column", 1), *reasons)
    assert target.read_text() == "earlier"


def test_a_pipeline_without_a_parser_is_one_error(tmp_path):
    nlp = make_nlp()
    train(nlp, 1)
    nlp.to_disk(tmp_path / "ner")
    source = written(tmp_path / "in.txt", "Ada\n")
    assert_one_error(run(tmp_path / "ner", source), "ner: has no constituency_parser")


def test_an_unknown_output_format_is_one_error(model, tmp_path):
    source = written(tmp_path / "in.txt", "Ada\n")
    assert_one_error(run(model, source, tmp_path / "out.xyz"), "choose --format brackets, indented")


# .spacy to brackets


def test_trees_of_a_docbin_are_written_in_brackets(tmp_path):
    vocab = spacy.blank("en").vocab
    docs = [tree_doc(vocab, *BRACKETS[:2]), tree_doc(vocab, BRACKETS[2])]
    DocBin(docs=docs).to_disk(tmp_path / "in.spacy")
    succeed(write_trees(tmp_path / "in.spacy", tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text().splitlines() == BRACKETS[:3]


def test_docs_without_trees_are_named(tmp_path):
    DocBin(docs=[Doc(spacy.blank("en").vocab, words=["a"])]).to_disk(tmp_path / "in.spacy")
    result = write_trees(tmp_path / "in.spacy", tmp_path / "out.txt")
    assert result.exit_code == 1 and "document 1: not annotated" in result.stderr
    assert not (tmp_path / "out.txt").exists()


def test_gold_trees_are_drawn_from_any_span_group(tmp_path):
    doc = tree_doc(spacy.blank("en").vocab, TAGGED)
    doc.spans["other"] = list(doc.spans.pop("constituents"))
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
    succeed(write_trees(tmp_path / "in.spacy", tmp_path / "out.svg", "--key", "other"))
    root = ElementTree.fromstring((tmp_path / "out.svg").read_text())
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Ada", "VP", "Bath"} <= set(words)


def test_a_tree_too_deep_to_indent_is_an_error(tmp_path):
    doc = Doc(spacy.blank("en").vocab, words=["a"])
    doc.spans["constituents"] = [Span(doc, 0, 1, "X") for _ in range(3000)]
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
    result = write_trees(tmp_path / "in.spacy", tmp_path / "out.mrg")
    assert result.exit_code == 1 and "too deep to indent; choose --format brackets" in result.stderr


# Trees in the formats of `annotate`


def test_annotate_writes_trees_as_a_column_that_the_reader_of_conll_2012_joins(model, tmp_path):
    source = written(tmp_path / "in.tok", f"{ADA}\nYes\n")
    assert command("annotate")(model, source, tmp_path / "out.conll").exit_code == 0
    blocks = (tmp_path / "out.conll").read_text().strip().split("\n\n")
    rows = [[line.split() for line in block.splitlines()] for block in blocks]
    assert [row[1] for row in rows[0]] == ["(S(NP*)", "(VP*", "(NP*)", "(PP*", "(NP*)))", "*)"]
    assert rows[1] == [["Yes", "(TOP*)", "O"]]
    leaves = iter(f"(X {row[0]})" for row in rows[0])
    joined = "".join("".join(row[1]) for row in rows[0])
    tree = "".join(next(leaves) if c == "*" else c for c in joined)
    assert str(nltk.Tree.fromstring(tree)) == str(nltk.Tree.fromstring(UNTAGGED))


def test_annotate_draws_trees_on_a_page(model, tmp_path):
    source = written(tmp_path / "in.tok", f"{ADA}\n")
    assert command("annotate")(model, source, tmp_path / "out.html").exit_code == 0
    page = (tmp_path / "out.html").read_text()
    assert page.count("<svg") >= 1 and ">VP<" in page


# From Python


def test_words_alone_or_with_tags_are_parsed(model):
    parser = spacy.load(model).get_pipe("parser")
    words = ADA.split()
    tags = ["NNP", "VBD", "NNP", "IN", "NNP", "."]
    assert " ".join(str(parser.parse(words)).split()) == UNTAGGED
    tree = parser.parse(list(zip(words, tags)))
    assert " ".join(str(tree).split()) == TAGGED and tree.pos() == list(zip(words, tags))


def test_what_cannot_be_parsed_from_words_is_an_error_that_says_why(model):
    from spacy_psa.errors import InputError
    from tests.helpers.parsers import make_listening_parser

    parser = spacy.load(model).get_pipe("parser")
    with pytest.raises(InputError, match="there are no words to parse"):
        parser.parse([])
    with pytest.raises(InputError, match=r"needs a list of words: use \['Ada', 'left'\]"):
        parser.parse("Ada left")
    with pytest.raises(InputError, match="parse needs a list of words, not None"):
        parser.parse(None)
    with pytest.raises(InputError, match="a word is empty; leave it out"):
        parser.parse(["a", ""])
    for words in ([None], [("Ada", None)], ["Ada", 3], [("Ada", "NNP", "x")]):
        with pytest.raises(InputError, match="is not a word, or a pair of a word and its tag"):
            parser.parse(words)
    listening = make_listening_parser(chart_model())
    train_parser(listening, 1)
    with pytest.raises(InputError, match=r"listens to another component .*nlp\(Doc\("):
        listening.get_pipe("parser").parse(["Ada"])


def test_trees_of_a_doc_show_themselves_as_a_drawing(model):
    doc = spacy.load(model)(ADA)
    svg = doc._.parse_trees._repr_svg_()
    words = [e.text for e in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"Ada", "VP", "Bath"} <= set(words)
    assert doc._.parse_trees == list(doc._.parse_trees)


GOLD = [
    r"(S (NP (CD 7\/8) (NN ra}iys)) (NP (-LRB- -LRB-) (SYM \*\*) (-RCB- })) (. 1/2))",
    r"(NP (NN and\/or) (-LSB- -LSB-) (NN [x-RSB-))",
]


@pytest.mark.parametrize("options", [(), ("--quotes", "straight", "--spaces")])
def test_written_trees_have_the_spelling_of_the_gold(tmp_path, options):
    source = written(tmp_path / "gold.txt", "\n".join(GOLD) + "\n")
    packed, target = tmp_path / "gold.spacy", tmp_path / "trees.txt"
    assert command("convert")("brackets", source, packed, *options).exit_code == 0
    assert command("trees")(packed, target).exit_code == 0
    assert target.read_text().splitlines() == GOLD
    (doc, _) = DocBin(store_user_data=True).from_disk(packed).get_docs(spacy.blank("en").vocab)
    assert [token.text for token in doc] == ["7/8", "ra}iys", "(", "**", "}", "1/2"]
    assert doc[:]._.parse_string == GOLD[0]


def test_parsed_tokens_keep_their_spelling(model, tmp_path):
    source = written(tmp_path / "in.tok", "-LRB- 1\\/2 a} -RRB-\n")
    assert run(model, source, tmp_path / "out.txt").exit_code == 0
    leaves = nltk.Tree.fromstring((tmp_path / "out.txt").read_text()).leaves()
    assert leaves == ["-LRB-", "1\\/2", "a}", "-RRB-"]
