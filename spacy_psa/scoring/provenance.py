"""The provenance of a figure: the machine, the versions, the commit and the data."""

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import spacy_psa
from spacy_psa.corpora.assets import md5
from spacy_psa.errors import InputError

PACKAGES = ("spacy", "thinc", "torch", "numpy", "numba", "cupy")


def provenance(data: Iterable[Path] = ()) -> dict[str, Any]:
    """Return the origin of figures that are measured now, with the checksums of `data`.

    The keys are `date`, `command`, `commit`, `modified`, `data`, `machine` and `versions`.
    """
    head, modified = commit()
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": command(),
        "commit": head,
        "modified": modified,
        "data": checksums(data),
        "machine": machine(),
        "versions": versions(),
    }


def command() -> str:
    """The command of this process, so that it can be run again."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None:
        name = spec.name.removesuffix(".__main__")
        return shlex.join(["python", "-m", name, *sys.argv[1:]])
    script = Path(sys.argv[0])
    if script.suffix == ".py":
        return shlex.join(["python", *sys.argv])
    return shlex.join([script.name, *sys.argv[1:]])


def machine() -> dict[str, Any]:
    """Describe the machine; its `cores` are those that this process may use."""
    return {
        "cpu": _cpu(),
        "cores": _cores(),
        "memory_gb": _memory_gb(),
        "gpu": _gpu(),
        "system": platform.platform(),
    }


def versions() -> dict[str, str | None]:
    """Return the versions of Python, spacy-psa and its libraries; None of missing ones."""
    installed: dict[str, str | None] = {
        "python": platform.python_version(),
        "spacy-psa": spacy_psa.__version__,
    }
    for package in PACKAGES:
        installed[package] = _version(package)
    return installed


def commit(folder: Path | None = None) -> tuple[str | None, bool | None]:
    """Return the commit that is checked out in a folder, and whether tracked files differ from it.

    (None, None) without a repository; `folder` is by default the current one.
    """
    head = _git(folder, "rev-parse", "--verify", "HEAD")
    if head is None:
        return None, None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return head, None if changes is None else bool(changes)


def checksums(paths: Iterable[Path]) -> dict[str, str]:
    """Compute MD5 checksums as {path: checksum}; a folder stands for all files below it."""
    sums = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder; check the path")
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        sums.update({file.as_posix(): md5(file) for file in files if file.is_file()})
    return sums


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        if package == "cupy":  # the names of its wheels contain the version of CUDA
            return _version("cupy-cuda12x") or _version("cupy-cuda13x")
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _gpu() -> str | None:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _git(folder: Path | None, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
