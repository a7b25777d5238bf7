"""Fixtures of all tests. What else tests share is in tests/helpers."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

gc.disable()  # until the tests are collected, since packages are not garbage
os.environ.setdefault("OMP_NUM_THREADS", "1")
if not Path("/dev/nvidiactl").exists():  # Triton reads it when it is imported
    os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.register_assert_rewrite("tests.helpers")
settings.register_profile(
    "random", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("same", parent=settings.get_profile("random"), derandomize=True)
settings.load_profile("same")  # other examples in each run: --hypothesis-profile random

from thinc.api import Adam, fix_random_seed  # noqa: E402

from tests.helpers import pipelines, quick_python  # noqa: E402
from tests.helpers.english import shorten_exceptions  # noqa: E402
from tests.helpers.paths import ROOT  # noqa: E402
from tests.helpers.registries import search_packages_once  # noqa: E402

search_packages_once()
shorten_exceptions()
quick_python.prepare()

if find_spec("spacy_transformers"):
    import spacy_transformers  # noqa: F401

    # For processes that tests start, by multiprocessing (sys.path) or as commands (PYTHONPATH).
    LIGHT = str(Path(__file__).parent / "light_children")
    sys.path.insert(0, LIGHT)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [LIGHT, os.getenv("PYTHONPATH")]))


RAY = {"test_annotate_shards.py", "test_engines.py", "test_experiment.py", "test_search.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first, so that no worker waits for another one at the end.

    Those that use Ray come one after another, so that one worker starts it.
    """
    items.sort(key=lambda item: (item.path.parent.name != "training", item.path.name not in RAY))


@pytest.hookimpl(tryfirst=True)  # before xdist, whose main process collects nothing
def pytest_runtestloop() -> None:
    """Leave packages and tests out of later searches for garbage, which take most of a second."""
    quick_python.use()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def one_seed() -> None:
    """Give each test the same random numbers, whichever tests run before it."""
    fix_random_seed(0)


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of the real corpora."""
    folder = os.environ.get("SPACY_PSA_CORPORA")
    if not folder:
        pytest.skip("SPACY_PSA_CORPORA does not name the folder of the real corpora")
    return Path(folder)


@pytest.fixture(scope="session")
def ray_head() -> Iterator[tuple[str, int]]:
    """The address of a cluster of Ray, which takes ten seconds to start, and its session."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'spacy-psa[ray]'")
    head = subprocess.Popen(
        [quick_python.PYTHON, "-m", "tests.helpers.ray_head"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        # By default, the workers of Ray give way to all other processes, such as the other tests.
        env={**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"},
        start_new_session=True,
    )
    with head:
        yield head.stdout.readline().strip(), head.pid  # type: ignore[union-attr]


@pytest.fixture
def on_ray(ray_head: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> int:
    """Let this test and its processes use the cluster of Ray; give the session of its workers."""
    address, session = ray_head
    monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    return session


@pytest.fixture(scope="session")
def trained_bytes() -> bytes:
    """A pipeline that knows the sentences of `MARKED`, serialised."""
    nlp = pipelines.make_nlp()
    pipelines.train(nlp, 50, Adam(0.02))
    return nlp.to_bytes()


@pytest.fixture
def trained(trained_bytes: bytes) -> Any:
    """A pipeline that knows the sentences of `MARKED`, the test's own."""
    return pipelines.make_nlp().from_bytes(trained_bytes)


@pytest.fixture(scope="session")
def trained_path(trained_bytes: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the trained pipeline; do not write to it."""
    path = tmp_path_factory.mktemp("trained") / "model"
    pipelines.make_nlp().from_bytes(trained_bytes).to_disk(path)
    return path
