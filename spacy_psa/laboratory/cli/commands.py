"""The commands of the laboratory, in the order of `spacy-psa --help`."""

from spacy_psa.cli.groups import RESEARCH, YOUR_DATA, Commands
from spacy_psa.laboratory.cli.analyze import analyze_app
from spacy_psa.laboratory.cli.benchmark import benchmark_app
from spacy_psa.laboratory.cli.experiment import experiment_app
from spacy_psa.laboratory.cli.find_errors import correct, find_errors
from spacy_psa.laboratory.cli.jackknife import jackknife
from spacy_psa.laboratory.cli.search import search

COMMANDS: Commands = [
    (YOUR_DATA, [find_errors, correct]),
    (RESEARCH, [experiment_app, search, analyze_app, benchmark_app, jackknife]),
]
