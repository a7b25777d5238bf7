"""Factories: their settings are the keyword arguments of the component's constructor."""

import inspect
from typing import Any, Literal

import pytest
import spacy
from spacy.language import Language
from thinc.api import Config, Model
from thinc.config import ConfigValidationError

from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.chunker import ChunkStore, make_crf_chunker
from spacy_psa.pipeline.chain.ner import EntityStore, make_crf_ner
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.pipeline.chain.tagger import CRFTagger, make_crf_tagger
from spacy_psa.pipeline.nested.spans import NestedSpanLabeler, make_crf_spans
from spacy_psa.pipeline.parser.parser import ConstituencyParser, make_constituency_parser
from spacy_psa.pipeline.settings import component_factory
from tests.helpers.parsers import chart_model
from tests.helpers.tasks import task_model

COMPONENTS = {
    "crf_ner": (SpanLabeler, make_crf_ner, task_model()),
    "crf_tagger": (CRFTagger, make_crf_tagger, task_model()),
    "crf_chunker": (SpanLabeler, make_crf_chunker, task_model()),
    "crf_spans": (NestedSpanLabeler, make_crf_spans, task_model("spans")),
    "constituency_parser": (ConstituencyParser, make_constituency_parser, chart_model()),
}
STORES = {"crf_ner": EntityStore, "crf_chunker": ChunkStore}
# A value of another type than the setting's, which pydantic does not turn into it.
WRONG = {
    "batch_tokens": "many",
    "batch_spans": "many",
    "confidence": "perhaps",
    "constituents_key": ["a", "b"],
    "decode": "beam",
    "forbidden_spans_key": ["a", "b"],
    "incorrect_spans_key": ["a", "b"],
    "label_smoothing": "some",
    "layers": "many",
    "loss": "squared",
    "max_grad_norm": "small",
    "max_length": "long",
    "mentions_key": ["a", "b"],
    "missing_spans_key": ["a", "b"],
    "neg_prefix": ["!"],
    "overwrite": "perhaps",
    "overwrite_tags": "perhaps",
    "quotes": "french",
    "recall_cost": "high",
    "reduction": "max",
    "required_spans_key": ["a", "b"],
    "scheme": "IOB1",
    "several_labels": "all",
    "spans_key": ["a", "b"],
    "suggested_spans": "towns",
    "tag_weight": "heavy",
    "threshold": "high",
    "unfitting": "keep",
}


def settings_of(factory: str) -> dict[str, Any]:
    """The keyword arguments of the constructor and of the store, with their defaults."""
    kinds = (COMPONENTS[factory][0], STORES.get(factory, object))
    parameters = [p for kind in kinds for p in inspect.signature(kind).parameters.values()]
    keywords = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return {name: keywords[name] for name in keywords.keys() - {"scorer", "store"}}


def value_of(pipe: Any, name: str) -> Any:
    """The value of a setting, which may be private or belong to the store."""
    owner = pipe if hasattr(pipe, name) or hasattr(pipe, f"_{name}") else pipe.store
    return getattr(owner, name if hasattr(owner, name) else f"_{name}")


def add(factory: str, **config: Any) -> Any:
    *_, model = COMPONENTS[factory]
    return spacy.blank("en").add_pipe(factory, config={"model": model, **config})


@pytest.mark.parametrize("factory", COMPONENTS)
def test_defaults_of_a_config_are_those_of_the_constructor(factory):
    component, _, _ = COMPONENTS[factory]
    defaults = dict(Language.get_factory_meta(factory).default_config)
    assert {"model", "scorer"} <= defaults.keys()
    settings = settings_of(factory)
    assert defaults.keys() - {"model", "scorer"} == settings.keys() != set()
    for name, default in settings.items():
        assert defaults[name] == default
    made = add(factory)
    store = {"store": STORES[factory]()} if factory in STORES else {}
    bare = component(made.vocab, made.model, "bare", **store)
    for name in settings.keys() - {"scheme"}:
        assert value_of(made, name) == value_of(bare, name) == settings[name]


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
    others |= {
        "quotes": "treebank",
        "several_labels": "refuse",
        "unfitting": "drop",
        "layers": "label",
    }
    others |= {"missing_spans_key": "parts", "suggested_spans": {"towns": 2.0}}
    others |= {"constituents_key": "trees", "mentions_key": "names"}
    if factory == "crf_spans":
        others["decode"] = "viterbi"
    defaults = settings_of(factory)
    given = {
        name: others[name] if name in others else values[type(default)](default)
        for name, default in defaults.items()
    }
    assert all(given[name] != default for name, default in defaults.items())
    seen = {}
    init = component.__init__

    def spy(self, vocab, model, name, **settings):
        seen.update(settings | vars(settings.get("store", object)))
        init(self, vocab, model, name, **settings)

    monkeypatch.setattr(component, "__init__", spy)
    add(factory, **given)
    assert {name: seen[name] for name in given} == given


