"""spaCy factories that take their settings from the constructor of a component."""

import inspect
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Any

from spacy.language import Language
from thinc.api import Config

from spacy_psa.pipeline.component import StructuredPipe


def component_factory(
    factory: str,
    component: type[StructuredPipe],
    *,
    model: str,
    scorer: str | None,
    assigns: Iterable[str],
    score_weights: dict[str, float | None],
) -> Callable[..., Any]:
    """Register the factory of a component and give the function that makes it.

    The settings that a config may have, their types and their defaults are the keyword
    arguments of the component's constructor.

    model: the default model, as the block [model] of a config.
    scorer: the registered name of the default scorer.
    assigns, score_weights: see spaCy's `Language.factory`.
    """
    arguments = list(inspect.signature(component).parameters.values())
    settings = [p for p in arguments if p.kind is Parameter.KEYWORD_ONLY]

    def make(nlp: Language, name: str, model: Any, **given: Any) -> StructuredPipe:
        return component(nlp.vocab, model, name, **given)

    annotations = {p.name: p.annotation for p in arguments}
    positional = (("nlp", Language), ("name", str), ("model", annotations["model"]))
    make.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            *(Parameter(n, Parameter.KEYWORD_ONLY, annotation=kind) for n, kind in positional),
            *(setting.replace(default=Parameter.empty) for setting in settings),
        ],
        return_annotation=component,
    )
    make.__name__ = make.__qualname__ = f"make_{factory}"
    make.__doc__ = f"The factory `{factory}`; see `{component.__name__}` for its settings."
    defaults = {setting.name: setting.default for setting in settings}
    defaults["model"] = Config().from_str(model)["model"]
    defaults["scorer"] = None if scorer is None else {"@scorers": scorer}
    registered: Callable[..., Any] = Language.factory(
        factory,
        assigns=list(assigns),
        default_config=defaults,
        default_score_weights=score_weights,
        func=make,
    )
    return registered
