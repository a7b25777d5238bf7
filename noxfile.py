"""Checks in environments of their own: `nox -s NAME`.

torch is the build for the CPU: on Linux, PyPI has only that with gigabytes of CUDA.
"""

from pathlib import Path

import nox

TORCH = ("--extra-index-url", "https://download.pytorch.org/whl/cpu")
COMPILE = (
    "uv", "pip", "compile", "--quiet", "--no-annotate", "--custom-compile-command", "nox -s lock",
    "--python-version", "3.11", "--python-platform", "x86_64-unknown-linux-gnu",
    "--extra", "test", "pyproject.toml",
)  # fmt: skip

nox.options.sessions = ["tests-3.11"]


@nox.session(python=["3.10", "3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """All tests, with the versions of constraints.txt on 3.11 and the newest ones elsewhere."""
    pinned = ("-c", "constraints.txt") if session.python == "3.11" else ()
    session.install(*TORCH, *pinned, "-e", ".[test]")
    session.run("python", "-m", "pytest", "-n", "auto", *session.posargs)


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """All tests, with the lowest versions that pyproject.toml allows."""
    session.install(*TORCH, "-c", "constraints-lowest.txt", "-e", ".[test]")
    session.run("python", "-m", "pytest", "-n", "auto", *session.posargs)


@nox.session(python="3.11")
def triton(session: nox.Session) -> None:
    """The chart kernel of a GPU in Triton's interpreter, and compiled for CUDA; only on Linux."""
    session.install(*TORCH, "-c", "constraints.txt", "-e", ".[test]", "triton")
    session.run("python", "-m", "pytest", "tests/kernels/test_gpu_tree.py", *session.posargs)


@nox.session(python="3.11")
def peers(session: nox.Session) -> None:
    """Tests that compare partially observed trees with torch-struct."""
    session.install(*TORCH, "-c", "constraints.txt", "-e", ".[test]", "torch-struct")
    session.run("python", "-m", "pytest", "tests/structs/test_torch_struct.py", *session.posargs)


@nox.session(python="3.11")
def audit(session: nox.Session) -> None:
    """Known vulnerabilities of the locked versions; asks PyPI for its advisories."""
    session.install("pip-audit")
    # --no-deps: the lock is complete, so that nothing needs to be installed.
    options = ("--no-deps", "--disable-pip", "-r", "requirements.lock")
    session.run("pip-audit", *options, *session.posargs)


@nox.session(python="3.11")
def sbom(session: nox.Session) -> None:
    """The software bill of materials of an installation, in sbom.json (CycloneDX)."""
    session.install(*TORCH, "-c", "constraints.txt", ".")
    session.install("cyclonedx-bom")
    options = ("--pyproject", "pyproject.toml", "--output-reproducible", "-o", "sbom.json")
    session.run("cyclonedx-py", "environment", *options, *session.posargs)


@nox.session(python="3.11")
def lock(session: nox.Session) -> None:
    """Write requirements.lock and constraints-lowest.txt anew."""
    session.install("uv")
    torch = Path(session.create_tmp()) / "torch.txt"
    torch.write_text("torch==2.13.0+cpu\n", encoding="utf8")
    newest = ("--generate-hashes", "-c", "constraints.txt", "--override", str(torch))
    session.run(*COMPILE, *TORCH, *newest, "-o", "requirements.lock")
    # Old source packages do not build with the compilers of today; seqeval has no wheel.
    oldest = ("--resolution", "lowest-direct", "--only-binary", ":all:", "--no-binary", "seqeval")
    session.run(*COMPILE, *TORCH, *oldest, "-o", "constraints-lowest.txt")
