"""What is read off a profile, and its flame graph."""

from collections import Counter
from xml.etree import ElementTree

from spacy_psa.laboratory.performance.flame import WIDTH, flame_graph, folded
from spacy_psa.laboratory.performance.profile import Profile, markdown, profile_annotation
from spacy_psa.laboratory.performance.rooms import ROOMS, Place
from tests.helpers.pipelines import TEXTS

SVG = "{http://www.w3.org/2000/svg}"
PROFILE = Profile(
    2,
    "word",
    Counter(
        {
            Place("encoder", ("spacy_psa.a", "spacy_psa.b.<lambda>")): 6e-6,
            Place("encoder", ("spacy_psa.a",)): 2e-6,
            Place("spaCy", ()): 2e-6,
        }
    ),
)


def test_rooms_and_functions_share_the_time():
    record = PROFILE.to_dict()
    assert record["rooms"]["encoder"] == 8e-6 and record["rooms"]["spaCy"] == 2e-6
    assert list(record["rooms"]) == list(ROOMS)
    assert [(f["function"], f["seconds"]) for f in record["functions"]] == [
        ("spacy_psa.b.<lambda>", 6e-6), ("spacy_psa.a", 2e-6), ("", 2e-6),
    ]  # fmt: skip


def test_the_table_has_the_time_of_a_unit_of_work():
    table = markdown({"Annotation": PROFILE})
    assert "| encoder | 4.00 | 80.0% |" in table and "| all | 5.00 | 100% |" in table
    assert "| `spacy_psa.b.<lambda>` | encoder | 60.0% |" in table
    assert "Sampled every 2 ms, over 0.00 s of processor time." in table


def test_a_flame_graph_is_as_wide_as_the_time():
    root = ElementTree.fromstring(flame_graph("annotation", PROFILE))
    drawn = {
        group.findtext(f"{SVG}title").split(":")[0]: group.find(f"{SVG}rect").attrib
        for group in root.iter(f"{SVG}g")
    }
    widths = {name: float(rectangle["width"]) / WIDTH for name, rectangle in drawn.items()}
    assert widths == {
        "annotation": 1.0, "encoder": 0.8, "spaCy": 0.2, "spacy_psa.a": 0.8,
        "spacy_psa.b.<lambda>": 0.6,
    }  # fmt: skip
    assert drawn["spacy_psa.b.<lambda>"]["y"] > drawn["spacy_psa.a"]["y"]
    assert drawn["spaCy"]["x"] == "960.0"


def test_stacks_are_lines_with_microseconds():
    assert folded(PROFILE).splitlines() == [
        "encoder;spacy_psa.a 2", "encoder;spacy_psa.a;spacy_psa.b.<lambda> 6", "spaCy 2",
    ]  # fmt: skip


def test_annotation_is_profiled_in_all_its_runs(trained):
    found = profile_annotation(trained, [text.split() for text in TEXTS], repeats=2)
    assert found.amount == 2 * sum(len(text.split()) for text in TEXTS) and found.unit == "word"
    assert found.total > 0 and "test_profile" not in folded(found)
