from collections import Counter

import pytest
import spacy

from spacy_psa.corpora.bmes import Format, read_docs, resolve_format
from spacy_psa.errors import InputError
from tests.helpers.corpora import input_error_at

FILE = "in.char.bmes"
BMES = "吴 B-NAME\n重 M-NAME\n阳 E-NAME\n， O\n1 O\n男 S-RACE\n\n中 B-CONT\n国 E-CONT\n"
WEIBO = "科0\tB-ORG.NAM\n技1\tI-ORG.NAM\n310\tO\n男0\tB-PER.NOM\n人1\tI-PER.NOM\n"


@pytest.fixture(scope="module")
def vocab():
    return spacy.blank("zh").vocab


def read(path, vocab, scheme="auto", **options):
    repairs = Counter()
    docs = list(read_docs(path, vocab, resolve_format(path, scheme), repairs, **options))
    return docs, dict(repairs)


def ents(doc) -> list[tuple[str, str]]:
    return [(ent.text, ent.label_) for ent in doc.ents]


def test_bmes_gives_characters_as_tokens(write, vocab):
    path = write(BMES)
    assert resolve_format(path) == Format("bioes", numbered=False)
    (first, second), repairs = read(path, vocab)
    assert [t.text for t in first] == list("吴重阳，1男")
    assert first.text == "吴重阳，1男"
    assert ents(first) == [("吴重阳", "NAME"), ("男", "RACE")]
    assert ents(second) == [("中国", "CONT")]
    assert repairs == {}


def test_weibo_loses_its_segmentation_numbers_and_keeps_its_types(write, vocab):
    path = write(WEIBO)
    assert resolve_format(path) == Format("iob2", numbered=True)
    (doc,), repairs = read(path, vocab)
    assert doc.text == "科技3男人"  # 310: the character 3, tenth after the first of its word
    assert ents(doc) == [("科技", "ORG.NAM"), ("男人", "PER.NOM")]
    assert repairs == {}


def test_types_may_be_joined(write, vocab):
    (doc,), _ = read(write(WEIBO), vocab, join_types=True)
    assert ents(doc) == [("科技", "ORG"), ("男人", "PER")]


def test_a_lost_emoji_is_one_character(write, vocab):
    (doc,), repairs = read(write("\ufffd\ufffd0 O\n好0 O\n"), vocab)
    assert [t.text for t in doc] == ["\ufffd", "好"]
    assert repairs == {"lost character(s), written twice, as one": 1}


def test_spacys_tokenizer_gives_the_same_tokens(write, vocab):
    (first, _), _ = read(write(BMES), vocab)
    assert [t.text for t in spacy.blank("zh").make_doc(first.text)] == [t.text for t in first]


def test_a_name_cut_in_two_by_an_empty_line_becomes_two(write, vocab):
    path = write("圣 B-ORG\n。 M-ORG\n\n彼 M-ORG\n得 M-ORG\n院 E-ORG\n\n院 E-ORG\n人 O\n国 B-ORG\n")
    docs, repairs = read(path, vocab)
    names = [("圣。", "ORG")], [("彼得院", "ORG")], [("院", "ORG"), ("国", "ORG")]
    assert [ents(doc) for doc in docs] == [*names]
    assert repairs == {"tag(s) of names cut by the sentence's end": 4}


@pytest.mark.parametrize(
    ("text", "scheme", "line", "reason"),
    [
        ("EU NNP I-NP I-ORG\n", "auto", 1, "4 column(s) instead of 2"),
        ("吴 O\n重\n", "auto", 2, "1 column(s) instead of 2"),
        ("吴 O\nEU B-ORG\n", "auto", 2, "'EU' is not one character;"),
        ("吴0 O\n重 O\n", "auto", 2, "'重' is not one character and its segmentation number"),
        ("EU O\nrejects O\n", "auto", 1, "'EU' is not one character and its"),
        ("吴 O\n重 M-ORG\n阳 E-ORG\n", "auto", 2, "M-ORG follows O"),
        ("吴 B-ORG\n重 O\n阳 S-ORG\n", "auto", 2, "O follows while B-ORG is still open"),
        ("吴 O\n重 M-ORG\n", "iob2", 2, "'M-ORG' is not a tag of IOB2"),
        ("", "auto", 1, "no sentences"),
    ],
)
def test_malformed_input_is_named_by_file_and_line(write, vocab, text, scheme, line, reason):
    path = write(text)
    with input_error_at(path, line, reason):
        read(path, vocab, scheme)


def test_an_unknown_scheme_is_refused(write):
    with pytest.raises(InputError, match="unknown scheme 'bilou'"):
        resolve_format(write(BMES), "bilou")


def test_the_reader_resolves_from_a_config(write):
    path = str(write(WEIBO))
    config = {"train": {"@readers": "spacy-psa.Bmes.v1", "path": path, "join_types": True}}
    (example,) = spacy.registry.resolve(config)["train"](spacy.blank("zh"))
    assert example.predicted.text == example.reference.text == "科技3男人"
    assert ents(example.reference) == [("科技", "ORG"), ("男人", "PER")]
