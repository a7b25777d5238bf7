from collections import Counter

import pytest

from spacy_psa.corpora.cleanconll import apply_patch, read_docs
from spacy_psa.errors import InputError
from tests.helpers.pipelines import spans_of

FILE = "clean.test"
WORDS = "-DOCSTART- -X- O O\n\nSKIING-WORLD NN I-NP O\n\nEU NNP I-NP I-ORG\n"
PATCH = "3,4c3,5\n< SKIING-WORLD\n< \n---\n> SKIING\n> -\n> WORLD\n"
ROWS = (
    "\t-X-\tO\tO\tO\n\n\tNN\tO\tO\tO\n\t:\tO\tO\tO\n"
    "\tNN\tB-World_Cup\tB-ORG\tB-MISC\n\tNNP\tI-World_Cup\tI-ORG\tI-MISC\n"
)


def filled(words: str) -> str:
    """The rows with these words, and without words where a line has none."""
    pairs = zip(words.split("\n"), ROWS.split("\n"))
    return "\n".join(f"{word}{row}" for word, row in pairs)


JOINED = filled("-DOCSTART-\n\nSKIING\n-\nWORLD\nEU\n")
MASKED = filled("[TOKEN]\n\n[TOKEN]\n[TOKEN]\n[TOKEN]\n[TOKEN]\n")


def test_published_annotation_and_joined_file_are_read_alike(write, vocab):
    words, patch = write(WORDS, "eng.testb"), write(PATCH, "test.patch")
    repairs = Counter()
    for path, files in ((write(JOINED), ()), (write(MASKED, "masked"), (words, patch))):
        (doc,) = read_docs(path, vocab, repairs, *files)
        assert [t.text for t in doc] == ["SKIING", "-", "WORLD", "EU"]
        assert [t.tag_ for t in doc] == ["NN", ":", "NN", "NNP"]
        assert spans_of(doc.ents) == [(2, 4, "MISC")]
        assert doc.user_data["document"] == 1
    assert not repairs


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ("", "a b c"),
        ("1d0\n< a\n", "b c"),
        ("2a3,4\n> x\n> y\n", "a b x y c"),
        ("1c1\n< a\n---\n> x\n3c3\n< c\n---\n> y\n", "x b y"),
    ],
)
def test_a_patch_is_a_normal_diff(write, patch, after):
    words = write("a X\nb X\nc X\n", "words")
    assert apply_patch(words, write(patch, "patch")) == after.split()


@pytest.mark.parametrize(
    ("text", "words", "patch", "reason"),
    [
        (MASKED, None, None, "masked:1: the words are masked"),
        (MASKED, WORDS, None, "masked: --words and --patch belong together"),
        (MASKED, WORDS, PATCH.replace("D\n< \n", "X\n< \n"), "patch:2: does not fit line 3 of"),
        (MASKED, WORDS, "", "line 4 has '[TOKEN]\\t:\\tO\\tO\\tO' for the word ''"),
        (MASKED, WORDS + "\nmore NN O O\n", PATCH, "the end has '' for the word 'more'"),
        (JOINED.replace("\tI-ORG", ""), None, None, "masked:6: 4 column(s) instead of 5"),
        (JOINED.replace("B-MISC", "O"), None, None, "masked:6: entity column: I-MISC follows O"),
    ],
)
def test_files_that_do_not_belong_together_are_one_error(write, vocab, text, words, patch, reason):
    path = write(text, "masked")
    files = [None if each is None else write(each, n) for each, n in zip((words, patch), "wp")]
    with pytest.raises(InputError) as caught:
        list(read_docs(path, vocab, Counter(), *files))
    assert reason.replace("patch:", f"{path.parent}/p:") in str(caught.value)
