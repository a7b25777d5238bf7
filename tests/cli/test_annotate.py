"""`spacy-psa annotate` on a pipeline of spaCy's own parts."""

import gzip
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

from spacy_psa.annotation.annotator import Annotated, Annotator, Failed, Outcome, annotated
from spacy_psa.annotation.input import Record, text_doc
from spacy_psa.corpora import label_studio
from tests.helpers import nested_pipelines
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.parsers import make_parser, train_parser, tree_examples
from tests.helpers.pipelines import make_chunk_examples, make_nlp, small_model, train

run = command("annotate")
TEXTS = ["Ada Lovelace wrote to London .", "Nothing here .", "London , London !"]


@Language.component("fails_on_boom")
def fails_on_boom(doc: Doc) -> Doc:
    if doc.text == "boom":
        raise ValueError("too hot\nto handle")
    return doc


@Language.component("dies_on_boom")
def dies_on_boom(doc: Doc) -> Doc:
    if doc.text == "boom" and multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return doc


@Language.component("counts_strings")
def counts_strings(doc: Doc) -> Doc:
    doc.user_data["meta"] = {"strings": len(doc.vocab.strings)}
    return doc


class CountsBatches:
    """Notes the size of the batch that a document was in."""

    def __call__(self, doc: Doc) -> Doc:
        return doc

    def pipe(self, stream, batch_size: int = 2):
        for docs in spacy.util.minibatch(stream, batch_size):
            for doc in docs:
                doc.user_data["batch"] = len(docs)
            yield from docs


Language.factory("counts_batches", func=lambda nlp, name: CountsBatches())


class FailsWithItsBatch:
    """Like a trainable pipe: one bad document makes its whole batch fail."""

    def __init__(self, nlp: Language, name: str) -> None:
        self.calls = 0

    def __call__(self, doc: Doc) -> Doc:
        return next(iter(self.pipe([doc])))

    def pipe(self, stream, batch_size: int = 2):
        for docs in spacy.util.minibatch(stream, batch_size):
            self.calls += 1
            if any(doc.text == "boom" for doc in docs):
                raise ValueError("too hot")
            yield from docs

    def to_disk(self, path, exclude=()):
        pass

    def from_disk(self, path, exclude=()):
        return self


Language.factory("fails_with_its_batch", func=FailsWithItsBatch)


def make_pipeline(*extra: str) -> Language:
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns(
        [{"label": "LOC", "pattern": "London"}, {"label": "PER", "pattern": "Ada Lovelace"}]
    )
    for name in extra:
        nlp.add_pipe(name)
    return nlp


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pipeline") / "model"
    make_pipeline("fails_on_boom").to_disk(path)
    return path


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf8")
    return path


def outcomes(
    nlp: Language, texts: list[str], batch_size: int = 2, n_process: int = 1
) -> list[Outcome]:
    """What becomes of each text; the row of a document is its text and its entities."""
    annotator = Annotator(lambda: nlp, text_doc, lambda doc: (doc.text, len(doc.ents)))
    records = (Record("", 0, text.encode()) for text in texts)
    return [found for _, found in annotated(annotator, records, batch_size, n_process)]


def read_jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


def test_entities_have_character_offsets_into_the_text(model, text, tmp_path):
    out = tmp_path / "out.jsonl"
    assert run(model, text, out).exit_code == 0
    rows = read_jsonl(out)
    assert [row["text"] for row in rows] == TEXTS
    assert [[(e["label"], e["text"]) for e in row["ents"]] for row in rows] == [
        [("PER", "Ada Lovelace"), ("LOC", "London")],
        [],
        [("LOC", "London"), ("LOC", "London")],
    ]
    assert all(
        row["text"][ent["start"] : ent["end"]] == ent["text"] for row in rows for ent in row["ents"]
    )
    assert "tokens" not in rows[0]


def test_tokens_are_written_when_asked_for(model, text, tmp_path):
    assert run(model, text, tmp_path / "out.jsonl", "--tokens").exit_code == 0
    row = read_jsonl(tmp_path / "out.jsonl")[1]
    words = [row["text"][token["start"] : token["end"]] for token in row["tokens"]]
    assert words == ["Nothing", "here", "."]


