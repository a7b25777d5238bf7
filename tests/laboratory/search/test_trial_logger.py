"""The logger of a search: it reports to the search, and the config's own logger goes on."""

import pytest
import srsly

from spacy_psa.errors import InputError
from spacy_psa.laboratory.search.space import read_space
from spacy_psa.laboratory.search.trial_logger import trial_logger
from tests.helpers.searches import search_config, write_search


def test_the_logger_of_a_search_is_for_searches_only():
    with pytest.raises(InputError, match="ConsoleLogger"):
        trial_logger(None)(None, None, None)


def test_the_logger_of_the_config_goes_on(tmp_path):
    study = pytest.importorskip(
        "spacy_psa.laboratory.search.study", reason="needs the extra `search`"
    )
    folder = write_search(tmp_path)
    settings = search_config(folder)
    settings["training"]["logger"]["output_file"] = str(tmp_path / "log.jsonl")
    search = study.Search(settings, read_space(folder / "space.toml"), tmp_path / "a.db")
    trial = search.step()
    logged = [line["score"] for line in srsly.read_jsonl(tmp_path / "log.jsonl")]
    assert logged == pytest.approx(list(trial.intermediate_values.values()), abs=1e-4)
