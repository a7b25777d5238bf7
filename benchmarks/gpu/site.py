"""Pack the requirements of this package for a machine with a GPU that cannot reach a registry.

OUT.tar.xz has their unpacked wheels for the Python of that machine, without the packages in
`THERE`, sources of compiled modules and tests, and without the symbols of libraries if the program
`strip` is installed here. `benchmarks.gpu.start` unpacks it there.
"""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.laboratory.experiments.plan import read_toml

ROOT = Path(__file__).parents[2]
THERE = ("torch", "numpy", "numba")
"""Packages that the machine has, in builds that fit each other."""
GLIBC = (17, 24, 27, 28, 31, 34, 35)
"""Versions 2.X of the C library whose wheels run there."""
SOURCES = {".pyx", ".pxd", ".cpp", ".c", ".hh", ".h", ".pyi"}
TESTS = {"tests", "test"}


def needed() -> list[str]:
    """List the requirements of this package that the machine need not have."""
    project = read_toml(ROOT / "pyproject.toml", "project", "the repository")["project"]
    return [line for line in project["dependencies"] if Requirement(line).name not in THERE]


def download(requirements: Iterable[str], python: str, folder: Path) -> None:
    """Download the wheels of packages and of all their requirements, for a version of Python.

    Raises:
        subprocess.CalledProcessError: if pip does not find such wheels.
    """
    systems = [f"manylinux_2_{minor}_x86_64" for minor in GLIBC]
    platforms = [f"--platform={name}" for name in (*systems, "manylinux2014_x86_64")]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
    options = [f"--python-version={python}", *platforms, f"--dest={folder}"]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*command, *options, *constraints, *requirements], check=True)


def unpack_wheels(wheels: Iterable[Path], site: Path) -> None:
    """Unpack wheels into a folder of packages, and leave out what nobody imports there."""
    for wheel in wheels:
        if parse_wheel_filename(wheel.name)[0] in THERE:
            continue
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                path = Path(name)
                if path.suffix not in SOURCES and not TESTS & set(path.parts[:-1]):
                    archive.extract(name, site)
    libraries = [str(path) for path in site.rglob("*.so")]
    if libraries and (strip := shutil.which("strip")):
        subprocess.run([strip, "--strip-unneeded", *libraries], check=True)


def pack_site(python: str, out: Path) -> None:
    """Download the packages for a version of Python, and pack them."""
    with TemporaryDirectory() as folder:
        wheels, site = Path(folder, "wheels"), Path(folder, "site")
        download(needed(), python, wheels)
        unpack_wheels(sorted(wheels.glob("*.whl")), site)
        with atomic_path(out) as temporary, tarfile.open(temporary, "w:xz") as archive:
            archive.add(site, ".")


def main() -> None:
    options = script_parser(globals(), "OUT.tar.xz")
    options.add_argument("--python", default="3.12", help="version of the Python there (3.12)")
    given = options.parse_args()
    pack_site(given.python, given.out)
    print(f"{given.out}: {given.out.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
