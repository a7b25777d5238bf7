"""A server of the page Annotate, with a file of its own."""

from contextlib import contextmanager

from spacy_psa.studio.server.annotate import annotate_view
from spacy_psa.studio.server.annotate_plan import AnnotatePlan
from spacy_psa.studio.server.app import create_app
from spacy_psa.studio.server.models import ServedModel
from spacy_psa.studio.server.project import project_view

SPOKEN = [
    "Ada Lovelace met Charles Babbage in London .",
    "Acme hired Ada and left Bath",
    "Babbage wrote to Mary Anne Evans .",
]


@contextmanager
def annotating(nlp, folder, lines=SPOKEN, model="none", settings=None, views=(), **options):
    """The work on a new or old file of a folder, and the app that shows it."""
    texts = None
    if lines:
        texts = folder / "texts.txt"
        texts.write_text("\n".join(lines) + "\n", encoding="utf8")
    options = {"annotator": "ann", **options}
    plan = AnnotatePlan(folder / "names.sqlite", texts, **options)
    served = ServedModel("small", nlp)
    with plan.open() as store:
        work = plan.work(store, served, None if model is None else str(model))
        yield (
            work,
            create_app(
                [served],
                settings,
                [annotate_view(work, plan.guidelines), project_view(work), *views],
            ),
        )


def fail_on_bad(monkeypatch):
    """Let models fail on texts with the word "bad"."""
    scored = ServedModel.scored

    def failing(model, text, **options):
        if "bad" in text.words:
            raise RuntimeError("no such\nfeature")
        return scored(model, text, **options)

    monkeypatch.setattr(ServedModel, "scored", failing)