@pytest.mark.parametrize("factory", COMPONENTS)
def test_unknown_setting_of_a_config_is_refused(factory):
    with pytest.raises(ConfigValidationError, match="shceme"):
        add(factory, shceme="BIO")


@pytest.mark.parametrize(
    ("factory", "setting"),
    [(factory, name) for factory in COMPONENTS for name in sorted(settings_of(factory))],
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
    assert (
        make.__name__ == f"make_{factory}"
        and STORES.get(factory, component).__name__ in make.__doc__
    )
    signature = inspect.signature(make)
    assert list(signature.parameters)[:3] == ["nlp", "name", "model"]
    assert signature.return_annotation is component
    nlp = spacy.blank("en")
    made = add(factory)
    settings = settings_of(factory)
    direct = make(nlp=nlp, name="mine", model=made.model, scorer=None, **settings)
    assert type(direct) is component and direct.name == "mine" and direct.vocab is nlp.vocab


@pytest.mark.parametrize("factory", COMPONENTS)
def test_a_component_is_flat(factory):
    pipe = add(factory)
    assert len(type(pipe).mro()) <= 6  # three of them are spaCy's and Python's
    assert len([name for name in dir(pipe) if not name.startswith("_")]) <= 50


class Small(CRFTagger):
    """A component of this test, with settings of its own."""

    def __init__(
        self,
        vocab: Any,
        model: Model,
        name: str = "small",
        *,
        size: int = 3,
        mode: Literal["one", "two"] = "one",
        confidence: bool = True,
        **settings: Any,
    ):
        super().__init__(vocab, model, name, confidence=confidence, **settings)
        if size < 1:
            raise InputError(f"{name}: size is {size}")
        self.size, self.mode = size, mode


@pytest.fixture(scope="module")
def small():
    return component_factory(
        "psa_test_small",
        Small,
        model=Config({"model": task_model()}).to_str(),
        scorer="spacy.tagger_scorer.v1",
        assigns=["token.tag"],
        score_weights={"small_f": 1.0, "small_p": None},
    )


def test_a_new_component_has_its_own_settings_and_those_of_its_bases(small):
    meta = Language.get_factory_meta("psa_test_small")
    config = dict(meta.default_config)
    assert config["model"] == task_model()
    assert config["scorer"] == {"@scorers": "spacy.tagger_scorer.v1"}
    assert (config["size"], config["mode"], config["confidence"]) == (3, "one", True)
    inherited = settings_of("crf_tagger") | {"confidence": True}
    assert inherited.items() <= config.items()
    assert list(meta.assigns) == ["token.tag"]
    assert meta.default_score_weights == {"small_f": 1.0, "small_p": None}
    pipe = spacy.blank("en").add_pipe("psa_test_small", config={"size": 5, "neg_prefix": "-"})
    assert type(pipe) is Small and (pipe.size, pipe.mode, pipe.name) == (5, "one", "psa_test_small")
    assert pipe._neg_prefix == "-"


def test_a_new_component_s_settings_are_checked(small):
    nlp = spacy.blank("en")
    for config, word in (({"size": "x"}, "size"), ({"mode": "three"}, "mode"), ({"b": 1}, "b")):
        with pytest.raises(ConfigValidationError, match=word):
            nlp.add_pipe("psa_test_small", config=config)
    with pytest.raises(InputError, match="psa_test_small: size is 0"):
        nlp.add_pipe("psa_test_small", config={"size": 0})