def test_summary_is_one_line_on_stderr(model, text, tmp_path):
    result = run(model, text, tmp_path / "out.jsonl")
    pattern = r"3 docs, 13 words, [\d.]+ s, [\d,]+ words/s\n"
    assert re.fullmatch(pattern, result.stderr)
    assert result.stdout == ""


def test_other_keys_of_a_json_line_are_kept(model, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text('\ufeff{"id": 7, "body": "In London.", "text": "no"}\r\n\n', encoding="utf8")
    assert run(model, source, tmp_path / "out.jsonl", "--text-key", "body").exit_code == 0
    (row,) = read_jsonl(tmp_path / "out.jsonl")
    assert {**row, "ents": []} == {"id": 7, "text": "no", "body": "In London.", "ents": []}
    assert row["ents"][0]["text"] == "London"


def test_annotation_of_an_earlier_run_does_not_stay(model, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "London", "ents": [1], "tokens": [2], "spans": {"a": []}}\n')
    assert run(model, source, tmp_path / "out.jsonl").exit_code == 0
    (row,) = read_jsonl(tmp_path / "out.jsonl")
    assert set(row) == {"text", "ents"} and row["ents"][0]["label"] == "LOC"


def test_keys_of_the_input_that_the_annotation_replaces_are_named(model, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "London", "ents": [1], "spans": {}, "id": 1}\n')
    result = succeed(run(model, tmp_path / "in.jsonl", tmp_path / "out.jsonl"))
    assert "warning: the annotation replaces keys of the input: ents, spans\n" in result.stderr
    result = run(model, tmp_path / "in.jsonl", tmp_path / "out.jsonl", "--text-key", "ents")
    assert_one_error(result, "--text-key ents")


UNUSUAL = {"big": str(2**64), "deep": "[" * 600 + "]" * 600, "surrogate": '"\\ud83d"'}


@pytest.mark.parametrize("n_process", [1, 2])
@pytest.mark.parametrize("value", UNUSUAL.values(), ids=UNUSUAL)
def test_whatever_json_holds_is_kept_in_json_lines(model, tmp_path, value, n_process):
    lines = ['{"text": "London"}'] * 4
    lines[2] = '{"text": "London", "id": %s}' % value  # noqa: UP031
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    options = ["--batch-size", 2, "--n-process", n_process]
    succeed(run(model, tmp_path / "in.jsonl", tmp_path / "out.jsonl", *options))
    rows = read_jsonl(tmp_path / "out.jsonl")
    assert len(rows) == 4 and rows[2]["id"] == json.loads(value)


@pytest.mark.parametrize("skip_bad", [[], ["--skip-bad"]])
@pytest.mark.parametrize("n_process", [1, 2])
@pytest.mark.parametrize("value", UNUSUAL.values(), ids=UNUSUAL)
def test_what_a_docbin_cannot_hold_costs_one_document(model, tmp_path, value, n_process, skip_bad):
    lines = ['{"text": "London"}'] * 4
    lines[2] = '{"text": "London", "id": %s}' % value  # noqa: UP031
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    options = ["--batch-size", 2, "--n-process", n_process, *skip_bad]
    result = succeed(run(model, tmp_path / "in.jsonl", tmp_path / "out.spacy", *options))
    assert "in.jsonl:3: not annotated: " in result.stderr
    docs = list(DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab))
    assert [[ent.text for ent in doc.ents] for doc in docs] == [["London"]] * 3


def test_half_a_surrogate_pair_in_the_meta_survives(model, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "London", "id": "\\ud83d"}\n', encoding="utf8")
    assert run(model, source, tmp_path / "out.jsonl").exit_code == 0
    assert read_jsonl(tmp_path / "out.jsonl")[0]["id"] == "\ud83d"


def test_span_groups_come_with_their_scores(tmp_path):
    doc = make_pipeline()("Ada Lovelace saw London")
    doc.spans["ner"] = [Span(doc, 3, 4, "LOC")]
    doc.spans["ner"].attrs["scores"] = [0.75]
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    succeed(run(tmp_path / "blank", tmp_path / "in.spacy", tmp_path / "out.jsonl", "--keep"))
    (row,) = read_jsonl(tmp_path / "out.jsonl")
    assert row["spans"]["ner"] == [
        {"start": 17, "end": 23, "label": "LOC", "text": "London", "score": 0.75}
    ]


