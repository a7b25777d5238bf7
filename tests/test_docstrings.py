"""Examples in docstrings: they run, and what users call has one."""

import doctest
import importlib
import inspect
import pkgutil
import random
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
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
ROOMS = ("modules", "structs")
GROUPS = ("spacy_architectures", "thinc_optimizers", "thinc_schedules")

# Public classes that need no example, as MODULE.NAME: the reason.
WITHOUT_EXAMPLE = {
    "spacy_psa.modules.characters.CharacterEncoder": "an abstract base class",
    "spacy_psa.modules.documents.DocumentAttention": "a base class",
    "spacy-psa.Pretrained.v1": "it needs the folder of an encoder",
    "spacy_psa.modules.pretrained.PretrainedEncoder": "it needs the folder of an encoder",
    "spacy_psa.modules.pretrained_files.PretrainedFiles": "the result of a function",
    "spacy_psa.modules.pretrained.Windows": "the result of a function",
    "spacy_psa.structs.nested_f1.Choices": "the result of a function",
}


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


def used_by_users() -> Iterator[tuple[str, object]]:
    """The modules, the distributions, and everything that a config can name."""
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
    for group in GROUPS:
        for point in entry_points(group=group):
            if point.value.startswith("spacy_psa."):
                yield point.name, point.load()


def has_example(each: object) -> bool:
    # Not inspect.getdoc: a class without a docstring has the docstring of its base class.
    docstring = vars(each).get("__doc__") if inspect.isclass(each) else each.__doc__
    return bool(docstring) and bool(doctest.DocTestParser().get_examples(docstring))


def test_what_users_call_has_an_example():
    called = dict(used_by_users())
    missing = {name for name, each in called.items() if not has_example(each)}
    assert len(called) > 50
    assert sorted(missing) == sorted(WITHOUT_EXAMPLE)
