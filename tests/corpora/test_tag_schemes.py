import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.corpora.tag_schemes import (
    SCHEMES,
    TagError,
    detect_scheme,
    spans_to_tags,
    tags_to_spans,
)

IOB_TAGS = st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"])
BIOES_TAGS = IOB_TAGS | st.sampled_from(["E-A", "S-A", "E-B", "S-B"])


@st.composite
def span_sentences(draw):
    """(spans, length): spans that do not overlap, adjacent ones among them."""
    spans, position = [], 0
    for gap, width, label in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(["A", "B-C"])))
    ):
        spans.append((position + gap, position + gap + width, label))
        position += gap + width
    return spans, position + draw(st.integers(0, 2))


@pytest.mark.parametrize("scheme", SCHEMES)
@given(span_sentences())
def test_spans_survive_the_way_through_tags(scheme, sentence):
    spans, length = sentence
    tags = spans_to_tags(spans, length, scheme)
    assert len(tags) == length
    assert tags_to_spans(tags, scheme) == spans


@given(span_sentences())
def test_iob1_reads_iob2_alike(sentence):
    spans, length = sentence
    assert tags_to_spans(spans_to_tags(spans, length, "iob2"), "iob1") == spans


@given(st.lists(span_sentences(), min_size=1, max_size=5), st.sampled_from(SCHEMES))
def test_the_detected_scheme_reads_the_same_spans(sentences, scheme):
    tags = [spans_to_tags(spans, length, scheme) for spans, length in sentences]
    found = detect_scheme(tags)
    assert [tags_to_spans(sentence, found) for sentence in tags] == [s for s, _ in sentences]


@given(st.lists(BIOES_TAGS, max_size=6))
def test_bioes_accepts_exactly_what_it_would_write(tags):
    try:
        spans = tags_to_spans(tags, "bioes")
    except TagError:
        return
    assert spans_to_tags(spans, len(tags), "bioes") == tags


@given(st.lists(IOB_TAGS, max_size=6))
def test_iob2_accepts_exactly_what_it_would_write(tags):
    legal = all(
        not tag.startswith("I-") or (i > 0 and tags[i - 1][1:] == tag[1:])
        for i, tag in enumerate(tags)
    )
    if legal:
        assert spans_to_tags(tags_to_spans(tags, "iob2"), len(tags), "iob2") == tags
    else:
        with pytest.raises(TagError):
            tags_to_spans(tags, "iob2")


def test_iob1_writes_b_only_between_neighbours_of_one_label():
    spans = [(0, 1, "A"), (1, 3, "A"), (3, 4, "B"), (5, 6, "B")]
    assert spans_to_tags(spans, 6, "iob1") == ["I-A", "B-A", "I-A", "I-B", "O", "I-B"]


def test_biluo_letters_are_read_as_bioes():
    assert tags_to_spans(["B-A", "L-A", "U-B"], "bioes") == [(0, 2, "A"), (2, 3, "B")]


@pytest.mark.parametrize(
    ("tags", "scheme", "index", "reason"),
    [
        (["O", "I-A"], "bioes", 1, "I-A follows O, but BIOES needs a B- first"),
        (["I-A"], "iob2", 0, "I-A follows the beginning"),
        (["B-A", "O"], "bioes", 1, "O follows while B-A is still open"),
        (["B-A", "I-A"], "bioes", 1, "the sentence ends while I-A is still open"),
        (["B-A", "I-B", "E-B"], "bioes", 1, "I-B follows while B-A is still open"),
        (["O", "E-A"], "bioes", 1, "E-A follows O"),
        (["O", "X-A"], "iob1", 1, "'X-A' is not a tag of IOB1"),
        (["S-A"], "iob2", 0, "'S-A' is not a tag of IOB2"),
        (["B"], "iob1", 0, "'B' is not a tag of IOB1"),
        (["B-"], "iob1", 0, "'B-' is not a tag of IOB1"),
        (["-A"], "iob1", 0, "'-A' is not a tag of IOB1"),
    ],
)
def test_illegal_tags_are_named_with_their_place(tags, scheme, index, reason):
    with pytest.raises(TagError) as caught:
        tags_to_spans(tags, scheme)
    assert caught.value.index == index
    assert reason in caught.value.reason


@pytest.mark.parametrize("spans", [[(0, 0, "A")], [(0, 4, "A")], [(0, 2, "A"), (1, 3, "B")]])
def test_impossible_spans_are_refused(spans):
    with pytest.raises(ValueError, match="is empty, outside the sentence or overlaps another"):
        spans_to_tags(spans, 3, "bioes")


def test_bmes_is_read_as_bioes_and_in_no_other_scheme():
    tags = ["B-A", "M-A", "E-A", "S-B", "O"]
    assert tags_to_spans(tags, "bioes") == [(0, 3, "A"), (3, 4, "B")]
    assert detect_scheme([["O"], ["B-A", "M-A"]]) == "bioes"
    with pytest.raises(TagError, match="'M-A' is not a tag of IOB2"):
        tags_to_spans(tags[:3], "iob2")
