"""Fits the confidences of a pipeline to data, measures them, and stores the settings."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from spacy.language import Language
from spacy.training import Example

from spacy_psa.analysis.conformal import cover
from spacy_psa.analysis.figures import check_matplotlib, new_figure, save_figure
from spacy_psa.analysis.temperature import Labeler, Likelihood, fit_temperature
from spacy_psa.corpora.atomic import atomic_folder, atomic_path, check_free, write_json
from spacy_psa.errors import InputError
from spacy_psa.loading import find_pipe, load_pipeline
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.chain.spans import SpanLabeler
from spacy_psa.pipeline.inference import COLDEST, HOTTEST
from spacy_psa.pipeline.nested.spans import NestedSpanLabeler
from spacy_psa.pipeline.upstream import with_upstream
from spacy_psa.scoring.calibration import Bin, calibration_error, judge, reliability, summary
from spacy_psa.scoring.provenance import provenance
from spacy_psa.scoring.result import read_examples

if TYPE_CHECKING:
    from spacy_psa.pipeline.inference import Decode

CRITERION = "negative log likelihood of the gold analyses, nats a sentence"
SpanKind = SpanLabeler | NestedSpanLabeler
SPAN_KINDS = "crf_ner, crf_chunker or crf_spans"
"""`SpanKind` in words, for errors."""


class State(NamedTuple):
    """A pipeline with a temperature and a decoder, measured on a file."""

    data: str
    """"dev" or "test"."""
    when: str
    """"before" or "after"."""
    temperature: float
    decode: "Decode"
    figures: dict[str, float | None]
    """F1, negative log likelihood and scores of the confidences: `f1`, `nll` and `summary`."""
    bins: list[Bin]


def calibrate(
    model: str,
    paths: Mapping[str, Path],
    output: Path | None = None,
    pipe: str | None = None,
    temperature: float | None = None,
    decode: "Decode | None" = None,
    bins: int = 15,
    figure: Path | None = None,
    json_path: Path | None = None,
    gpu_id: int = -1,
) -> tuple[list[State], list[str]]:
    """Fit the temperature of a component, and store it with a decoder.

    Args:
        paths: the gold documents of "dev" and, to report on, "test".
        output: the folder to write; None changes the model.
        pipe: the name of the component; None if there is only one.
        temperature: the temperature to store; None fits it.
        decode: the decoder to store; None keeps it.
        bins: the number of bins of the calibration error.
        figure: the image file for the reliability diagrams of the last file.
        json_path: the file for the record.

    Returns:
        The states of both files, and the names of what was removed, since it was of other
        probabilities.

    Raises:
        InputError: if the settings do not fit or a file cannot be written. The model is as it was.
    """
    # First the checks that need no time.
    if temperature is not None and not COLDEST <= temperature <= HOTTEST:
        raise InputError(
            f"--temperature {temperature}: choose a number from {COLDEST:g} to {HOTTEST:g}"
        )
    if figure is not None:
        check_matplotlib()
    kinds = get_args(SpanKind)
    opened = calibrating(model, pipe, kinds, SPAN_KINDS, paths, output, json_path, gpu_id, figure)
    with opened as (nlp, component, record):
        writes, component.confidence = component.confidence, True
        register()
        data = {name: _read(nlp, component, path) for name, path in paths.items()}
        likelihoods = {
            name: Likelihood(component, with_upstream(nlp, component.name, examples))
            for name, examples in data.items()
        }
        promised = component.calibrated.names
        before = component.temperature, component.decode
        fitted = fit_temperature(likelihoods["dev"]) if temperature is None else temperature
        after = fitted, component.decode if decode is None else decode
        states = []
        for name, examples in data.items():
            for when, settings in (("before", before), ("after", after)):
                component.temperature, component.decode = settings
                figures, diagram = _measure(nlp, component, examples, bins)
                figures["nll"] = likelihoods[name].at(component.temperature)[0]
                temperature, decode = settings
                states.append(State(name, when, temperature, decode, figures, diagram))
        if figure is not None:
            last = states[-2:]
            draw_reliability({f"{s.when}, T = {s.temperature:.3f}": s.bins for s in last}, figure)
        record |= _figures(nlp, component, paths, data, states)
        component.confidence = writes  # the pipeline writes what it wrote before
    return states, [name for name in promised if name not in component.calibrated.names]


def calibrate_coverage(
    model: str,
    paths: Mapping[str, Path],
    level: float,
    output: Path | None = None,
    pipe: str | None = None,
    json_path: Path | None = None,
    gpu_id: int = -1,
) -> tuple[Labeler, dict[str, dict[str, Any]]]:
    """Find and store the threshold of sets that hold the truth with a probability of `level`.

    The other arguments are those of `calibrate`. Returns the component with its coverage, and the
    figures of each file; see `cover`.
    """
    what = "crf_ner, crf_chunker, crf_spans or crf_tagger"
    opened = calibrating(model, pipe, get_args(Labeler), what, paths, output, json_path, gpu_id)
    with opened as (nlp, component, record):
        parts = cover(nlp, component, paths, level)
        record["coverage"] = component.calibrated.coverage._asdict()
        record |= {"temperature": component.temperature, "data": parts}
    return component, parts


@contextmanager
def calibrating(
    model: str,
    pipe: str | None,
    kind: type | tuple[type, ...],
    what: str,
    paths: Mapping[str, Path],
    output: Path | None,
    json_path: Path | None,
    gpu_id: int,
    figure: Path | None = None,
) -> Iterator[tuple[Language, Any, dict[str, Any]]]:
    """Open a pipeline for a block that calibrates one component, and store what it found.

    The record is written first, so that the pipeline is not changed if that fails, or the block
    does. The arguments are those of `calibrate`, `find_pipe` and `provenance`. Yields the pipeline,
    the component, and the record, which the block completes.
    """
    if output is not None:
        check_free(output)
        for option, path in (("--json", json_path), ("--figure", figure)):
            if path is not None and output.absolute() in path.absolute().parents:
                raise InputError(f"{option} {path}: is in --output {output}; choose another path")
    elif not Path(model).is_dir():
        raise InputError(f"{model}: is not a folder that can be changed; add --output FOLDER")
    nlp = load_pipeline(model, gpu_id)
    component = find_pipe(nlp, pipe, kind, what)
    record: dict[str, Any] = {"format": 1, "model": {"path": model, "pipe": component.name}}
    yield nlp, component, record
    if json_path is not None:
        origin = provenance([*paths.values(), nlp.path / component.name / "model"])
        write_json(json_path, {**record, "checksums": origin.pop("data"), **origin})
    _store_settings(nlp, component, output)


def _read(nlp: Language, component: SpanKind, path: Path) -> list[Example]:
    examples = read_examples(nlp, path)
    if not _gold(component, examples):
        raise InputError(
            f"{path}: there are no gold spans for {component.name}; use annotated documents"
        )
    return examples


def _gold(component: SpanKind, examples: list[Example]) -> int:
    name, store = component.name, component.store
    return sum(len(store.reference(name, example.reference) or ()) for example in examples)


def _measure(
    nlp: Language, component: SpanKind, examples: list[Example], bins: int
) -> tuple[dict[str, float | None], list[Bin]]:
    """Predict, and compute the scores of the confidences."""
    docs = nlp.pipe(eg.predicted.copy() for eg in examples)
    predicted = [Example(doc, eg.reference) for doc, eg in zip(docs, examples, strict=True)]
    if isinstance(component, NestedSpanLabeler):
        judged = judge(predicted, component.spans_key, component.spans_key)
    else:
        judged = judge(predicted, component.name, component.store.spans_key)
    return {"f1": judged.f1, **summary(judged, bins)}, reliability(judged, bins)


def _figures(
    nlp: Language,
    component: SpanKind,
    paths: Mapping[str, Path],
    data: dict[str, list[Example]],
    states: list[State],
) -> dict[str, Any]:
    config = nlp.config.interpolate()
    return {
        "criterion": CRITERION,
        "temperature": {state.when: state.temperature for state in states},
        "decode": {state.when: state.decode for state in states},
        "data": {
            name: {
                "path": path.as_posix(),
                "documents": len(data[name]),
                "gold_spans": _gold(component, data[name]),
                **{
                    state.when: {**state.figures, "bins": [b._asdict() for b in state.bins]}
                    for state in states
                    if state.data == name
                },
            }
            for name, path in paths.items()
        },
        "seed": config.get("training", {}).get("seed"),
        "config": json.loads(json.dumps(config, default=str)),
    }


def _store_settings(nlp: Language, component: Labeler, output: Path | None) -> None:
    """Store the settings of the component, the only part that differs from the loaded pipeline.

    In place, one file is replaced. A new folder is a copy, which appears complete or not at all.
    """
    with TemporaryDirectory() as folder:
        component.to_disk(folder, exclude=["model", "vocab"])
        cfg = Path(folder) / "cfg"
        if output is None:
            with atomic_path(nlp.path / component.name / "cfg") as temporary:
                shutil.copyfile(cfg, temporary)
            return
        with atomic_folder(output) as temporary:
            shutil.copytree(nlp.path, temporary, dirs_exist_ok=True)
            shutil.copyfile(cfg, temporary / component.name / "cfg")


def draw_reliability(diagrams: Mapping[str, Sequence[Bin]], path: Path) -> None:
    """Draw reliability diagrams side by side, by their titles, and write them to an image file.

    The upper part shows the share of right spans against the mean confidence of each bin; it is on
    the diagonal if confidences can be trusted. The lower part shows the number of spans in each
    bin.
    """
    figure = new_figure(4.2 * len(diagrams), 5.0)
    axes = figure.subplots(
        2, len(diagrams), squeeze=False, sharex=True, sharey="row", height_ratios=[3, 1]
    )
    for column, (title, bins) in enumerate(diagrams.items()):
        above, below = axes[0][column], axes[1][column]
        filled = [b for b in bins if b.size]
        centres = [(b.lower + b.upper) / 2 for b in filled]
        widths = [b.upper - b.lower for b in filled]
        box = {"width": widths, "edgecolor": "white", "linewidth": 0.8}
        above.bar(centres, [b.accuracy or 0.0 for b in filled], color="#7aa6d6", **box)
        above.plot([0, 1], [0, 1], color="#888888", linewidth=1, linestyle="--")
        above.plot(
            [b.confidence or 0.0 for b in filled],
            [b.accuracy or 0.0 for b in filled],
            color="#b8442f",
            marker="o",
            markersize=4,
            linewidth=1.2,
        )
        error = calibration_error(bins)
        above.set_title(title if error is None else f"{title}: ECE {error:.4f}")
        below.bar(centres, [b.size for b in filled], color="#bbbbbb", **box)
        below.set(yscale="log", xlim=(0, 1), xlabel="confidence")
        above.set(ylim=(0, 1.02))
        for each in (above, below):
            each.grid(alpha=0.3)
            each.set_axisbelow(True)
    axes[0][0].set_ylabel("fraction right")
    axes[1][0].set_ylabel("spans")
    save_figure(figure, path)
