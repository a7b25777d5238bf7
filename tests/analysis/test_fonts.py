"""Figures draw each character in an installed font that has it, and say if there is none."""

import warnings
from pathlib import Path

import pytest

from spacy_psa.analysis.figures import fonts_for, new_figure, save_figure

ONLY_IN_STIX = "\u1d84"
"""matplotlib comes with STIX; its usual font, DejaVu Sans, does not have this character."""
NOWHERE = "\U0010fffd"


@pytest.fixture(autouse=True)
def fonts(monkeypatch):
    """The fonts that matplotlib comes with, whatever else is installed."""
    import matplotlib
    from matplotlib.font_manager import fontManager

    own = Path(matplotlib.get_data_path())
    found = [font for font in fontManager.ttflist if own in Path(font.fname).parents]
    monkeypatch.setattr(fontManager, "ttflist", found)
    return found


def save(text, path):
    figure = new_figure(2.0, 1.0)
    figure.text(0.5, 0.5, text, fontsize=40)
    save_figure(figure, path)
    return path.read_bytes()


@pytest.fixture
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_usual_characters_need_no_other_font():
    assert fonts_for("Ada, Łódź, Ελλάδα\n") == ([], "")


def test_a_font_is_found_for_other_characters():
    names, missing = fonts_for(f"Ada {ONLY_IN_STIX}")
    assert names == ["STIXGeneral"] and missing == ""


def test_no_font_is_taken_for_characters_that_none_has():
    assert fonts_for(f"b{NOWHERE}a") == ([], NOWHERE)


def test_a_listed_font_that_is_not_there_is_passed_over(fonts):
    from matplotlib.font_manager import FontEntry

    fonts.append(FontEntry(fname="/nowhere.ttf", name="A", style="normal", weight=400))
    assert fonts_for(ONLY_IN_STIX) == (["STIXGeneral"], "")


@pytest.mark.usefixtures("no_warnings")
def test_a_figure_has_the_characters_of_another_font(tmp_path):
    drawn = save(ONLY_IN_STIX, tmp_path / "found.svg")
    assert b"STIXGeneral" in drawn


def test_one_warning_names_the_characters_that_are_drawn_as_boxes(tmp_path):
    with pytest.warns(UserWarning) as told:
        save(NOWHERE + "a", tmp_path / "boxes.png")
    assert len(told) == 1
    assert f"no installed font has the characters {NOWHERE}, so" in str(told[0].message)
    assert told[0].filename == __file__


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_a_figure_has_no_date_in_its_file(tmp_path, kind):
    figure = new_figure(2, 2)
    figure.subplots().plot([0, 1])
    save_figure(figure, tmp_path / f"a.{kind}")
    assert b"Date" not in (tmp_path / f"a.{kind}").read_bytes()
