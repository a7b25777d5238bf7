"""Examples in docstrings: they run, and every public class has one."""

import doctest
import importlib
import inspect
import pkgutil
import random
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy
import pytest
import torch

import spacy_psa

OPTIONAL = {  # package of an optional extra: the extra
    "cupy": "cuda",
    "fastapi": "serve",
    "matplotlib": "plot",
    "optuna": "search",
    "prometheus_client": "serve",
    "pyarrow": "ray",
    "ray": "ray",
    "spacy_transformers": "transformers",
    "starlette": "serve",
    "svgling": "trees",
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ROOMS = ("modules", "structs", "bridge", "architectures", "pipeline")

# Public classes that need no example, as MODULE.NAME: the reason.
WITHOUT_EXAMPLE: dict[str, str] = {}


def names() -> list[str]:
    """The modules of the package, without those that run when they are imported."""
    found = pkgutil.walk_packages(spacy_psa.__path__, f"{spacy_psa.__name__}.")
    return [spacy_psa.__name__, *(m.name for m in found if not m.name.endswith(".__main__"))]


def imported(name: str) -> ModuleType | str:
    """A module, or the reason why it is skipped."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in OPTIONAL:
            raise
        return f"{name} needs {package}: install spacy-psa[{OPTIONAL[package]}]"


def skipped(name: str, reason: str) -> object:
    return pytest.param(None, id=name, marks=pytest.mark.skip(reason=reason))


def docstrings() -> list[object]:
    """One parameter for each docstring with examples."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    parameters: list[object] = []
    for name in names():
        module = imported(name)
        if isinstance(module, str):
            parameters.append(skipped(name, module))
            continue
        tests = sorted(finder.find(module, name), key=lambda test: test.name)
        parameters += [pytest.param(test, id=test.name) for test in tests if test.examples]
    return parameters


@contextmanager
def fixed_surroundings() -> Iterator[None]:
    """The same random numbers and the same way of printing for every docstring."""
    states = random.getstate(), numpy.random.get_state()
    torch.set_printoptions(profile="default", sci_mode=False)
    try:
        with torch.random.fork_rng(), numpy.printoptions(precision=4, suppress=True):
            random.seed(0)
            numpy.random.seed(0)
            torch.manual_seed(0)
            yield
    finally:
        random.setstate(states[0])
        numpy.random.set_state(states[1])
        torch.set_printoptions(profile="default")


@pytest.mark.parametrize("test", docstrings())
def test_examples_of_docstrings_run(test):
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    with fixed_surroundings():
        result = runner.run(test, out=said.append)
    assert result.attempted and not result.failed, "".join(said)


def public_classes() -> Iterator[tuple[str, type]]:
    """The classes that a module of the rooms defines, by MODULE.NAME."""
    for name in names():
        if name.removeprefix("spacy_psa.").partition(".")[0] not in ROOMS:
            continue
        module = imported(name)
        if isinstance(module, str):
            continue
        for own, value in vars(module).items():
            defined = inspect.isclass(value) and (value.__module__, value.__name__) == (name, own)
            if defined and not own.startswith("_"):
                yield f"{name}.{own}", value


def has_example(cls: type) -> bool:
    # Not cls.__doc__: a class without a docstring has the docstring of its base class.
    docstring = vars(cls).get("__doc__")
    return bool(docstring) and bool(doctest.DocTestParser().get_examples(docstring))


def test_every_public_class_has_a_docstring_with_an_example():
    classes = dict(public_classes())
    missing = {name for name, cls in classes.items() if not has_example(cls)}
    assert len(classes) > 50
    assert sorted(missing) == sorted(WITHOUT_EXAMPLE)
