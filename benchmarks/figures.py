"""Fill in the figures on the pages from the records.

A comment after a number names its figure:

    It reaches a test F1 of 91.84 ± 0.08<!-- test("documents/best-*") --> on CoNLL-2003.

The comment is a Python expression of the functions of `benchmarks.lookup`, and of those in
benchmarks/EXPERIMENT/figures.py, which other pages call as `EXPERIMENT.function(…)`. Of several
values the page has their mean, or, where it has "±", their mean and standard deviation. The number
keeps its form: its digits after the point, a plus sign, an exponent. In tables, a cell may also be
"yes" or "no".

A comment before a table has an expression for some of its columns. In it, `row` is the text of the
row's comment, or else of its first cell, and `record` the record that the row links to, or else
`row`. The numbers of a cell are the values of the expression, a tuple if there are several:

    <!-- columns
    dev F1 (best epoch of) = best(record)
    test F1 = test(record)
    -->
    | config | dev F1 (best epoch of) | test F1 | record |
    | --- | --- | --- | --- |
    | `psa.cfg`, seed 1 | 94.74 (31 of 40) | 90.70 | [psa-seed1.json](results/psa-seed1.json) |
    | its mean<!-- row: psa, psa-seed* --> | 94.77 ± 0.06 | 90.72 ± 0.02 | |

`<!-- holds: … -->` after a sentence is a condition that the sentence rests on.
"""

import re
import sys
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy

from benchmarks import lookup
from benchmarks.record import FOLDER
from benchmarks.script import script_parser
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError

ROOT = FOLDER.parent
GENERATED = ROOT / "docs" / "reference"
NUMBER = r"(?<![\w.,])[+-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?:\s±\s\d+(?:,\d{3})*(?:\.\d+)?)?"
FIGURE = re.compile(rf"({NUMBER})(<!-- (?!holds: |row: )(.+?) -->)", re.DOTALL)
HOLDS = re.compile(r"<!-- holds: (.+?) -->", re.DOTALL)
COLUMNS = re.compile(r"<!-- columns\n(.+?)\n-->\n((?:\|[^\n]*\n)+)", re.DOTALL)
ROW = re.compile(r"<!-- row: (.+?) -->")
RECORD = re.compile(r"\]\((?:\.\./(\w+)/)?results/([\w.-]+)\.json\)")
CELL = re.compile(r"`[^`]*`|\[[^]]*\]\([^)]*\)|<!--.*?-->|(^yes$|^no$|" + NUMBER + ")")
BUILTINS = {each.__name__: each for each in (abs, all, int, len, max, min, range, round, sum)}


def pages() -> list[Path]:
    """The pages with figures: README.md, and those of docs/ and benchmarks/."""
    below = [*(ROOT / "docs").rglob("*.md"), *FOLDER.rglob("README.md")]
    return [ROOT / "README.md", *sorted(path for path in below if GENERATED not in path.parents)]


@cache
def names(experiment: str) -> dict[str, Any]:
    """All names that expressions on a page of an experiment can use."""
    reader = lookup.Lookup(experiment)
    known = {name: getattr(reader, name) for name in dir(reader) if not name.startswith("_")}
    known |= {"__builtins__": BUILTINS, "mean": numpy.mean, "median": numpy.median}
    known |= {each.__name__: each for each in (lookup.around, lookup.gap, lookup.p_value)}
    for path in FOLDER.glob("*/figures.py"):
        name = path.parent.name
        module = known[name] = import_module(f"benchmarks.{name}.figures")
        if name == experiment:
            known |= {key: value for key, value in vars(module).items() if key[0] != "_"}
    return known


def value_of(expression: str, place: str, experiment: str, **variables: str) -> Any:
    """The value of an expression.

    Raises:
        InputError: if it cannot be computed; the message names the place.
    """
    try:
        return eval(" ".join(expression.split()), names(experiment) | variables)
    except Exception as error:
        raise InputError(f"{place}: {expression}: {error} ({type(error).__name__})") from error


