"""Commands that measure: `report`, `evaluate-trees` and `calibrate`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spacy_psa.cli.console import print_table, tell
from spacy_psa.cli.options import Gpu, JsonPath, Model, Output, Pipe
from spacy_psa.errors import InputError


def report(
    model: Model,
    test: Annotated[Path, typer.Argument(metavar="TEST.spacy", help="Gold documents.")],
    output: Output = Path("report"),
    data: Annotated[
        list[Path] | None,
        typer.Option(help="File or folder to record checksums of; may be repeated."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Log that spacy.ConsoleLogger.v3 wrote to its output_file.")
    ] = None,
    gpu_id: Gpu = -1,
) -> None:
    """Evaluate a pipeline and write a report.

    Evaluates MODEL on TEST.spacy. Writes scores, speed, settings, seed, checksums of the data and
    the machine as tables in OUTPUT.md and as OUTPUT.json, whose keys are described in
    spacy_psa.scoring.result. Spans also get partial credit, in four schemes: strict (bounds and
    label are right), exact (bounds), partial (bounds; half for an overlap) and type (label, with an
    overlap).

    \b
    Example:
      spacy-psa report training/model-best test.spacy --output metrics/ner \\
          --log training/log.jsonl --data train.spacy
    """
    from spacy_psa.loading import load_pipeline
    from spacy_psa.scoring import report as reports

    nlp = load_pipeline(model, gpu_id)
    result = reports.report(nlp, model, test, output, data or [], log)
    print_table(reports.OVERALL, reports.overall(result))
    if types := reports.per_type(result):
        print_table(reports.PER_TYPE, types, left=2)
    if rows := reports.partial_credit(result):
        print_table(reports.PARTIAL_CREDIT, rows, left=2)
    if genres := reports.per_genre(result):
        print_table(genres[0], genres[1:])
    tell(
        [
            reports.speed_of(result),
            f"Written: {output}.md, {output}.json",
            f"Use it: spacy-psa annotate {model} texts.txt annotated.jsonl, or in Python",
            f'  nlp = spacy.load("{model}")',
        ]
    )


def evaluate_trees(
    gold: Annotated[
        Path, typer.Argument(metavar="GOLD", help="Gold trees: in brackets, or a .spacy file.")
    ],
    test: Annotated[
        Path, typer.Argument(metavar="TEST", help="Predicted trees of the same sentences.")
    ],
    max_length: Annotated[
        int | None,
        typer.Option(
            min=1, help="Longest sentence of the second column, in words; default: as in the rules."
        ),
    ] = None,
    prm: Annotated[
        Path | None, typer.Option(help="Rules in EVALB's format; default: COLLINS.prm.")
    ] = None,
    keep_punctuation: Annotated[
        bool,
        typer.Option("--keep-punctuation", help="Delete no words, as in the SPMRL shared tasks."),
    ] = False,
    json_path: JsonPath = None,
    gold_tags: Annotated[
        bool, typer.Option("--gold-tags", help="Delete words by the gold tags only.")
    ] = False,
    per_sentence: Annotated[
        bool, typer.Option("--per-sentence", help="Also print a line for each sentence.")
    ] = False,
) -> None:
    """Compare predicted constituency trees with gold trees.

    Prints labelled recall, precision and F1 as EVALB does: of all sentences in the first column, of
    sentences up to --max-length in the second. GOLD and TEST have the same sentences in the same
    order. As in EVALB, each line is a sentence: several trees on a line are one, and a blank line
    or "(())" in TEST is a sentence without a parse, which is skipped. Each tree is a sentence if a
    tree has several lines or the files differ in the number of lines. A sentence is an error if its
    words differ from the gold words, also if other words were deleted as punctuation; it is
    counted and left out, and a warning names the first. If all tags of TEST are X, it has no tags,
    and words are deleted by the gold tags, as with --gold-tags.

    \b
    Example:
      spacy-psa evaluate-trees gold.txt parsed.txt --json figures.json
    """
    from spacy_psa.scoring.parseval_files import score_files, summary

    scores = score_files(gold, test, max_length, prm, keep_punctuation, gold_tags)
    if json_path is not None:
        scores.write(json_path, per_sentence)
    if per_sentence:
        tell(scores.lines())
    columns = scores.columns
    summaries = [summary(totals) for totals in columns.values()]
    print_table(["", *columns], [[name, *(s[name] for s in summaries)] for name in summaries[0]])
    if scores.warning:
        tell([], [scores.warning])


COLUMNS = {
    "f1": "F1",
    "nll": "NLL",
    "ece": "ECE",
    "ece_adaptive": "ECE, adaptive bins",
    "brier": "Brier",
    "aupr": "AUPR",
}
"""The heads of the figures of `calibrate`."""
RECALL = ["label", "", "docs", "gold", "least", "recall", "of all", "shown", "texts to read"]


def calibrate(
    model: Model,
    dev: Annotated[
        Path,
        typer.Argument(metavar="DEV.spacy", help="Gold documents that were not used for training."),
    ],
    output: Annotated[
        Path | None, typer.Option(help="Folder to write; by default MODEL itself is changed.")
    ] = None,
    pipe: Pipe = None,
    temperature: Annotated[
        float | None, typer.Option(help="Temperature to store instead of a fitted one.")
    ] = None,
    decode: Annotated[
        Literal["viterbi", "mbr"] | None,
        typer.Option(
            help="Decoder to store with it: mbr predicts the spans of the highest expected F1, "
            "viterbi the most probable analysis."
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Instead of a temperature, find the sets that hold the truth with this "
            "probability."
        ),
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option(help="Instead of a temperature, promise to find this share of the entities."),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="With --recall: the probability that the promise is kept; default: 0.95."
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="With --recall: label with its own promise; may be repeated."),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            help="With --recall: .spacy or .txt file of the texts to annotate, to weight DEV by."
        ),
    ] = None,
    counts: Annotated[
        bool,
        typer.Option("--counts", help="Instead of a temperature, calibrate `annotate --counts`."),
    ] = False,
    test: Annotated[
        Path | None, typer.Option(help="Gold documents only to report on, not to fit to.")
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(min=1, help="Number of bins of the calibration error; default: 15."),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="File for the reliability diagram, of TEST if given.")
    ] = None,
    json_path: JsonPath = None,
    gpu_id: Gpu = -1,
) -> None:
    """Fit the temperature of a pipeline's confidences.

    The pipeline has a crf_ner, crf_chunker or crf_spans. The temperature divides its log
    potentials; the fitted value makes the gold analyses of DEV.spacy most probable. The best
    analysis of a text does not change. The temperature is stored in the pipeline: in a copy if
    --output is given, otherwise in MODEL itself. If the temperature changes, the coverage of the
    component is removed.

    With --decode mbr, the component predicts the spans of the highest expected F1 from then on. The
    fitted temperature makes this expectation more accurate.

    Prints the F1, the expected calibration error (ECE), the Brier score and the area under the
    precision-recall curve (AUPR) of the confidences, before and after.

    With --coverage 0.9, the temperature does not change, and the component (also a crf_tagger) gets
    a threshold: a true span (or tag) of a new document is among those above it with a probability
    of at least 0.9 (`prediction_sets`).

    With --recall 0.99, the component gets a threshold for `annotate --redact`: spans of at least
    this probability are shown. With the probability --confidence over the documents of DEV.spacy,
    at most 1% of the entities of a new document are missed, in the mean. The documents must be
    drawn independently from those to be annotated. If these are of another kind, --target weights
    the documents of DEV.spacy by texts of that kind, and the promise is approximate. Prints the
    observed recall and its cost: the spans that are shown for each entity, and the share of texts
    with a span that is not predicted, which a person should read.

    With --counts, the component gets a correction of the numbers of mentions and distinct entities,
    and their intervals are as wide as these numbers differ from the true ones. Prints how many
    corpora of 20 documents, drawn from each file, have their true number in its interval. If a file
    has fewer than 40, half of its documents are drawn.

    \b
    Example:
      spacy-psa calibrate training/model-best dev.spacy --output calibrated
      spacy-psa calibrate training/model-best dev.spacy --decode mbr --output calibrated
      spacy-psa calibrate training/model-best dev.spacy --coverage 0.9
      spacy-psa calibrate training/model-best dev.spacy --recall 0.98 --label PERSON
    """
    from spacy_psa.analysis import calibration

    paths = {"dev": dev} if test is None else {"dev": dev, "test": test}
    kinds = {"--coverage": coverage is not None, "--recall": recall is not None}
    kinds["--counts"] = counts
    chosen = [option for option, given in kinds.items() if given]
    if chosen:
        others = {"--temperature": temperature, "--decode": decode, "--figure": figure}
        others["--bins"] = bins
        given = [option for option, value in others.items() if value is not None] + chosen[1:]
        if given:
            raise InputError(f"{given[0]}: leave it out with {chosen[0]}")
    needless = {"--label": bool(label), "--target": target is not None}
    needless["--confidence"] = confidence is not None
    if recall is None and (unread := [option for option, given in needless.items() if given]):
        raise InputError(f"{unread[0]}: is for --recall; add this option")
    if recall is not None:
        from spacy_psa.analysis.recall import calibrate_recall

        confidence = 0.95 if confidence is None else confidence
        more = (target, output, pipe, json_path, gpu_id)
        _, promised = calibrate_recall(model, paths, recall, confidence, label or (), *more)
        _print_recall(promised)
        limit = ", if they differ from dev only in the features" if target else ""
        typer.echo(
            f"In documents like those of {target or 'dev'}, the recall is at least {recall:g} in "
            f"the mean. This is wrong with a probability of {1 - confidence:.2g} at most{limit}."
        )
    elif counts:
        from spacy_psa.analysis.counts import calibrate_counts

        _, counted = calibrate_counts(model, paths, output, pipe, json_path, gpu_id)
        _print_counts(counted)
    elif coverage is not None:
        component, parts = calibration.calibrate_coverage(
            model, paths, coverage, output, pipe, json_path, gpu_id
        )
        _print_coverage(parts)
        promise = component.calibrated.coverage
        assert promise is not None
        typer.echo(
            f"{component.name}: the truth is in the sets with a probability of at least "
            f"{promise.level:g}, in documents like those of dev. The least probability in a set is "
            f"{promise.least:.6g}."
        )
    else:
        states, lost = calibration.calibrate(
            model, paths, output, pipe, temperature, decode, bins or 15, figure, json_path, gpu_id
        )
        _print_states(states)
        if temperature is None:
            typer.echo(f"The temperature minimizes the {calibration.CRITERION}, on dev.")
        for name in lost:
            typer.echo(f"The {name} was of other probabilities: find it again with --{name}")
    typer.echo(f"Written: {output or model}")


def _print_recall(promised: list[dict[str, Any]]) -> None:
    rows = []
    for row in promised:
        sizes = f"{row['documents']:,}", f"{row['entities']:,}", f"{row['least']:.3g}"
        values = (row[key] for key in ("recall", "of_all", "shown", "read"))
        shares = ("" if value is None else f"{value:.4f}" for value in values)
        rows.append([row["label"], row["data"], *sizes, *shares])
    print_table(RECALL, rows, left=2)


def _print_counts(counted: dict[str, list[dict[str, Any]]]) -> None:
    rows = []
    for part, each in counted.items():
        for row in each:
            estimate = f"{row['number']:,.0f} ± {row['width']:,.0f}"
            cells = f"{row['gold']:,}", estimate, f"{row['held']:.3f}"
            rows.append([part, row["label"], row["kind"], *cells])
    print_table(["", "label", "", "gold", "estimate", "draws that hold it"], rows, left=3)


def _print_coverage(parts: dict[str, dict[str, Any]]) -> None:
    rows = []
    for part, row in parts.items():
        size = "" if row["set_size"] is None else f"{row['set_size']:.3f}"
        sizes = f"{row['documents']:,}", f"{row['items']:,}"
        rows.append([part, *sizes, f"{row['coverage']:.4f}", size])
    print_table(["", "documents", "gold", "observed coverage", "size of the sets"], rows)


def _print_states(states: list[Any]) -> None:
    rows = []
    for state in states:
        values = [state.temperature, *(state.figures[key] for key in COLUMNS)]
        shown = ("" if value is None else f"{value:.4f}" for value in values)
        rows.append([f"{state.data} {state.when}", *shown])
    print_table(["", "T", *COLUMNS.values()], rows)
