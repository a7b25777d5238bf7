"""Draw the entities and the tree on the README with the package's own commands.

usage: python docs/pictures/draw.py [--project FOLDER]

Needs the sample models, which `python -m spacy project run all` trains in FOLDER, and chromium,
which saves the picture of the page with the entities.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy
from PIL import Image

HERE = Path(__file__).parent
TEXT = "Ingrid Bush left Reading for the Bank of Kenya ."
SIZE = "900,300"
MARGIN = 24  # pixels of white around the picture


def visualize(what: str, model: Path, source: Path, target: Path, *options: str) -> None:
    command = [sys.executable, "-m", "spacy_psa", "visualize", what, model, source, target]
    subprocess.run([*map(str, command), *options], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--project", type=Path, default=HERE.parents[1])
    training = parser.parse_args().project / "training"
    browser = shutil.which("chromium")
    if browser is None:
        parser.error("chromium is not on the PATH: apt-get install chromium")
    with TemporaryDirectory() as folder:
        source, page = Path(folder, "text.txt"), Path(folder, "entities.html")
        source.write_text(TEXT + "\n")
        tree = HERE / "tree.svg"
        visualize("trees", training / "sample-parser" / "model-best", source, tree, "--confidence")
        visualize("ents", training / "sample" / "model-best", source, page)
        picture = HERE / "entities.png"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        shot = [f"--screenshot={picture}", f"--window-size={SIZE}", f"--user-data-dir={folder}/b"]
        command = [browser, *options, *shot, "--force-device-scale-factor=2", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
    crop(picture)


def crop(picture: Path) -> None:
    """Crop the white edges of a picture."""
    pixels = numpy.asarray(Image.open(picture).convert("RGB"))
    rows, columns = numpy.nonzero((pixels < 250).any(2))
    top, left = max(0, rows.min() - MARGIN), max(0, columns.min() - MARGIN)
    cut = pixels[top : rows.max() + MARGIN, left : columns.max() + MARGIN]
    Image.fromarray(cut).save(picture, optimize=True)


if __name__ == "__main__":
    main()
