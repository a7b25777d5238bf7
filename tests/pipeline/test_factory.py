"""Factories: their settings are the keyword arguments of the component's constructor."""

import inspect
from typing import Any, Literal

import pytest
import spacy
from spacy.language import Language
from thinc.api import Config, Model
from thinc.config import ConfigValidationError

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.chunker import CRFChunker, make_crf_chunker
from spacy_psa.pipeline.chain.ner import CRFEntityRecognizer, make_crf_ner
from spacy_psa.pipeline.chain.tagger import CRFTagger, make_crf_tagger
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.pipeline.parser.parser import ConstituencyParser, make_constituency_parser
from spacy_psa.pipeline.settings import component_factory
from tests.helpers.parsers import chart_model
from tests.helpers.tasks import task_model

COMPONENTS = {
    "crf_ner": (CRFEntityRecognizer, make_crf_ner, task_model()),
    "crf_tagger": (CRFTagger, make_crf_tagger, task_model()),
    "crf_chunker": (CRFChunker, make_crf_chunker, task_model()),
    "constituency_parser": (ConstituencyParser, make_constituency_parser, chart_model()),
}
# A value of another type than the setting's, which pydantic does not turn into it.
WRONG = {
    "batch_tokens": "many",
    "batch_spans": "many",
    "confidence": "perhaps",
    "decode": "beam",
    "forbidden_spans_key": ["a", "b"],
    "incorrect_spans_key": ["a", "b"],
    "label_smoothing": "some",
    "loss": "squared",
    "max_grad_norm": "small",
    "max_length": "long",
    "neg_prefix": ["!"],
    "overwrite": "perhaps",
    "overwrite_tags": "perhaps",
    "quotes": "french",
    "recall_cost": "high",
    "reduction": "max",
    "required_spans_key": ["a", "b"],
    "scheme": "IOB1",
    "spans_key": ["a", "b"],
    "tag_weight": "heavy",
    "threshold": "high",
}


def settings_of(component: type[StructuredPipe]) -> dict[str, inspect.Parameter]:
    """The keyword arguments of the constructor, but for the scorer, which is a function."""
    parameters = inspect.signature(component).parameters.values()
    keywords = {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}
    del keywords["scorer"]
    return keywords


def add(factory: str, **config: Any) -> Any:
    *_, model = COMPONENTS[factory]
    return spacy.blank("en").add_pipe(factory, config={"model": model, **config})


@pytest.mark.parametrize("factory", COMPONENTS)
def test_defaults_of_a_config_are_those_of_the_constructor(factory):
    component, _, _ = COMPONENTS[factory]
    defaults = dict(Language.get_factory_meta(factory).default_config)
    assert {"model", "scorer"} <= defaults.keys()
    settings = settings_of(component)
    assert defaults.keys() - {"model", "scorer"} == settings.keys() != set()
    for name, setting in settings.items():
        assert defaults[name] == setting.default
    made = add(factory)
    bare = component(made.vocab, made.model, "bare")
    for name in settings.keys() - {"scheme"}:
        attribute = "decoding" if name == "decode" else name  # `decode` is a method
        assert getattr(made, attribute) == getattr(bare, attribute)


@pytest.mark.parametrize("factory", COMPONENTS)
def test_every_setting_of_a_config_reaches_the_constructor(factory, monkeypatch):
    component, _, _ = COMPONENTS[factory]
    values = {
        bool: lambda default: not default,
        int: lambda default: default + 1,
        float: lambda default: default / 2 + 0.125,
        str: lambda default: f"my_{default}",
    }
    others = {"scheme": "BIO", "reduction": "sum", "decode": "mbr", "loss": "log_likelihood"}
    others |= {"incorrect_spans_key": "wrong", "required_spans_key": "yes"}
    others["forbidden_spans_key"] = "no"
    others["quotes"] = "treebank"
    defaults = {name: setting.default for name, setting in settings_of(component).items()}
    given = {
        name: others[name] if name in others else values[type(default)](default)
        for name, default in defaults.items()
    }
    assert all(given[name] != default for name, default in defaults.items())
    seen = {}
    init = component.__init__

    def spy(self, vocab, model, name, **settings):
        seen.update(settings)
        init(self, vocab, model, name, **settings)

    monkeypatch.setattr(component, "__init__", spy)
    add(factory, **given)
    assert {name: seen[name] for name in given} == given
    assert seen.keys() == given.keys() | {"scorer"}


