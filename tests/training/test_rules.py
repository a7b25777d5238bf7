"""Rules that are added to a trained pipeline, in Python and as a command."""

import json

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_psa.errors import InputError
from spacy_psa.training import rules
from spacy_psa.training.rules import add_rules, read_patterns, with_rules
from tests.helpers.commands import command, succeed
from tests.helpers.pipelines import MARKED, entities, make_examples, make_nlp, random_nlp, train

TOWNS = [{"label": "LOC", "pattern": town} for town in ("Leeds", "Bath", "Ada")]
NAMES = [
    {"label": "PER", "pattern": [{"LOWER": "ada"}, {"IS_TITLE": True}], "id": "ada"},
    {"label": "DATE", "pattern": "1854"},
]


def write(path, patterns):
    path.write_text("".join(json.dumps(each) + "\n" for each in patterns), encoding="utf8")
    return path


def test_each_file_is_a_ruler_and_a_later_file_of_its_name_replaces_it(tmp_path):
    nlp = random_nlp()
    towns, names = write(tmp_path / "my towns.jsonl", TOWNS), write(tmp_path / "n.jsonl", NAMES)
    (warning,) = add_rules(nlp, "ner", [towns, names])
    assert "does not know DATE" in warning
    assert nlp.pipe_names == ["my_towns", "n", "ner"]
    ner = nlp.get_pipe("ner")
    assert ner.suggested_spans == {"my_towns": 2.0, "n": 2.0}
    doc = nlp("Ada Lovelace left Bath")
    (analyses,) = ner.analyses([doc])
    wanted = {(0, 2, "PER"): 2.0, (0, 1, "LOC"): 2.0, (3, 4, "LOC"): 2.0}
    assert analyses.evidence.suggested == wanted
    ner.suggested_spans = {"my_towns": {"LOC": 50.0}}
    assert add_rules(nlp, "ner", [write(towns, TOWNS[:1])]) == []
    assert ner.suggested_spans == {"my_towns": {"LOC": 50.0}}
    assert nlp.pipe_names == ["my_towns", "n", "ner"]
    assert entities(nlp("Bath Leeds"))[-1] == (1, 2, "LOC")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "JSON"),
        ("[]", "needs a label and a pattern"),
        ('{"label": "PER", "pattern": ""}', "needs a label and a pattern"),
        ('{"label": "PER", "pattern": [{"LOWERED": "ada"}]}', "LOWERED"),
        ('{"label": "PER", "pattern": 3}', "is not a pattern"),
        ('{"label": "PER", "pattern": "Ada", "id": ["q"]}', "its id is not a string"),
        (None, "has no patterns"),
    ],
)
def test_bad_patterns_are_named(tmp_path, line, fault):
    path = write(tmp_path / "p.jsonl", TOWNS[:1] if line else [])
    with path.open("a") as file:
        file.write(line or "")
    with pytest.raises(InputError, match=fault) as error:
        read_patterns(path, spacy.blank("en").vocab)
    assert f"{path}{':2' * bool(line)}" in str(error.value)


def test_a_component_with_the_name_of_a_file_is_one_error(tmp_path):
    with pytest.raises(InputError, match="a component 'ner': rename the file"):
        add_rules(random_nlp(), "ner", [write(tmp_path / "ner.jsonl", TOWNS)])


def test_two_files_of_one_name_are_one_error(tmp_path):
    nlp, paths = random_nlp(), [tmp_path / "my t.jsonl", tmp_path / "my_t.jsonl"]
    with pytest.raises(InputError, match="has the name 'my_t' already"):
        add_rules(nlp, "ner", [write(path, TOWNS) for path in paths])


def test_the_command_learns_weights_and_saves_them(tmp_path, monkeypatch):
    nlp = make_nlp()
    train(nlp, 3)
    nlp.to_disk(tmp_path / "model")
    docs = [example.reference for example in make_examples(nlp, MARKED)]
    DocBin(docs=docs).to_disk(tmp_path / "dev.spacy")
    towns = write(tmp_path / "towns.jsonl", TOWNS)
    given = ("add-rules", tmp_path / "model", towns, "--output", tmp_path / "new")
    name, *rest = given
    result = succeed(command(name)(*rest, "--dev", tmp_path / "dev.spacy"))
    assert "towns" in result.stdout and "without" in result.stdout
    new = spacy.load(tmp_path / "new")
    weights = new.get_pipe("ner").suggested_spans["towns"]
    assert weights["LOC"] > weights["*"] == 2.0 and len(weights) == 2  # five of seven are right
    doc = new("Leeds")
    assert new.get_pipe("ner").posterior([doc[0:1].char_span(0, 5, "LOC")])[0] > 0.5
    again = command(name)(*rest)
    assert again.exit_code == 2 and "new" in again.stderr
    # The score without rules is that of the model, also if the pipeline has rules already.
    first = with_rules(str(tmp_path / "model"), [towns], tmp_path / "a", tmp_path / "dev.spacy")
    more = write(tmp_path / "more.jsonl", TOWNS[:1])
    then = with_rules(str(tmp_path / "new"), [more], tmp_path / "b", tmp_path / "dev.spacy")
    assert first.before == then.before < first.after
    monkeypatch.setattr(rules, "_f1", None)  # without development data, nothing is scored
    assert with_rules(str(tmp_path / "model"), [towns], tmp_path / "c").before == 0
