"""Pipelines that an earlier version saved still load, and say what they said."""

import io
import json
from pathlib import Path
from zipfile import ZipFile

import numpy
import pytest
import spacy

from tests.saved.make import answers

SAVED = sorted(Path(__file__).parent.glob("v*.zip"))


@pytest.fixture(scope="module", params=SAVED, ids=lambda path: path.stem)
def archive(request):
    return ZipFile(request.param)


@pytest.fixture(scope="module")
def found(archive, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    archive.extractall(folder)
    return answers(spacy.load(folder / "pipeline"))


def test_every_component_predicts_what_it_did(archive, found):
    expected = json.loads(archive.read("answers.json"))
    assert found.keys() == expected.keys()
    for name, (said, _) in found.items():
        scores, before = said.pop("scores", []), expected[name].pop("scores", [])
        assert json.loads(json.dumps(said)) == expected[name], name
        for ours, theirs in zip(scores, before, strict=True):
            assert ours == pytest.approx(theirs, abs=1e-5), name


def test_every_marginal_is_what_it_was(archive, found):
    # To the bit on the machine that saved it; another processor may round otherwise.
    expected = numpy.load(io.BytesIO(archive.read("marginals.npz")))
    assert found.keys() == set(expected.files)
    for name, (_, marginals) in found.items():
        numpy.testing.assert_allclose(marginals, expected[name], atol=1e-5, err_msg=name)