@pytest.mark.parametrize("factory", COMPONENTS)
def test_unknown_setting_of_a_config_is_refused(factory):
    with pytest.raises(ConfigValidationError, match="shceme"):
        add(factory, shceme="BIO")


@pytest.mark.parametrize(
    ("factory", "setting"),
    [(factory, name) for factory, (kind, *_) in COMPONENTS.items() for name in settings_of(kind)],
)
def test_setting_of_a_wrong_type_is_refused(factory, setting):
    with pytest.raises(ConfigValidationError, match=setting):
        add(factory, **{setting: WRONG[setting]})


@pytest.mark.parametrize("factory", COMPONENTS)
def test_model_and_scorer_of_a_config_are_checked(factory):
    for setting in ("model", "scorer"):
        with pytest.raises(ConfigValidationError, match=setting):
            add(factory, **{setting: 3})


@pytest.mark.parametrize("factory", COMPONENTS)
def test_scorer_may_be_left_out(factory):
    assert add(factory).scorer is not None
    assert add(factory, scorer=None).scorer is None


@pytest.mark.parametrize("factory", COMPONENTS)
def test_registered_factory_is_the_function_of_its_module(factory):
    component, make, _ = COMPONENTS[factory]
    assert make.__name__ == f"make_{factory}" and component.__name__ in make.__doc__
    signature = inspect.signature(make)
    assert list(signature.parameters)[:3] == ["nlp", "name", "model"]
    assert signature.return_annotation is component
    nlp = spacy.blank("en")
    made = add(factory)
    given = {name: p.default for name, p in settings_of(component).items()}
    direct = make(nlp=nlp, name="mine", model=made.model, scorer=None, **given)
    assert type(direct) is component and direct.name == "mine" and direct.vocab is nlp.vocab


class Small(StructuredPipe):
    """A component of this test, with settings of its own."""

    outputs = 1

    def __init__(
        self,
        vocab: Any,
        model: Model,
        name: str = "small",
        *,
        size: int = 3,
        mode: Literal["one", "two"] = "one",
        scorer: Any = None,
    ):
        super().__init__(vocab, model, name, scorer=scorer, max_grad_norm=0.0)
        if size < 1:
            raise InputError(f"{name}: size is {size}")
        self.size, self.mode = size, mode

    def find_labels(self, examples):
        return []

    def predict(self, docs):
        return [None for _ in docs]

    def set_annotations(self, docs, scores):
        pass

    def get_loss(self, examples, scores):
        return 0.0, []


@pytest.fixture(scope="module")
def small():
    return component_factory(
        "psa_test_small",
        Small,
        model=Config({"model": task_model()}).to_str(),
        scorer=None,
        assigns=["doc.ents"],
        score_weights={"small_f": 1.0, "small_p": None},
    )


def test_a_new_component_is_registered_with_what_is_told(small):
    meta = Language.get_factory_meta("psa_test_small")
    assert meta.default_config["model"] == task_model()
    assert meta.default_config["scorer"] is None
    assert (meta.default_config["size"], meta.default_config["mode"]) == (3, "one")
    assert list(meta.assigns) == ["doc.ents"]
    assert meta.default_score_weights == {"small_f": 1.0, "small_p": None}
    pipe = spacy.blank("en").add_pipe("psa_test_small", config={"size": 5})
    assert type(pipe) is Small and (pipe.size, pipe.mode, pipe.name) == (5, "one", "psa_test_small")


def test_a_new_component_s_settings_are_checked(small):
    nlp = spacy.blank("en")
    for config, word in (({"size": "x"}, "size"), ({"mode": "three"}, "mode"), ({"b": 1}, "b")):
        with pytest.raises(ConfigValidationError, match=word):
            nlp.add_pipe("psa_test_small", config=config)
    with pytest.raises(InputError, match="psa_test_small: size is 0"):
        nlp.add_pipe("psa_test_small", config={"size": 0})
