"""Draw all figures of the documentation as SVG: `python docs/figures/draw.py [FOLDER]`."""

import sys
from pathlib import Path

import chain_figures
import parser_figures
import reliability

FIGURES = {**chain_figures.FIGURES, **parser_figures.FIGURES, **reliability.FIGURES}


def main(folder: Path) -> None:
    for name, draw in FIGURES.items():
        draw().save(folder, name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