def make_gold() -> Doc:
    words = ["London", "sleeps", ".", "Ada", "wakes"]
    return Doc(
        spacy.blank("en").vocab,
        words=words,
        spaces=[True, False, True, True, False],
        tags=["NNP", "VBZ", ".", "NNP", "VBZ"],
        ents=["O", "O", "O", "B-PER", "O"],
        sent_starts=[True, False, False, True, False],
        user_data={"id": 3, ("._.", "mark", 0, None): "stale", ("._.", "source", None, None): "x"},
    )


def test_docbin_is_annotated_afresh_over_its_own_words(model, tmp_path):
    DocBin(docs=[make_gold()], store_user_data=True).to_disk(tmp_path / "in.spacy")
    assert run(model, tmp_path / "in.spacy", tmp_path / "out.spacy").exit_code == 0
    (doc,) = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab)
    assert [token.text for token in doc] == [token.text for token in make_gold()]
    assert doc.text == "London sleeps. Ada wakes"
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("London", "LOC")]
    assert [sent.start for sent in doc.sents] == [0, 3]
    assert not doc.has_annotation("TAG")
    assert doc.user_data == {"id": 3, ("._.", "source", None, None): "x"}


def test_docbin_annotation_is_kept_when_asked_for(model, tmp_path):
    DocBin(docs=[make_gold()]).to_disk(tmp_path / "in.spacy")
    assert run(model, tmp_path / "in.spacy", tmp_path / "out.spacy", "--keep").exit_code == 0
    (doc,) = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab)
    assert [ent.text for ent in doc.ents] == ["London", "Ada"]
    assert doc[0].tag_ == "NNP"


def test_sentences_of_a_document_stay_in_one_batch(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("counts_batches")
    nlp.to_disk(tmp_path / "model")
    docs = [Doc(nlp.vocab, words=["x"]) for _ in range(9)]
    for number, doc in enumerate(docs):
        doc.user_data["document"] = number // 4
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "in.spacy")
    result = run(tmp_path / "model", tmp_path / "in.spacy", tmp_path / "out.spacy",
                 "--batch-size", 3)  # fmt: skip
    assert result.exit_code == 0, result.output
    found = DocBin().from_disk(tmp_path / "out.spacy").get_docs(nlp.vocab)
    assert [doc.user_data["batch"] for doc in found] == [4] * 8 + [1]


def test_docbin_without_known_spaces_stays_so(model, tmp_path):
    doc = Doc(spacy.blank("en").vocab, words=["London", "."])
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
    assert run(model, tmp_path / "in.spacy", tmp_path / "out.spacy").exit_code == 0
    (doc,) = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab)
    assert doc.has_unknown_spaces


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [("bio", ["B-PER", "I-PER", "O", "B-LOC"]), ("bioes", ["B-PER", "E-PER", "O", "S-LOC"])],
)
def test_conll_columns_are_word_and_tag(tmp_path, scheme, tags):
    (tmp_path / "in.txt").write_text("Ada  Lovelace saw London\nhere\n")
    nlp = make_pipeline()
    nlp.get_pipe("entity_ruler").add_patterns(
        [{"label": "PER", "pattern": [{"TEXT": "Ada"}, {"IS_SPACE": True}, {"TEXT": "Lovelace"}]}]
    )
    nlp.to_disk(tmp_path / "model")
    out = tmp_path / "out.conll"
    assert run(tmp_path / "model", tmp_path / "in.txt", out, "--scheme", scheme).exit_code == 0
    rows = zip(["Ada", "Lovelace", "saw", "London"], tags, strict=True)
    expected = "".join(f"{word} {tag}\n" for word, tag in rows)
    assert out.read_text() == expected + "\nhere O\n\n"


