"""Settings of components: written once, checked when they are set, saved when they have changed.

A pipeline is made from its config before its components are loaded, so a setting that was changed
after that would be lost. It is saved with the component, next to the value that it replaces, and is
set again where the config still has that value.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from thinc.api import Config, Model

from spacy_psa.errors import InputError, SettingError, naming

CHANGED = "changed"
"""The entry of `pipe.cfg` with settings that were changed."""


class Setting:
    """An attribute of a component that is checked whenever it is set.

    `check` is called with the name of the setting and the value, and raises a SettingError. The
    class of the component describes the setting.
    """

    def __init__(self, check: Callable[[str, Any], None]):
        self.check = check

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    if TYPE_CHECKING:
        # Without __get__, Python reads the value in the __dict__ of the component.
        def __get__(self, pipe: Any, owner: type | None = None) -> Any: ...

    def __set__(self, pipe: Any, value: Any) -> None:
        with naming(pipe.name):
            self.check(self.name, value)
        pipe.__dict__[self.name] = value
        # The first value is the one of the config; see `StructuredPipe.to_bytes`.
        pipe.__dict__.setdefault("_configured", {}).setdefault(self.name, value)
        pipe._forget_derived()


def check_switch(setting: str, value: Any) -> None:
    """Raise SettingError unless a value is True or False."""
    if not isinstance(value, bool):
        raise SettingError(setting, value, "it must be True or False")


def note_changes(pipe: Any) -> None:
    """Note the settings that were changed among those that are saved with a component."""
    changed = {
        name: [value, getattr(pipe, name)]
        for name, value in pipe._configured.items()
        if getattr(pipe, name) != value
    }
    pipe.cfg.pop(CHANGED, None)
    if changed:
        pipe.cfg[CHANGED] = changed


def set_changes(pipe: Any) -> None:
    """Set the settings again that had been changed when the component was saved."""
    for name, (before, value) in pipe.cfg.get(CHANGED, {}).items():
        if pipe._configured.get(name, CHANGED) == before:
            setattr(pipe, name, value)


@contextmanager
def all_or_nothing(pipe: Any) -> Iterator[None]:
    """Make a context in which a component is loaded; if that fails, it stays as it was.

    InputError if the data are damaged, or belong to another architecture.
    """
    cfg, model = {**pipe.cfg, "labels": pipe.label_data}, pipe.model.to_bytes()
    settings = {name: getattr(pipe, name) for name in pipe._configured}
    nodes = list(pipe.model.walk())
    open_dims = [(node, d) for node in nodes for d in node.dim_names if not node.has_dim(d)]
    for name in [name for name in pipe.cfg if name not in ("labels", "tags")]:
        pipe.cfg.pop(name)  # the saved component may not have it
    try:
        yield
        pipe._check_loaded()
    except Exception as error:
        pipe.cfg = cfg
        vars(pipe).update(settings)
        pipe._forget_derived()
        pipe.model.from_bytes(model)
        for node, dim in open_dims:  # thinc does not unset the dimensions that were loaded
            node.set_dim(dim, None, force=True)
        if isinstance(error, FileNotFoundError):
            raise
        raise InputError(f"Component '{pipe.name}' cannot be loaded: {error}") from error


def joined_signature(cls: type) -> Signature:
    """Join the settings of a class and its bases, each with the default of the nearest class.

    The `__init__` of each class has its own settings and `**settings` for those of its base.
    """
    parameters: dict[str, Parameter] = {}
    for base in cls.__mro__:
        if "__init__" in vars(base):
            _, *own = inspect.signature(base.__init__).parameters.values()  # type: ignore[misc]
            parameters = {p.name: p for p in own} | parameters
            if all(p.kind is not Parameter.VAR_KEYWORD for p in own):
                break
    kinds = [p for p in parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    return Signature(sorted(kinds, key=lambda p: p.kind))


def keyword_settings(cls: type) -> list[Parameter]:
    """List the keyword arguments of a class."""
    arguments = inspect.signature(cls).parameters.values()
    return [p for p in arguments if p.kind is Parameter.KEYWORD_ONLY]


def component_factory(
    factory: str,
    component: type[TrainablePipe],
    *,
    model: str,
    scorer: str,
    assigns: Iterable[str],
    score_weights: dict[str, float | None],
    store: type | None = None,
) -> Callable[..., Any]:
    """Register the spaCy factory of a component.

    The keyword arguments of the component and of its store are the settings of a config, with
    their types and defaults.

    Args:
        factory: the name of the factory, such as "crf_ner".
        model: the default model, as the block [model] of a config.
        scorer: the registered name of the default scorer.
        assigns: the attributes that the component writes; see spaCy's `Language.factory`.
        score_weights: the default weight of each score; see spaCy's `Language.factory`.
        store: the class that reads and writes the annotation, for components that have one.

    Returns:
        The function that makes the component, for the entry point of the package.
    """
    own = keyword_settings(store) if store else []
    settings = [*own, *keyword_settings(component)]

    def make(nlp: Language, name: str, model: Model, **given: Any) -> TrainablePipe:
        if store:
            given["store"] = store(**{p.name: given.pop(p.name) for p in own})
        pipe: Any = component(nlp.vocab, model, name, **given)
        pipe._check_others([other for _, other in nlp.components])
        return pipe

    positional = (("nlp", Language), ("name", str), ("model", Model))
    make.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            *(Parameter(n, Parameter.KEYWORD_ONLY, annotation=kind) for n, kind in positional),
            *(p.replace(default=Parameter.empty) for p in settings if p.name != "store"),
        ],
        return_annotation=component,
    )
    make.__name__ = make.__qualname__ = f"make_{factory}"
    make.__doc__ = f"Make a `{factory}`; `{(store or component).__name__}` describes it."
    defaults = {p.name: p.default for p in settings if p.name != "store"}
    defaults["model"] = Config().from_str(model)["model"]
    defaults["scorer"] = {"@scorers": scorer}
    registered: Callable[..., Any] = Language.factory(
        factory,
        assigns=list(assigns),
        default_config=defaults,
        default_score_weights=score_weights,
        func=make,
    )
    return registered
