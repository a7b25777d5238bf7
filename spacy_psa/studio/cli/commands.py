"""The commands of the studio, in the order of `spacy-psa --help`."""

from spacy_psa.cli.groups import USE, Commands
from spacy_psa.studio.cli.compare import compare
from spacy_psa.studio.cli.export_annotations import export_annotations
from spacy_psa.studio.cli.serve import serve

COMMANDS: Commands = [(USE, [serve, compare, export_annotations])]
