"""Prepare a machine with a GPU that cannot reach a registry, and run the jobs there.

Run it in the root of the repository, with a Python that has torch, CuPy, numba and NumPy. SITE is
the archive of `benchmarks.gpu.site`. ARCHIVES are those of `benchmarks.gpu.pack`, whole or in
parts. Each is unpacked once. You do not have to install this package: the script writes its entry
points next to the other packages.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from benchmarks.gpu.pack import unpack
from benchmarks.script import script_parser
from spacy_psa import __version__
from spacy_psa.corpora.atomic import atomic_folder
from spacy_psa.laboratory.experiments.plan import read_toml

ROOT = Path(__file__).parents[2]
SITE = Path("gpu-site")
"""The folder of the packages."""


def unpack_site(archive: Path, site: Path) -> None:
    """Unpack packages, and write the entry points of this package next to them."""
    with tarfile.open(archive) as tar:
        tar.extractall(site, filter="data")
    project = read_toml(ROOT / "pyproject.toml", "project", "the repository")["project"]
    info = site / f"spacy_psa-{__version__}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    about = f"Metadata-Version: 2.1\nName: spacy-psa\nVersion: {__version__}\n"
    (info / "METADATA").write_text(about)
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def start(site: Path, archives: list[Path], words: list[str]) -> int:
    """Prepare the machine, run `benchmarks.gpu.run` with `words`, and return its exit status."""
    if not SITE.exists():
        with atomic_folder(SITE) as temporary:
            unpack_site(site, temporary)
    for archive in archives:
        done = SITE / f"{archive.name}.unpacked"
        if not done.exists():
            unpack(archive, Path())
            done.touch()
    if shutil.which("nvidia-cuda-mps-control"):  # kernels of several processes at the same time
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)
    path = os.pathsep.join([str(SITE.resolve()), str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "benchmarks.gpu.run", *words]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False).returncode


def main() -> None:
    options = script_parser(globals(), "SITE.tar.xz")
    options.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="ARCHIVES JOBS.toml ...",
        help="then as for gpu.run",
    )
    given = options.parse_args()
    jobs = next(
        (i for i, word in enumerate(given.words) if word.endswith(".toml")), len(given.words)
    )
    archives = [Path(word) for word in given.words[:jobs]]
    sys.exit(start(given.site, archives, given.words[jobs:]))


if __name__ == "__main__":
    main()