def test_conll_has_tag_and_chunk_columns_and_splits_sentences(tmp_path):
    doc = make_gold()
    doc.spans["chunks"] = [Span(doc, 0, 1, "NP"), Span(doc, 1, 2, "VP"), Span(doc, 0, 2, "X")]
    DocBin(docs=[Doc(doc.vocab), doc]).to_disk(tmp_path / "in.spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    out = tmp_path / "out.conll"
    assert run(tmp_path / "blank", tmp_path / "in.spacy", out, "--keep").exit_code == 0
    assert out.read_text() == (
        "London NNP B-NP O\nsleeps VBZ B-VP O\n. . O O\n\nAda NNP O B-PER\nwakes VBZ O O\n\n"
    )


def test_conll_and_html_have_the_span_groups_of_the_components(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_chunker", config={"model": small_model(), "spans_key": "phrases"})
    chunks = make_chunk_examples(nlp, "phrases")
    nlp.initialize(lambda: chunks)
    parser = make_parser(spans_key="trees")
    train_parser(parser, 60, examples=tree_examples(parser, key="trees"))
    nlp.add_pipe("parser", source=parser)
    nlp.to_disk(tmp_path / "model")
    (tmp_path / "in.txt").write_text("Ada met Evans\n")
    out = tmp_path / "out"
    for processes in (1, 2):
        settings = ("--format", "conll", "--n-process", processes)
        assert run(tmp_path / "model", tmp_path / "in.txt", out, *settings).exit_code == 0
        rows = [line.split() for line in out.read_text().splitlines() if line]
        assert [len(row) for row in rows] == [4] * 3  # word, tree, chunk and entity
        tree = "".join(row[1] for row in rows)
        assert tree.count("*") == 3 and tree.count("(") == tree.count(")") > 0
    assert run(tmp_path / "model", tmp_path / "in.txt", out, "--format", "html").exit_code == 0
    assert "<svg" in out.read_text()


def test_html_draws_nested_spans_below_the_text(tmp_path):
    doc = spacy.blank("en")("Mayor of New York left.")
    doc.spans["sc"] = [Span(doc, 0, 4, "PER<1>"), Span(doc, 2, 4, "GPE")]
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    out = tmp_path / "out.html"
    succeed(run(tmp_path / "blank", tmp_path / "in.spacy", out, "--keep"))
    page = out.read_text()
    assert page.count("PER&lt;1&gt;") == page.count("GPE") == 1
    assert page.count("Mayor") == 1  # entities, of which there are none, are not drawn as well


def test_conll_is_refused_if_nested_spans_are_the_only_annotation(tmp_path):
    doc = spacy.blank("en")("Mayor of New York left.")
    doc.spans["sc"] = [Span(doc, 0, 4, "PER"), Span(doc, 2, 4, "GPE")]
    spacy.blank("en").to_disk(tmp_path / "blank")
    out = tmp_path / "out.conll"
    for ents in (None, [Span(doc, 2, 4, "GPE")]):
        if ents:
            doc.set_ents(ents)
        DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
        result = run(tmp_path / "blank", tmp_path / "in.spacy", out, "--keep")
        if not ents:
            assert result.exit_code == 1
            assert "CoNLL has no column for nested spans" in result.stderr
    assert out.read_text().splitlines()[2:4] == ["New B-GPE", "York I-GPE"]


def test_spans_of_crf_spans_are_found_by_its_key(tmp_path):
    nlp = nested_pipelines.make(spans_key="mine", confidence=True)
    spans = [(0, 3, "ORG"), (2, 3, "LOC")]
    gold = nested_pipelines.example(nlp, "University of Oslo", spans, key="mine")
    nested_pipelines.train(nlp, [gold])
    nlp.to_disk(tmp_path / "model")
    (tmp_path / "in.txt").write_text("University of Oslo\n")
    for name, labels in {"out.html": (">ORG<", ">LOC<"), "out.json": ('"ORG"', '"LOC"')}.items():
        form = ["--format", "label-studio"] if name == "out.json" else []
        succeed(run(tmp_path / "model", tmp_path / "in.txt", tmp_path / name, *form))
        page = "".join((tmp_path / name).read_text().split())
        assert all(page.count(label) == 1 for label in labels)
    result = run(tmp_path / "model", tmp_path / "in.txt", tmp_path / "out.conll")
    assert "CoNLL has no column for nested spans" in result.stderr


def test_html_shows_entities_and_escapes_text(model, tmp_path):
    (tmp_path / "in.txt").write_text("London <b> & co\nnothing\n")
    out = tmp_path / "out.html"
    assert run(model, tmp_path / "in.txt", out).exit_code == 0
    page = out.read_text()
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n")
    assert page.count("<figure>") == 2
    assert "&lt;b&gt; &amp; co" in page and "<b>" not in page
    assert "London" in page and "LOC" in page


def test_tasks_of_label_studio_are_read_again_with_the_same_entities(model, tmp_path):
    texts = ["\U0001f600 London calls", "nothing"]
    rows = [json.dumps({"text": text, "id": i}) + "\n" for i, text in enumerate(texts)]
    (tmp_path / "in.jsonl").write_text("".join(rows))
    out = tmp_path / "tasks.json"
    succeed(run(model, tmp_path / "in.jsonl", out, "--format", "label-studio"))
    tasks = json.loads(out.read_text())
    assert [task["data"] for task in tasks] == [{"id": i, "text": t} for i, t in enumerate(texts)]
    value = {"start": 3, "end": 9, "text": "London", "labels": ["LOC"]}
    fixed = {"from_name": "label", "to_name": "text", "type": "labels"}
    assert tasks[0]["predictions"] == [{"result": [{"id": "0", **fixed, "value": value}]}]
    assert tasks[1]["predictions"] == [{"result": []}]
    annotated = [{**task, "annotations": task.pop("predictions")} for task in tasks]
    (marked, _) = label_studio.read_texts([("1", task) for task in annotated], Counter())
    assert [(mark.start, mark.end, mark.label) for mark in marked.marks] == [(2, 8, "LOC")]


def test_predictions_for_label_studio_have_probabilities(tmp_path):
    nlp = make_nlp()
    train(nlp)
    nlp.to_disk(tmp_path / "model")
    (tmp_path / "in.txt").write_text("Ada met Evans in London\n" * 2)
    out = tmp_path / "tasks.json"
    succeed(run(tmp_path / "model", tmp_path / "in.txt", out, "--format", "label-studio"))
    for task in json.loads(out.read_text()):
        (prediction,) = task["predictions"]
        scores = [region["score"] for region in prediction["result"]]
        assert scores and all(0 < score < 1 for score in scores)
        assert prediction["score"] == min(scores)


def test_no_document_makes_an_empty_list_of_tasks(model, tmp_path):
    (tmp_path / "in.txt").write_text("")
    out = tmp_path / "tasks.json"
    assert run(model, tmp_path / "in.txt", out, "--format", "label-studio").exit_code == 0
    assert json.loads(out.read_text()) == []


def test_stdin_to_stdout(model):
    result = succeed(run(model, "-", "-", stdin="London calls\n"))
    assert json.loads(result.stdout)["ents"][0]["text"] == "London"
    result = run(model, "-", "-", "--input-format", "jsonl", "--format", "conll", stdin="{}\n")
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("in.jsonl", b'{"text": "London"}\n{"text": \n', ":2: not JSON"),
        ("in.jsonl", b'{"text": "London"}\n\n["text"]\n', ":3: not an object with a string"),
        ("in.jsonl", b'{"text": "London"}\n{"text": 5}\n', ":2: not an object with a string"),
        ("in.txt", b"London\nna\xefve\n", ":2: not UTF-8 (byte 3 of the line)"),
    ],
)
def test_malformed_line_is_named_and_nothing_is_written(model, tmp_path, name, content, where):
    (tmp_path / name).write_bytes(content)
    before = sorted(tmp_path.iterdir())
    result = run(model, tmp_path / name, tmp_path / "out.jsonl")
    assert_one_error(result, where)
    assert sorted(tmp_path.iterdir()) == before
    result = succeed(run(model, tmp_path / name, tmp_path / "out.jsonl", "--skip-bad"))
    assert "1 malformed lines skipped" in result.stderr
    assert [row["text"] for row in read_jsonl(tmp_path / "out.jsonl")] == ["London"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["{model}", "{dir}/none.txt", "{dir}/out.jsonl"], "no such file"),
        (["{model}", "{dir}/in.csv", "{dir}/out.jsonl"], "--input-format"),
        (["{model}", "{dir}/in.txt", "{dir}/out.docx"], "--format"),
        (["{dir}/none", "{dir}/in.txt", "{dir}/out.jsonl"], "no pipeline to open"),
        (["{model}", "{dir}/in.txt", "{dir}", "--format", "jsonl"], "is a folder"),
        (["{model}", "{dir}/in.txt", "{dir}/out.jsonl", "--n-process", "0"], "--n-process 0"),
        (["{model}", "{dir}/in.txt", "{dir}/o.html", "--input-format", "spacy"], "not a .spacy"),
    ],
)
def test_bad_arguments_give_one_line_and_code_2(model, text, tmp_path, arguments, reason):
    filled = [argument.format(model=model, dir=tmp_path) for argument in arguments]
    result = run(*filled)
    assert_one_error(result, reason)
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".jsonl", ".html", ".tmp")]