def written(form: str, value: Any) -> str:
    """A value in the form that a number on a page has.

    Examples:
        >>> written("0.00", 91.8367), written("0", 15612.4), written("+0.0", 1.25)
        ('91.84', '15,612', '+1.2')
        >>> written("0.00 ± 0.00", [91.0, 92.0]), written("1e-06", 0.0000079)
        ('91.50 ± 0.71', '8e-06')
    """
    if form in ("yes", "no"):
        return "yes" if value else "no"
    number, _, spread = "".join(form.split()).partition("±")
    if spread:
        if numpy.size(value) < 2:
            raise InputError(f"{form}: one value has no standard deviation")
        return f"{written(number, value)} ± {written(spread, numpy.std(value, ddof=1))}"
    digits = len(re.split("e", number.partition(".")[2])[0])
    kind = "e" if "e" in number else "f"
    if isinstance(value, Decimal):
        value = value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    else:
        value = float(numpy.mean(value))
    return f"{value:{'+' if form.startswith('+') else ''},.{digits}{kind}}"


def fill(text: str, experiment: str, place: str) -> str:
    """A page with its figures filled in.

    Args:
        experiment: its folder below benchmarks; "" for a page elsewhere.
        place: the name of the page in messages.

    Raises:
        InputError: if an expression cannot be computed, or a condition does not hold.
    """

    def figure(match: re.Match[str]) -> str:
        return written(match[1], value_of(match[3], place, experiment)) + match[2]

    text = COLUMNS.sub(partial(_table, experiment=experiment, place=place), text)
    text = FIGURE.sub(figure, text)
    for match in HOLDS.finditer(text):
        if not numpy.all(value_of(match[1], place, experiment)):
            raise InputError(f"{place}: this does not hold any more: {match[1]}")
    return text


def _table(match: re.Match[str], experiment: str, place: str) -> str:
    columns = dict(line.split(" = ", 1) for line in match[1].splitlines())
    head, rule, *rows = match[2].splitlines()
    header = _cells(head)
    if unknown := columns.keys() - set(header):
        raise InputError(f"{place}: the table has no columns {sorted(unknown)}")
    lines = [head, rule]
    for line in rows:
        cells, row = _cells(line), _row(line)
        where = f"{place}, row {' '.join(row.values())!r}"
        if len(cells) != len(header):
            raise InputError(f"{where}: {len(cells)} cells for {len(header)} columns")
        for i, column in enumerate(header):
            if column in columns and any(each[1] for each in CELL.finditer(cells[i])):
                value = value_of(columns[column], where, experiment, **row)
                cells[i] = _filled(cells[i], value, f"{where}, {column}")
        lines.append(f"| {' | '.join(cells)} |")
    return f"<!-- columns\n{match[1]}\n-->\n" + "\n".join(lines) + "\n"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip()[1:-1].split("|")]


def _row(line: str) -> dict[str, str]:
    """The variables of a row: `row`, the text of its comment, and `record`."""
    comment = ROW.search(line)
    first = _cells(line)[0].replace("`", "")
    row = comment[1] if comment else first
    records = ("/".join(filter(None, link.groups())) for link in RECORD.finditer(line))
    return {"row": row, "record": ",".join(records) or row}


def _filled(cell: str, value: Any, place: str) -> str:
    """A cell whose numbers are those of a value."""
    values: Iterator[Any] = iter(value if isinstance(value, tuple) else (value,))

    def number(match: re.Match[str]) -> str:
        return written(match[1], next(values)) if match[1] else match[0]

    try:
        return CELL.sub(number, cell)
    except StopIteration as error:
        raise InputError(f"{place}: {cell} has more numbers than its expression") from error


def stale_pages(change: bool) -> list[Path]:
    """The pages whose figures are not those of the records; `change` writes them.

    Raises:
        InputError: with a line for each page that cannot be filled in.
    """
    stale, errors = [], []
    for path in pages():
        text = path.read_text(encoding="utf8")
        experiment = path.parent.name if path.parent.parent == FOLDER else ""
        try:
            made = fill(text, experiment, str(path.relative_to(ROOT)))
        except InputError as error:
            errors.append(str(error))
            continue
        if made != text:
            stale.append(path)
            if change:
                with atomic_path(path) as temporary:
                    temporary.write_text(made, encoding="utf8")
    if errors:
        raise InputError("\n".join(errors))
    return stale


def main() -> None:
    options = script_parser(globals())
    options.add_argument("--check", action="store_true", help="fail if a page would change")
    given = options.parse_args()
    stale = stale_pages(not given.check)
    for page in stale:
        print(f"{page.relative_to(ROOT)}: {'not up to date' if given.check else 'written'}")
    if given.check and stale:
        sys.exit("run `python -m benchmarks.figures`")


if __name__ == "__main__":
    main()
