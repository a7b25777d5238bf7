"""Windows over long documents, and groups of windows."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_psa.errors import SettingError
from spacy_psa.modules.pretrained import FREE, PADDING, check_windows, groups, windows

PIECES = st.lists(st.integers(0, 9), max_size=80).map(lambda n: numpy.array(n, dtype=int))


@given(PIECES, st.integers(1, 40), st.integers(0, 30))
def test_each_word_is_taken_from_the_window_in_which_it_is_most_central(pieces, window, context):
    if 2 * context >= window:
        context = (window - 1) // 2
    cover = windows(pieces, window, context)
    total = pieces.sum()
    middles = numpy.cumsum(pieces) - pieces / 2
    centres = cover.starts + cover.size / 2
    assert cover.size == min(window, total)
    assert cover.starts[0] == 0 and cover.starts[-1] + cover.size == total
    assert (numpy.diff(cover.starts) <= window - 2 * context).all()
    distances = abs(middles[:, None] - centres)
    owned = distances[numpy.arange(len(pieces)), cover.owners]
    numpy.testing.assert_allclose(owned, distances.min(axis=1) if len(pieces) else [])
    # At least one wordpiece of each word that has some is inside its window.
    first, last = middles - pieces / 2, middles + pieces / 2
    start = cover.starts[cover.owners]
    inside = numpy.minimum(last, start + cover.size) - numpy.maximum(first, start)
    assert (inside[pieces > 0] >= 1).all()


@given(PIECES.filter(lambda pieces: pieces.sum() > 0))
def test_words_have_context_except_at_the_ends_of_the_document(pieces):
    pieces = numpy.minimum(pieces, 1)
    cover = windows(pieces, 12, 4)
    places = numpy.cumsum(pieces) - 1
    for place, owner in zip(places[pieces > 0], cover.owners[pieces > 0]):
        start = cover.starts[owner]
        assert place - start >= 4 or start == 0
        assert start + cover.size - 1 - place >= 3 or owner == len(cover.starts) - 1


@given(st.lists(st.integers(1, 400), max_size=60), st.integers(1, 2000))
def test_groups_have_little_padding_and_keep_to_the_budget(lengths, budget):
    divided = list(groups(lengths, budget))
    assert sorted(index for group in divided for index in group) == list(range(len(lengths)))
    for group in divided:
        own = [lengths[index] for index in group]
        places = max(own) * len(own)
        assert len(group) == 1 or places <= budget
        assert places - sum(own) <= max(FREE, PADDING * places)


@pytest.mark.parametrize(
    "window, context, message",
    [(0, 0, "window is 0"), (8, -1, "context is -1"), (8, 4, "context is 4: .* half of window, 8")],
)
def test_settings_out_of_range(window, context, message):
    with pytest.raises(SettingError, match=message):
        check_windows(window, context)