def test_malformed_line_stops_processes_too(model, tmp_path):
    lines = ['{"text": "London"}'] * 50
    (tmp_path / "in.jsonl").write_text("\n".join([*lines, "bad", *lines]))
    options = ["--n-process", 2, "--batch-size", 5]
    result = run(model, tmp_path / "in.jsonl", tmp_path / "out.jsonl", *options)
    assert result.exit_code == 2 and "in.jsonl:51: not JSON" in result.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_output_of_an_earlier_run_stays_when_a_run_fails(model, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "London"}\nbad\n')
    (tmp_path / "out.jsonl").write_text("earlier")
    assert run(model, tmp_path / "in.jsonl", tmp_path / "out.jsonl").exit_code == 2
    assert (tmp_path / "out.jsonl").read_text() == "earlier"


def test_interrupt_leaves_nothing_behind(model, text, tmp_path, monkeypatch):
    def interrupt(self, doc):
        raise KeyboardInterrupt

    monkeypatch.setattr("spacy_psa.annotation.writers.JsonlWriter.write", interrupt)
    before = sorted(tmp_path.iterdir())
    assert run(model, text, tmp_path / "out.jsonl").exit_code != 0
    assert sorted(tmp_path.iterdir()) == before


def test_symbolic_link_goes_on_pointing_to_its_file(model, text, tmp_path):
    (tmp_path / "real.jsonl").write_text("old")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    assert run(model, text, tmp_path / "link.jsonl").exit_code == 0
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(read_jsonl(tmp_path / "real.jsonl")) == 3


