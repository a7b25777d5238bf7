"""Tag schemes against the definition: a legal sequence is one that writes some spans."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.pipeline.chain.span_tags import SpanScheme

KINDS = ["BIOES", "BIO"]


def all_span_sets(length, labels):
    """Every set of labelled spans that do not overlap, by the places of their bounds."""
    if length == 0:
        return [[]]
    sets = [*all_span_sets(length - 1, labels)]
    for size in range(1, length + 1):
        for before in all_span_sets(length - size, labels):
            sets += [[*before, (length - size, length, label)] for label in labels]
    return sets


@st.composite
def labellings(draw):
    """A number of tokens, and spans over them."""
    spans, at = [], 0
    for gap, size, label in draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("XYZ")), max_size=6
        )
    ):
        spans.append((at + gap, at + gap + size, label))
        at += gap + size
    return at + draw(st.integers(0, 3)), spans


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("labels", "longest"), [("", 4), ("X", 5), ("XY", 4)])
def test_legal_sequences_are_those_that_write_spans(kind, labels, longest):
    scheme = SpanScheme(labels, kind)
    moves, start, end = scheme.legal()
    for length in range(1, longest + 1):
        written = {
            tuple(scheme.encode(length, spans).tolist()) for spans in all_span_sets(length, labels)
        }
        legal = {
            tags
            for tags in itertools.product(range(len(scheme.tags)), repeat=length)
            if start[tags[0]]
            and end[tags[-1]]
            and all(moves[a, b] for a, b in itertools.pairwise(tags))
        }
        assert legal == written


@pytest.mark.parametrize("kind", KINDS)
@given(labelling=labellings())
def test_decoding_gives_back_the_encoded_spans(kind, labelling):
    length, spans = labelling
    scheme = SpanScheme("XYZ", kind)
    tags = scheme.encode(length, spans)
    assert tags.shape == (length,) and tags.dtype == "int64"
    assert scheme.decode(tags.tolist()) == spans


@pytest.mark.parametrize(
    ("kind", "tags"),
    [
        ("BIOES", "B-LOC I-LOC E-LOC S-LOC O S-PER B-PER E-PER"),
        ("BIO", "B-LOC I-LOC I-LOC B-LOC O B-PER B-PER I-PER"),
    ],
)
def test_spans_are_written_as_the_scheme_says(kind, tags):
    scheme = SpanScheme(["PER", "LOC"], kind)
    spans = [(0, 3, "LOC"), (3, 4, "LOC"), (5, 6, "PER"), (6, 8, "PER")]
    assert " ".join(scheme.tags[tag] for tag in scheme.encode(8, spans)) == tags


@pytest.mark.parametrize("kind", KINDS)
def test_number_of_a_tag_is_its_place_among_the_tags(kind):
    scheme = SpanScheme(["PER", "A-B", "LOC"], kind)
    for label in scheme.labels:
        for prefix in scheme.prefixes:
            assert scheme.tags[scheme.tag(prefix, label)] == f"{prefix}-{label}"


@pytest.mark.parametrize("kind", KINDS)
def test_label_that_ends_like_another_is_told_apart(kind):
    """`X` and `I-X` as labels: prefixes must not be cut from labels."""
    scheme = SpanScheme(["X", "-X", "I-X"], kind)
    moves, _, _ = scheme.legal()
    inside = {label: scheme.tag("I", label) for label in scheme.labels}
    for a, b in itertools.product(scheme.labels, repeat=2):
        assert moves[scheme.tag("B", a), inside[b]] == (a == b)


@pytest.mark.parametrize("tag_format", ["BIOES", "BIO"])
def test_a_batch_is_decoded_as_its_sentences_are(tag_format):
    scheme = SpanScheme(["PER", "ORG"], tag_format)
    generator = torch.Generator().manual_seed(0)
    sentences = [
        torch.randint(len(scheme.tags), (n,), generator=generator) for n in (1, 2, 3, 1, 30, 40)
    ]
    assert scheme.decode_batch(sentences) == [scheme.decode(s.tolist()) for s in sentences]
    assert scheme.decode_batch([]) == []
