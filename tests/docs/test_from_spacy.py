"""The page on spaCy's configs: its diff turns the quickstart config into one that trains."""

import re

import spacy
from spacy.cli.init_config import init_config
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train

from spacy_psa.pipeline.chain.spans import SpanLabeler
from tests.docs.blocks import DOCS


def with_diffs(text: str, page: str) -> str:
    """Apply the diffs of a page, whose lines follow each other in the text."""
    for diff in re.findall(r"```diff\n(.*?)```", page, re.DOTALL):
        before, after = (
            "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[0] in kept)
            for kept in (" -", " +")
        )
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def test_the_diff_of_the_page_makes_a_config_that_trains(stand_ins, tmp_path, capsys):
    quickstart = init_config(lang="en", pipeline=["ner"], optimize="efficiency")
    page = (DOCS / "how-to" / "from-spacy.md").read_text(encoding="utf8")
    (tmp_path / "config.cfg").write_text(with_diffs(quickstart.to_str(), page))
    for part in ("train", "dev"):
        stand_ins.put(part, tmp_path / f"{part}.spacy")
    overrides = {f"paths.{part}": str(tmp_path / f"{part}.spacy") for part in ("train", "dev")}
    overrides |= {"training.max_steps": 40, "training.eval_frequency": 40}
    config = spacy.util.load_config(tmp_path / "config.cfg", overrides, interpolate=False)
    nlp, _ = train(init_nlp(config), None)
    assert isinstance(nlp.get_pipe("ner"), SpanLabeler) and nlp.pipe_names == ["tok2vec", "ner"]
    gold = list(DocBin().from_disk(tmp_path / "dev.spacy").get_docs(nlp.vocab))
    assert nlp.evaluate([spacy.training.Example(nlp.make_doc(d.text), d) for d in gold])["ents_f"]