@pytest.mark.parametrize("n_process", [1, 2])
def test_document_that_fails_is_named_and_the_others_go_on(model, tmp_path, n_process):
    texts = ["London 1", "boom", "London 2", "London 3"]
    (tmp_path / "in.txt").write_text("\n".join(texts))
    out = tmp_path / "out.jsonl"
    options = ["--batch-size", 2, "--n-process", n_process]
    result = succeed(run(model, tmp_path / "in.txt", out, *options))
    assert [row["text"] for row in read_jsonl(out)] == ["London 1", "London 2", "London 3"]
    assert "in.txt:2: not annotated: ValueError: too hot to handle\n" in result.stderr
    assert "3 docs" in result.stderr and "1 failed" in result.stderr


@pytest.mark.parametrize(
    ("batch_size", "n_process"), [(1, 1), (2, 1), (3, 1), (50, 1), (3, 2), (50, 2)]
)
def test_a_batch_that_fails_is_tried_one_by_one_in_order(batch_size, n_process):
    nlp = make_pipeline("fails_with_its_batch")
    texts = [str(i) if i % 7 else "boom" for i in range(40)]
    for text, found in zip(texts, outcomes(nlp, texts, batch_size, n_process), strict=True):
        if text == "boom":
            assert found == Failed("ValueError: too hot")
        else:
            assert found == Annotated((text, 0), 1)


def test_spacys_own_recognizer_is_no_obstacle():
    """Its pipe has no place for an error handler, and `nlp.set_error_handler` raises."""
    nlp = spacy.blank("en")
    nlp.add_pipe("ner").add_label("LOC")
    nlp.initialize()
    assert [found.words for found in outcomes(nlp, ["To London"] * 3)] == [2, 2, 2]


def test_text_longer_than_the_pipeline_takes_does_not_stop_the_rest():
    nlp = make_pipeline()
    nlp.max_length = 10
    first, second, third = outcomes(nlp, ["London", "x" * 11, "y"], batch_size=8)
    assert (first.row, third.row) == (("London", 1), ("y", 0))
    assert isinstance(second, Failed)


def test_nothing_is_written_when_every_document_fails(model, tmp_path):
    (tmp_path / "in.txt").write_text("boom\nboom\n")
    result = run(model, tmp_path / "in.txt", tmp_path / "out.jsonl")
    assert result.exit_code == 1
    assert "none of 2 docs" in result.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_output_of_an_earlier_run_stays_when_all_lines_are_bad(model, tmp_path):
    (tmp_path / "in.jsonl").write_text("bad\nbad\n")
    (tmp_path / "out.jsonl").write_text("earlier")
    result = run(model, tmp_path / "in.jsonl", tmp_path / "out.jsonl", "--skip-bad")
    assert result.exit_code == 1 and "none of 2 docs" in result.stderr
    assert (tmp_path / "out.jsonl").read_text() == "earlier"


