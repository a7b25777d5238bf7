"""Analyse, Compare, Review and the HTTP API with few and many labels, looked at as Annotate is."""

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
from spacy.tokens import Doc, Span

from spacy_psa.analysis.corrections import make_rows, write_rows
from spacy_psa.analysis.label_errors import Suspect
from spacy_psa.corpora.docbin import write_docbin
from spacy_psa.studio.active_learning.beginning import Beginning, without_knowledge
from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.compare import compare_view
from spacy_psa.studio.server.models import ServedModel
from spacy_psa.studio.server.review import review_view
from tests.helpers.serving import running
from tests.helpers.views import RTL, some_labels

PAGES = {
    "": "#model option",
    "compare": "article.error",
    "review": "#result .span",
    "docs": "#paths section",
}
"""The path of each view, and what is there once it is shown."""


@pytest.fixture(scope="module", params=[3, 60])
def labels(request):
    return some_labels(request.param)


@pytest.fixture(scope="module")
def address(labels, tmp_path_factory):
    """A server whose models and gold documents have all labels."""
    folder = tmp_path_factory.mktemp("views")
    nlp = without_knowledge(Beginning(labels=labels))
    docs = [Doc(nlp.vocab, words=RTL.split()) for _ in labels]
    for doc, label in zip(docs, labels):
        doc.set_ents([Span(doc, 1, 3, label), Span(doc, 4, 5, labels[0])])
    write_docbin(docs, folder / "gold.spacy")
    suspect = Suspect(0, "type", [(1, 3, labels[0])], [(1, 3, labels[1])], 0.1, 0.9)
    write_rows(make_rows([suspect], "ents", docs), folder / "errors.jsonl")
    models = [ServedModel("small", nlp), ServedModel("other", nlp)]
    views = [compare_view(models, folder / "gold.spacy"), review_view(folder / "errors.jsonl")]
    with running(create_app(models, views=views)) as where:
        yield where


@pytest.mark.parametrize("path", PAGES)
def test_a_view_fits_and_axe_finds_nothing(address, labels, open_page, look_at, path):
    page = open_page(f"{address}/{path}", PAGES[path])
    if not path:
        page.fill("#text", RTL)
        page.click("button.primary")
        page.wait_for_selector(".sentence .word")
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    # Out of sight, an article has a guessed height, and axe would see it above the next one. Ten
    # have all colours of labels, and ten rows of a table all kinds of cells.
    page.locator("article").evaluate_all(
        "all => all.forEach((one, i) => {"
        " if (i < 10) one.style.contentVisibility = 'visible'; else one.remove(); })"
    )
    page.locator("table").evaluate_all(
        "all => all.forEach((one) => [...one.rows].slice(10).forEach((row) => row.remove()))"
    )
    look_at(page, f"{path or 'analyse'}-{len(labels)}")
    shown = page.locator(".words").evaluate_all("all => all.map((one) => one.matches(':dir(rtl)'))")
    assert all(shown)


@pytest.mark.parametrize("path", ["", "compare", "review"])
def test_the_colours_of_a_view_are_those_of_the_ranks_of_labels(address, labels, open_page, path):
    page = open_page(f"{address}/{path}", PAGES[path])
    if not path:
        page.fill("#text", RTL)
        page.click("button.primary")
    page.wait_for_selector(".span > .name")
    marks = page.locator(".span:has(> .name)").evaluate_all(
        "all => all.map((one) => [one.querySelector(':scope > .name').textContent.split(' ')[0],"
        " one.style.getPropertyValue('--mark')])"
    )
    order = {"": labels, "compare": sorted(labels), "review": sorted(labels[:2])}[path]
    ranks = {label: rank for rank, label in enumerate(order)}
    assert marks == [[label, f"var(--label-{ranks[label] % 10})"] for label, _ in marks]
