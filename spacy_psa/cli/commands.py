"""The commands of the library, in the groups and the order of `spacy-psa --help`."""

import typer

from spacy_psa.cli.annotate import annotate
from spacy_psa.cli.configs import configure, init_config, merge_config
from spacy_psa.cli.convert import convert_app
from spacy_psa.cli.corpus import assets, debug_data, init_corpus, prepare
from spacy_psa.cli.groups import USE, YOUR_DATA, Commands
from spacy_psa.cli.models import add_rules, describe, ensemble, package, push, quantize
from spacy_psa.cli.parse import parse, trees
from spacy_psa.cli.scores import calibrate, evaluate_trees, report
from spacy_psa.cli.training import distill, teach_label, train
from spacy_psa.cli.visualize import visualize_app

init_app = typer.Typer(
    name="init", help="Make a corpus and a config of your own data.", no_args_is_help=True
)
init_app.command("corpus")(init_corpus)
init_app.command("config")(init_config)
debug_app = typer.Typer(name="debug", help="Check data.", no_args_is_help=True)
debug_app.callback()(lambda: None)
debug_app.command("data")(debug_data)

COMMANDS: Commands = [
    (YOUR_DATA, [init_app, debug_app, convert_app, assets, prepare, configure, merge_config]),
    (USE, [train, annotate, parse, trees, visualize_app, report, evaluate_trees, calibrate]),
    (USE, [teach_label, add_rules, ensemble, distill, quantize, describe, package, push]),
]