@pytest.mark.parametrize("n_process", [1, 2])
def test_a_model_that_cannot_be_opened_is_an_error_without_documents_too(tmp_path, n_process):
    (tmp_path / "in.txt").write_text("")
    options = ["--n-process", n_process]
    result = run(tmp_path / "none", tmp_path / "in.txt", tmp_path / "out.jsonl", *options)
    assert_one_error(result, "no pipeline to open")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_killed_process_is_one_error_and_the_earlier_output_stays(tmp_path):
    make_pipeline("dies_on_boom").to_disk(tmp_path / "model")
    (tmp_path / "in.txt").write_text("London\n" * 20 + "boom\n" + "London\n" * 20)
    (tmp_path / "out.jsonl").write_text("earlier")
    before = sorted(tmp_path.iterdir())
    options = ["--n-process", 2, "--batch-size", 2]
    result = run(tmp_path / "model", tmp_path / "in.txt", tmp_path / "out.jsonl", *options)
    assert_one_error(result, "a process was killed")
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "out.jsonl").read_text() == "earlier"


def test_processes_do_not_remember_the_words_of_the_input(tmp_path):
    make_pipeline("counts_strings").to_disk(tmp_path / "model")
    (tmp_path / "in.txt").write_text("".join(f"word{i}\n" for i in range(1000)))
    options = ["--n-process", 2, "--batch-size", 10]
    succeed(run(tmp_path / "model", tmp_path / "in.txt", tmp_path / "out.jsonl", *options))
    counts = [row["strings"] for row in read_jsonl(tmp_path / "out.jsonl")]
    assert len(counts) == 1000 and max(counts[-10:]) - min(counts[:10]) < 100


def test_gzipped_input_is_read(model, tmp_path):
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(b"London\nLondon\n"))
    assert run(model, tmp_path / "in.txt.gz", tmp_path / "out.jsonl").exit_code == 0
    assert len(read_jsonl(tmp_path / "out.jsonl")) == 2
    content = gzip.compress("".join(f"London {i}\n" for i in range(9999)).encode())
    (tmp_path / "in.txt.gz").write_bytes(content[:-9])
    result = run(model, tmp_path / "in.txt.gz", tmp_path / "new.jsonl")
    assert_one_error(result, "in.txt.gz: the gzip file is broken")
    assert not (tmp_path / "new.jsonl").exists()


