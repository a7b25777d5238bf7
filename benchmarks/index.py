"""Write the index of all experiments, benchmarks/README.md, from their folders."""

import argparse
import re
import sys

from benchmarks.record import FOLDER
from benchmarks.tables import Experiment, experiments, plain, table
from spacy_psa.corpora.atomic import atomic_path
from spacy_psa.errors import InputError

PAGE = FOLDER / "README.md"
HEAD = """\
<!-- Written by `python -m benchmarks.index`; change benchmarks/index.py instead. -->

# Benchmarks

This folder is the laboratory notebook: a folder for each experiment, with its question, the
commands that make it again, its results and what was not reached.

The result files hold all figures, with the config, the seed, the commit of the code, checksums of
the data, the machine and the versions, and with the development scores of each epoch of a training.
Development data chose the epoch and the settings. In the choice of `ner/best.cfg` test data had a
part, too (see [documents](documents/README.md)). Test data was scored once, with the weights of the
best development epoch.

## Experiments
"""
RUN = """\
## How to run

Install the package with its test dependencies (`pip install -c constraints.txt -e ".[test]"`) and
get a corpus in the root of the repository:

```bash
python -m spacy project run assets . --vars.corpus conll2003
python -m spacy project run convert . --vars.corpus conll2003
```

Then run scripts as modules from there: `python -m benchmarks.EXPERIMENT.SCRIPT --help`. Each script
prints its command at the end and keeps it in its record. The `command` of an old record is that of
its commit; the page of the experiment has the command of today.

After a new measurement make the tables, also those in `docs/`, and this page again:

```bash
python -m benchmarks.tables
python -m benchmarks.index
```

The tests in `tests/benchmarks` say whether the records are in the format, whether the pages are up
to date with them, and whether the commands on the pages can be given.

All that needs a GPU runs by one command: see [gpu/README.md](gpu/README.md).

## Shared files

- `record.py`: the format of all result files, "spacy-psa record 1"; its docstring describes each
  key
- `kinds.py`: what the `results` of a record hold, by kind: `training`, `speed`, `calibration`,
  `figures`
- `wrap.py`: makes a record of the JSON file of `spacy-psa report`, `calibrate` or `benchmark speed`
- `cased_vectors.py`: gives capitalised words the vectors of lower-cased ones, as spaCy needs them
- `picture.py`: what the pictures of the experiments have in common
- `ratios.py`: how many times as fast as another row a timed row is
- `run_plan.py`: trains the runs of a plan, and records their scores
- `decoders.py`: scores models with each of their decoders, and records it
- `joined.py`: joins the models of several seeds, and records their scores
- `dev_run.py`: records a training that was stopped, with its development scores alone
- `config.py`: writes the training config of a record as a file
- `tables.py`: makes the tables on the pages; `EXPERIMENT/tables.py` makes those of an experiment
- `cited.py`, `choose.py`: make the tables of the pages in `docs/` that cite figures, and the
  phrases with figures in their text
- `index.py`: makes this page
- `__init__.py`: makes a folder a Python package

## Result files
"""


def title(experiment: Experiment) -> str:
    """The heading of an experiment's page."""
    return _find(r"\A# ([^\n]+)\n", experiment)


def question(experiment: Experiment) -> str:
    """The first paragraph of the question, on one line."""
    return plain(_find(r"\n## Question\n\n(.+?)\n\n", experiment))


def _find(pattern: str, experiment: Experiment) -> str:
    match = re.search(pattern, experiment.page.read_text(encoding="utf8"), re.DOTALL)
    if match is None:
        raise InputError(f"{experiment.page}: there is no {pattern!r} on this page")
    return match[1]


def render_index() -> str:
    """The whole page.

    Raises:
        InputError: if a page lacks its title or its question, or a record is not in the format.
    """
    found = experiments()
    rows = [
        [
            f"[{each.name}]({each.name}/README.md)",
            question(each),
            each.headline(each.records),
            str(len(each.records)),
        ]
        for each in found
    ]
    parts = [HEAD, table(["folder", "question", "headline figure", "records"], rows), "", RUN]
    for each in found:
        parts.append(f"### {title(each)}\n")
        parts += [
            f"- [{name}.json]({each.name}/results/{name}.json), {record['kind']}, "
            f"{record['date'][:10] if record['date'] else 'date not recorded'}"
            for name, record in each.records.items()
        ]
        parts.append("")
    return "\n".join(parts).rstrip("\n") + "\n"


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m benchmarks.index", description=__doc__)
    found.add_argument(
        "--check", action="store_true", help="change nothing; fail if the page is not up to date"
    )
    return found


def main() -> None:
    given = parser().parse_args()
    made = render_index()
    if PAGE.read_text(encoding="utf8") == made:
        return
    if given.check:
        sys.exit("benchmarks/README.md: not up to date; run `python -m benchmarks.index`")
    with atomic_path(PAGE) as temporary:
        temporary.write_text(made, encoding="utf8")
    print("Written: benchmarks/README.md")


if __name__ == "__main__":
    main()
