import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_psa.corpora.split_parts import FEWEST, Source, split_off
from spacy_psa.errors import InputError

VOCAB = Vocab()


def sources(sizes):
    return [
        Source(("a", number), Doc(VOCAB, words=[f"w{number}", f"s{i}"]))
        for number, size in enumerate(sizes)
        for i in range(size)
    ]


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 9), min_size=FEWEST, max_size=60),
    st.floats(0.05, 0.5),
    st.integers(0, 9),
)
def test_documents_stay_whole_and_about_the_share_is_drawn(sizes, share, seed):
    given_ = sources(sizes)
    split = split_off(given_, share, seed)
    assert split.unit == "document"
    assert sorted(map(id, split.rest + split.drawn)) == sorted(map(id, given_))
    assert not {s.document for s in split.rest} & {s.document for s in split.drawn}
    assert split.rest and split.drawn
    assert abs(len(split.drawn) - share * len(given_)) <= max(sizes)


def test_the_seed_decides():
    given_ = sources([3] * 30)
    assert split_off(given_, 0.2, 1) == split_off(given_, 0.2, 1)
    assert split_off(given_, 0.2, 1) != split_off(given_, 0.2, 2)


def test_few_documents_are_drawn_by_sentence():
    split = split_off(sources([20, 30]), 0.1, 0)
    assert split.unit == "sentence" and len(split.drawn) == 5


def test_equal_texts_are_not_drawn_apart():
    doubled = [Source(("a", i), Doc(VOCAB, words=[f"w{i // 2}"])) for i in range(80)]
    split = split_off(doubled, 0.3, 3)
    words = [{s.doc.text for s in part} for part in (split.rest, split.drawn)]
    assert split.unit == "document" and not words[0] & words[1]


def test_one_sentence_cannot_be_split():
    with pytest.raises(InputError, match="too few to draw development data"):
        split_off(sources([1]), 0.1, 0)