def test_a_gzipped_line_without_end_is_one_error(model, tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_psa.annotation.input.LONGEST", 1000)
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(b"London\n" + b"x" * 2000))
    result = run(model, tmp_path / "in.txt.gz", tmp_path / "out.jsonl")
    assert_one_error(result, "in.txt.gz:2: the line is longer than")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_packed_file_of_docs_that_is_too_large_is_one_error(model, tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_psa.annotation.input.HARMLESS", 100)
    DocBin(docs=[spacy.blank("en")("London " * 200)]).to_disk(tmp_path / "in.spacy")
    (tmp_path / "in.spacy.gz").write_bytes(gzip.compress((tmp_path / "in.spacy").read_bytes()))
    result = run(model, tmp_path / "in.spacy.gz", tmp_path / "out.spacy")
    assert_one_error(result, "in.spacy.gz: unpacks to more than")


def test_each_line_of_text_gives_one_line_of_output(model, tmp_path):
    (tmp_path / "in.txt").write_text("London\n\n \nLondon\n")
    assert run(model, tmp_path / "in.txt", tmp_path / "out.jsonl").exit_code == 0
    assert [row["text"] for row in read_jsonl(tmp_path / "out.jsonl")] == [
        *("London", "", " ", "London")
    ]


def test_an_empty_text_has_the_keys_of_any_other(model, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": ""}\n{"text": "London"}\n')
    assert run(model, tmp_path / "in.jsonl", tmp_path / "out.jsonl").exit_code == 0
    first, second = read_jsonl(tmp_path / "out.jsonl")
    assert first == {"text": "", "ents": []} and set(second) == set(first)


def test_a_missing_folder_of_the_output_is_made(model, text, tmp_path):
    assert run(model, text, tmp_path / "new" / "folder" / "out.jsonl").exit_code == 0
    assert len(read_jsonl(tmp_path / "new" / "folder" / "out.jsonl")) == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("target", ["/dev/full", "-"])
def test_a_device_that_is_full_is_one_error(text, tmp_path, target):
    make_pipeline().to_disk(tmp_path / "model")
    command = [sys.executable, "-m", "spacy_psa", "annotate", tmp_path / "model", text, target]
    with open("/dev/full", "wb") as full:
        options = ["--format", "conll"]
        done = subprocess.run([*command, *options], stdout=full, stderr=subprocess.PIPE, text=True)
    name = "stdout" if target == "-" else target
    reason = "No space left on device"
    assert done.stderr == f"error: {name}: cannot be written ({reason}); check the path\n"
    assert done.returncode == 2


def test_a_docbin_that_is_damaged_inside_is_one_error(model, tmp_path):
    gold = DocBin(docs=[make_gold()] * 3)
    for name, value in [
        ("strings", {"London"}),
        ("flags", gold.flags[:1]),
        ("cats", []),
        ("span_groups", [b"x"] * 3),
        ("user_data", [b"x"] * 3),
        ("spaces", gold.spaces[:2]),
    ]:
        docbin = DocBin(docs=[make_gold()] * 3, store_user_data=True)
        setattr(docbin, name, value)
        docbin.to_disk(tmp_path / "in.spacy")
        result = run(model, tmp_path / "in.spacy", tmp_path / "out.jsonl")
        assert_one_error(result, "in.spacy")
        assert not (tmp_path / "out.jsonl").exists()


def test_conll_columns_hold_whatever_is_in_labels_tags_and_words(tmp_path):
    vocab = spacy.blank("en").vocab
    doc = Doc(vocab, words=["a\0b", "c\u2028d", "\0"], tags=["N N", "V\nX", "T\t"])
    doc.set_ents([Span(doc, 0, 1, "two words"), Span(doc, 1, 2, "two\nlines")])
    doc.spans["chunks"] = [Span(doc, 0, 3, "N P")]
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    out = tmp_path / "out.conll"
    assert run(tmp_path / "blank", tmp_path / "in.spacy", out, "--keep").exit_code == 0
    assert out.read_text() == (
        "a_b N_N B-N_P B-two_words\nc_d V_X I-N_P B-two_lines\n_ T I-N_P O\n\n"
    )


def test_conll_cells_of_trees_whose_labels_have_stars(tmp_path):
    doc = Doc(spacy.blank("en").vocab, words=["*", "b"], tags=["*", "V"])
    doc.spans["constituents"] = [Span(doc, 0, 2, "NP*"), Span(doc, 1, 2, "*")]
    DocBin(docs=[doc]).to_disk(tmp_path / "in.spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    out = tmp_path / "out.conll"
    succeed(run(tmp_path / "blank", tmp_path / "in.spacy", out, "--keep"))
    cells = [line.split() for line in out.read_text().splitlines() if line]
    assert [row[2] for row in cells] == ["(NP**", "(**))"]


def test_empty_input_gives_an_empty_output(model, tmp_path):
    (tmp_path / "in.txt").write_text("")
    assert run(model, tmp_path / "in.txt", tmp_path / "out.jsonl").exit_code == 0
    assert (tmp_path / "out.jsonl").read_text() == ""


def test_words_of_the_input_do_not_stay_in_memory():
    nlp = make_pipeline()
    before = len(nlp.vocab.strings)
    found = outcomes(nlp, [f"word{i} London" for i in range(500)], batch_size=10)
    assert [outcome.row[1] for outcome in found] == [1] * 500
    assert len(nlp.vocab.strings) - before < 10


def test_errors_are_one_line_under_spacys_command_too(tmp_path):
    import spacy.cli._util

    import spacy_psa.mount  # noqa: F401

    result = CliRunner().invoke(
        spacy.cli._util.app, ["psa", "annotate", "none", str(tmp_path / "none.txt"), "-"]
    )
    assert result.exit_code == 2
    assert result.stderr == f"error: {tmp_path}/none.txt: there is no such file; check the path\n"
