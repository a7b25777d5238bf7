"""`python -m docs.generate [FOLDER]`: write the pages of docs/reference."""

import sys
from pathlib import Path

from docs.generate.pages import pages

REFERENCE = Path(__file__).parents[1] / "reference"


def main(folder: Path) -> None:
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf8")
    print(f"{len(pages())} pages written to {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else REFERENCE)
