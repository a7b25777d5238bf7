"""spaCy factories that take their settings from the constructor of a component."""

import inspect
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Any

from spacy.language import Language
from thinc.api import Config, Model

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
    """Register the factory of a component.

    The keyword arguments of the component's constructor are the settings that a config may have,
    with their types and defaults.

    Args:
        factory: the name of the factory, such as "crf_ner".
        component: the class of the component.
        model: the default model, as the text of the block [model] of a config.
        scorer: the registered name of the default scorer; None for no scorer.
        assigns: the attributes that the component writes; see spaCy's `Language.factory`.
        score_weights: the default weight of each score; see spaCy's `Language.factory`.

    Returns:
        The function that makes the component, for the entry point of the package.
    """
    arguments = list(inspect.signature(component).parameters.values())
    settings = [p for p in arguments if p.kind is Parameter.KEYWORD_ONLY]

    def make(nlp: Language, name: str, model: Model, **given: Any) -> StructuredPipe:
        made = component(nlp.vocab, model, name, **given)
        made.check_beside([pipe for _, pipe in nlp.components])
        return made

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
    make.__doc__ = f"Make a `{factory}`; `{component.__name__}` describes the settings."
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
