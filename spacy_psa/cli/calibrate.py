"""`spacy-psa calibrate`: fits the confidences of a pipeline to data."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from spacy_psa.pipeline.chain.decoders import Decode
    from spacy_psa.pipeline.chain.spans import SpanLabeler
    from spacy_psa.scoring.calibration import Bin

CRITERION = "negative log likelihood of the gold analyses, nats a sentence"
COLUMNS = {
    "f1": "F1",
    "nll": "NLL",
    "ece": "ECE",
    "ece_adaptive": "ECE, adaptive bins",
    "brier": "Brier",
    "aupr": "AUPR",
}


DECODERS = ("viterbi", "mbr")


class State(NamedTuple):
    """A pipeline with a temperature and a decoder, measured on a file."""

    data: str
    """"dev" or "test"."""
    when: str
    """"before" or "after"."""
    temperature: float
    decode: "Decode"
    figures: dict[str, float | None]
    """The scores, by the names in `COLUMNS`."""
    bins: "list[Bin]"


def calibrate(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder or installed package of a pipeline.")
    ],
    dev: Annotated[
        Path,
        typer.Argument(metavar="DEV.spacy", help="Gold documents that were not used for training."),
    ],
    output: Annotated[
        Path | None, typer.Option(help="Folder to write; without it, MODEL itself is changed.")
    ] = None,
    pipe: Annotated[
        str | None, typer.Option(help="Name of the component, if there are several.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Temperature to store instead of a fitted one.")
    ] = None,
    decode: Annotated[
        str | None,
        typer.Option(
            help='Decoder to store with it: "mbr" predicts the spans of the highest expected F1, '
            '"viterbi" the most probable analysis.'
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Instead of a temperature, find the sets that hold the truth with this "
            "probability."
        ),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Gold documents to report on, too; not used for fitting.")
    ] = None,
    bins: Annotated[int, typer.Option(min=1, help="Number of bins of the calibration error.")] = 15,
    figure: Annotated[
        Path | None, typer.Option(help="File for the reliability diagram, of TEST if given.")
    ] = None,
    json_path: Annotated[
        Path | None, typer.Option("--json", help="JSON file for all figures and their provenance.")
    ] = None,
    gpu_id: Annotated[int, typer.Option(min=-1, help="Number of the GPU; -1 for the CPU.")] = -1,
) -> None:
    """Fit the temperature of a pipeline's confidences.

    The pipeline has a crf_ner or crf_chunker. The temperature divides its log potentials; the
    fitted value makes the gold analyses of DEV.spacy most probable. The best analysis of a text
    does not change. The temperature is stored in the pipeline: in a copy if --output is given,
    otherwise in MODEL itself. If the temperature changes, the coverage of the component is removed.

    With --decode mbr, the component predicts the spans of the highest expected F1 from then on. The
    fitted temperature makes this expectation more accurate.

    Prints the F1, the expected calibration error (ECE), the Brier score and the area under the
    precision-recall curve (AUPR) of the confidences, before and after.

    With --coverage 0.9, the temperature stays as it is, and the component (also a crf_tagger) gets
    a threshold: a true span (or tag) of a new document is among those above it with a probability
    of at least 0.9 (`prediction_sets`).

    \b
    Example:
      spacy-psa calibrate training/model-best dev.spacy --output calibrated
      spacy-psa calibrate training/model-best dev.spacy --decode mbr --output calibrated
      spacy-psa calibrate training/model-best dev.spacy --coverage 0.9
    """
    from spacy_psa.analysis.figures import check_matplotlib
    from spacy_psa.analysis.reliability import draw_reliability
    from spacy_psa.analysis.temperature import Likelihood, fit_temperature
    from spacy_psa.cli.coverage import find_coverage, store_settings
    from spacy_psa.corpora.atomic import check_free
    from spacy_psa.loading import confident_pipe, find_pipe, load_pipeline
    from spacy_psa.pipeline.chain.spans import SpanLabeler
    from spacy_psa.pipeline.coverage import COLDEST, HOTTEST
    from spacy_psa.pipeline.upstream import with_upstream

    # First the checks that take no time.
    if temperature is not None and not COLDEST <= temperature <= HOTTEST:
        raise InputError(
            f"--temperature {temperature}: take a number from {COLDEST:g} to {HOTTEST:g}"
        )
    if decode is not None and decode not in DECODERS:
        raise InputError(f"--decode {decode}: take one of {', '.join(DECODERS)}")
    if figure is not None:
        check_matplotlib()
    if output is not None:
        check_free(output)
    elif not Path(model).is_dir():
        raise InputError(f"{model}: is not a folder that can be changed; give --output FOLDER")
    nlp = load_pipeline(model, gpu_id)
    paths = {"dev": dev} if test is None else {"dev": dev, "test": test}
    if coverage is not None:
        given = {"--temperature": temperature, "--decode": decode, "--figure": figure}
        asked = [option for option, value in given.items() if value is not None]
        if asked:
            raise InputError(f"{asked[0]}: leave it out with --coverage")
        chosen_pipe, record = find_coverage(nlp, model, pipe, paths, coverage)
        if json_path is not None:
            _write(record, json_path)
        store_settings(nlp, chosen_pipe, output)
        typer.echo(f"Written: {output or model}")
        return
    writes = find_pipe(nlp, pipe, SpanLabeler, "crf_ner or crf_chunker").confidence
    component = confident_pipe(nlp, pipe)
    data = {name: _read(nlp, component, path) for name, path in paths.items()}
    likelihoods = {
        name: Likelihood(component, with_upstream(nlp, component.name, examples))
        for name, examples in data.items()
    }
    former, promised = component.temperature, component.coverage
    chosen = fit_temperature(likelihoods["dev"]) if temperature is None else temperature
    before = former, component.decode
    after = chosen, component.decode if decode is None else cast("Decode", decode)
    states = []
    for name, examples in data.items():
        for when, settings in (("before", before), ("after", after)):
            component.temperature, component.decode = settings
            figures, diagram = _measure(nlp, component, examples, bins)
            figures["nll"] = likelihoods[name].at(component.temperature)[0]
            states.append(State(name, when, *settings, figures, diagram))
    # The figures first, so that the pipeline is not changed if they cannot be written.
    if figure is not None:
        last = states[-2:]
        draw_reliability({f"{s.when}, T = {s.temperature:.3f}": s.bins for s in last}, figure)
    if json_path is not None:
        _write(_record(nlp, model, component, paths, data, states), json_path)
    component.confidence = writes  # the pipeline writes what it wrote before
    store_settings(nlp, component, output)
    _print(states, fitted=temperature is None)
    if promised is not None and component.coverage is None:
        typer.echo("The coverage was of other probabilities and is removed: give --coverage again")
    typer.echo(f"Written: {output or model}")


def _read(nlp: "Language", component: "SpanLabeler", path: Path) -> "list[Example]":
    from spacy_psa.scoring.result import read_examples

    examples = read_examples(nlp, path)
    if not _gold(component, examples):
        raise InputError(
            f"{path}: there are no gold spans for {component.name}; give annotated documents"
        )
    return examples


def _gold(component: "SpanLabeler", examples: "list[Example]") -> int:
    name, store = component.name, component.store
    return sum(len(store.reference(name, example.reference) or ()) for example in examples)


def _measure(
    nlp: "Language", component: "SpanLabeler", examples: "list[Example]", bins: int
) -> "tuple[dict[str, float | None], list[Bin]]":
    """Predict, and compute the scores of the confidences."""
    from spacy.training import Example

    from spacy_psa.scoring.calibration import judge, reliability, summary

    docs = nlp.pipe(eg.predicted.copy() for eg in examples)
    predicted = [Example(doc, eg.reference) for doc, eg in zip(docs, examples, strict=True)]
    judged = judge(predicted, component.name, getattr(component, "spans_key", None))
    return {"f1": judged.f1, **summary(judged, bins)}, reliability(judged, bins)


def _record(
    nlp: "Language",
    model: str,
    component: "SpanLabeler",
    paths: dict[str, Path],
    data: "dict[str, list[Example]]",
    states: list[State],
) -> dict[str, Any]:
    import sys
    from datetime import datetime, timezone

    from spacy_psa.scoring.provenance import checksums, commit, machine, versions

    head, modified = commit()
    config = nlp.config.interpolate()
    return {
        "format": 1,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "model": {"path": model, "pipe": component.name},
        "criterion": CRITERION,
        "temperature": {state.when: state.temperature for state in states},
        "decode": {state.when: state.decode for state in states},
        "data": {
            name: {
                "path": path.as_posix(),
                "documents": len(data[name]),
                "gold_spans": _gold(component, data[name]),
                **{
                    state.when: {
                        **state.figures,
                        "bins": [b._asdict() for b in state.bins],
                    }
                    for state in states
                    if state.data == name
                },
            }
            for name, path in paths.items()
        },
        "checksums": checksums([*paths.values(), nlp.path / component.name / "model"]),
        "seed": config.get("training", {}).get("seed"),
        "versions": versions(),
        "machine": machine(),
        "commit": head,
        "modified": modified,
        "command": " ".join(["spacy-psa", *sys.argv[1:]]),
        "config": json.loads(json.dumps(config, default=str)),
    }


def _write(record: dict[str, Any], path: Path) -> None:
    from spacy_psa.corpora.atomic import atomic_path

    with atomic_path(path) as temporary:
        text = json.dumps(record, indent=2, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf8")


def _print(states: list[State], fitted: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table()
    table.add_column("")
    for name in ("T", *COLUMNS.values()):
        table.add_column(name, justify="right")
    for state in states:
        values = (state.figures[key] for key in COLUMNS)
        cells = ("" if value is None else f"{value:.4f}" for value in values)
        table.add_row(f"{state.data} {state.when}", f"{state.temperature:.4f}", *cells)
    console.print(table)
    if fitted:
        typer.echo(f"The temperature minimizes the {CRITERION}, on dev.")
