"""`spacy-psa analyze`: what a trained pipeline does, as figures, pictures and JSON."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spacy_psa.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from spacy.language import Language
    from spacy.pipeline import TrainablePipe
    from spacy.training import Example

    from spacy_psa.analysis.attention import View

analyze_app = typer.Typer(
    name="analyze",
    help="Look at what a trained pipeline does. Each command writes JSON, PNG and SVG.",
    no_args_is_help=True,
)

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="Folder or installed package of a pipeline.")
]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="A sentence.")]
Data = Annotated[Path, typer.Argument(metavar="DATA.spacy", help="Gold documents.")]
Pipe = Annotated[
    str | None, typer.Option(help="Name of the component; by default the first that fits.")
]
Output = Annotated[Path, typer.Option(help="Path of the output files, without the ending.")]


@analyze_app.command()
def attention(
    model: Model,
    text: Text,
    word: Annotated[
        str | None, typer.Option(help="Draw what this word attends to, and nothing else.")
    ] = None,
    pipe: Pipe = None,
    output: Output = Path("attention"),
) -> None:
    """Draw the attention over a sentence, by layer and head (Wei2020 Fig. 6, Li2019 Figs. 2, 3).

    A row says how much a token attends to each token. The encoder is a PSABiLSTM.v1, a
    SelfAttentiveBiLSTM.v1, a TENER.v1, a Transformer.v1 or a PSATransformer.v1.

    Writes OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze attention training/model-best "The door opened sharply ." --word opened
    """
    from spacy_psa.laboratory.analyses.heat_maps import attention_figures, draw_attention

    found = attention_figures(_view(model, text, pipe), word)
    if word is not None and (times := found["words"].count(word)) > 1:
        typer.echo(f"--word {word}: is there {times} times; the first one is drawn", err=True)
    _write("attention", found, draw_attention(found), output)


@analyze_app.command()
def gates(model: Model, text: Text, pipe: Pipe = None, output: Output = Path("gates")) -> None:
    """Draw the mean gate of each token, by layer (Wei2020 Table 13).

    A gate is the share of a token's own features beside those of its context. The encoder is a
    PSABiLSTM.v1. Writes OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze gates training/model-best "Results of Asian Cup matches"
    """
    from spacy_psa.laboratory.analyses.heat_maps import draw_gates, gate_figures

    found = gate_figures(_view(model, text, pipe))
    for line in zip(found["words"], *found["layers"]):
        typer.echo("\t".join([line[0], *(f"{gate:.3f}" for gate in line[1:])]))
    _write("gates", found, draw_gates(found), output)


@analyze_app.command()
def lengths(
    data: Data,
    models: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]MODEL...", help="Folders or packages of pipelines."),
    ],
    edge: Annotated[
        list[int] | None,
        typer.Option(help="Least tokens of a bin; may be repeated; default: 5, 10, 20, 30, 40."),
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="The score, such as ents_f; default: the first there is.")
    ] = None,
    output: Output = Path("lengths"),
) -> None:
    """Draw the score of pipelines by the length of sentences (Wei2020 Fig. 4).

    Writes OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze lengths test.spacy psa=psa/model-best base=bilstm_crf/model-best
    """
    from spacy_psa.laboratory.analyses.counted_scores import counts_by_length, draw_lengths
    from spacy_psa.laboratory.performance.pipelines import named_rows
    from spacy_psa.loading import load_pipeline
    from spacy_psa.scoring.sentence_counts import EDGES, by_length

    edges = edge or [*EDGES]
    if edges != sorted({*edges}) or edges[0] < 2:
        raise InputError(
            f"--edge: {', '.join(map(str, edges))}: give numbers from 2 on, each larger than the "
            "one before"
        )
    found, name = {}, score
    for row, path in named_rows(models).items():
        nlp = load_pipeline(path)
        examples = _predicted(nlp, data)
        try:
            name, counts = counts_by_length(nlp, examples, name)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        if not any(count.gold for _, count in counts):
            raise InputError(
                f"{data}: has no gold annotation of which {name} is made; give annotated "
                "documents, or another --score"
            )
        found[row] = by_length(counts, edges)
    assert name is not None
    figures = {
        row: [
            {"tokens": each.name, "sentences": each.sentences, **each.units._asdict()}
            | {"f1": each.units.f1 if each.units.gold else None}
            for each in bins
        ]
        for row, bins in found.items()
    }
    _write("lengths", {"score": name, "models": figures}, draw_lengths(found, name), output, [data])


@analyze_app.command()
def convergence(
    logs: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]LOG.jsonl...", help="Logs of spacy.ConsoleLogger.v3."),
    ],
    output: Output = Path("convergence"),
) -> None:
    """Draw the development scores of trainings against epochs (Yan2019 Fig. 5).

    The figures say after how many epochs each training has 90, 95 and 99% of its best score. Writes
    OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze convergence tener=tener/log.jsonl bilstm=bilstm/log.jsonl
    """
    from spacy_psa.laboratory.analyses.convergence import convergence as curve
    from spacy_psa.laboratory.analyses.convergence import draw_convergence
    from spacy_psa.laboratory.performance.pipelines import named_rows
    from spacy_psa.scoring.result import read_log

    paths = {name: Path(path) for name, path in named_rows(logs).items()}
    found = {name: curve(read_log(path)) for name, path in paths.items()}
    for name, each in found.items():
        if not each["scores"]:
            raise InputError(f"{paths[name]}: has no evaluation; give the log of a training")
        near = ", ".join(f"{share}% in epoch {at:g}" for share, at in each["reached"].items())
        typer.echo(f"{name}: best {100 * each['best']:.2f}; {near}")
    _write("convergence", found, draw_convergence(found), output, [*paths.values()])


@analyze_app.command()
def blocks(model: Model, data: Data, pipe: Pipe = None, output: Output = Path("blocks")) -> None:
    """Replace states and heads with zeros, and draw the recalls (Li2019 Tables 3 and 4).

    The encoder is a SelfAttentiveBiLSTM.v1: H are its states, C its heads, H or C1 alone means that
    all others are 0. Recalls are by token, of the places in an entity and of the types. Writes
    OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze blocks training/model-best dev.spacy
    """
    from spacy_psa.laboratory.analyses.ablation import check_encoder, recalls, unknown_labels
    from spacy_psa.laboratory.analyses.heat_maps import draw_recalls
    from spacy_psa.loading import load_pipeline
    from spacy_psa.pipeline.chain.labeler import ChainLabeler
    from spacy_psa.pipeline.upstream import with_upstream
    from spacy_psa.scoring.result import read_examples
    from spacy_psa.scoring.token_recall import chunk_class, type_class

    nlp = load_pipeline(model)
    labelers = {name: each for name, each in nlp.pipeline if isinstance(each, ChainLabeler)}
    if not labelers or (pipe is not None and pipe not in labelers):
        raise InputError(
            f"{pipe or model}: is no crf_ner, crf_chunker or crf_tagger; the pipeline has "
            f"{', '.join(labelers) or 'none'}"
        )
    name = pipe or next(iter(labelers))
    labeler = labelers[name]
    check_encoder(nlp, name)
    examples = with_upstream(nlp, name, read_examples(nlp, data))
    for number, example in enumerate(examples, 1):
        if unknown := unknown_labels(labeler, example):
            raise InputError(
                f"{data}: document {number} has the label {unknown[0]!r}, which '{name}' of "
                f"{model} lacks; leave the document out, or give another model"
            )
    kinds = {"chunk": chunk_class, "type": type_class}
    tables = {kind: recalls(labeler, examples, project) for kind, project in kinds.items()}
    if not tables["chunk"]["HC"]:
        raise InputError(f"{data}: has no gold annotation for '{name}'; give annotated documents")
    found = {
        kind: {
            setup: {name: {**each._asdict(), "recall": each.rate} for name, each in row.items()}
            for setup, row in table.items()
        }
        for kind, table in tables.items()
    }
    _write("blocks", found, draw_recalls(tables), output, [data])


@analyze_app.command()
def parser(
    model: Model,
    data: Data,
    gold_tags: Annotated[
        bool, typer.Option("--gold-tags", help="Give the parser the parts of speech of DATA.")
    ] = False,
    window: Annotated[
        list[int] | None,
        typer.Option(help="Window, tokens; may be repeated; default: 5, 10, 15, 20, 30, 40."),
    ] = None,
    pipe: Annotated[
        str | None, typer.Option(help="Name of the parser, if there are several.")
    ] = None,
    output: Output = Path("parser"),
) -> None:
    """Score a parser without content or position, and in windows (Kitaev2018 Tables 1 and 2).

    The encoder is a FactoredTransformer.v1; nothing is trained again. For Table 3 train a config
    with each window, as a grid of `spacy-psa experiment run`. Writes OUTPUT.json, OUTPUT.png and
    OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze parser training/model-best dev.spacy
    """
    from spacy_psa.corpora.tree_corpus import read_tree_corpus
    from spacy_psa.laboratory.analyses.parser_ablation import (
        WINDOWS,
        ablate,
        draw,
        encoder,
        markdown,
        record,
    )
    from spacy_psa.laboratory.analyses.parser_ablation import setups as all_setups
    from spacy_psa.loading import find_pipe, load_pipeline
    from spacy_psa.pipeline.parser.parser import ConstituencyParser

    nlp = load_pipeline(model)
    found = find_pipe(nlp, pipe, ConstituencyParser, "constituency_parser")
    limits = all_setups(encoder(nlp, found), window or WINDOWS)
    examples = list(read_tree_corpus(data, gold_tags=gold_tags)(nlp))
    rows = list(ablate(nlp, examples, limits, found))
    typer.echo(markdown(rows))
    figures = {"gold_tags": gold_tags, "sentences": len(examples), "rows": record(rows)}
    _write("parser", figures, draw(rows), output, [data])


@analyze_app.command()
def positions(
    width: Annotated[
        list[int] | None, typer.Option(help="Width of an encoding; may be repeated.")
    ] = None,
    distance: Annotated[int, typer.Option(min=1, help="Largest distance.")] = 50,
    output: Output = Path("positions"),
) -> None:
    """Draw products of sinusoidal position encodings by distance (Yan2019 Figs. 3 and 4).

    The product of two encodings knows the distance, but not the direction; with a random projection
    between them it knows neither. Writes OUTPUT.json, OUTPUT.png and OUTPUT.svg.

    \b
    Example:
      spacy-psa analyze positions --width 128 --width 512 --distance 100
    """
    from spacy_psa.laboratory.analyses.position_encodings import compare_encodings, draw_encodings

    found = compare_encodings(width or [128, 256, 512], distance)
    _write("positions", found, draw_encodings(found), output)


def _view(model: str, text: str, name: str | None) -> "View":
    """The attention over the first sentence of a text."""
    from spacy_psa.analysis.attention import inspect
    from spacy_psa.loading import load_pipeline

    nlp = load_pipeline(model)
    pipe = _attentive_pipe(nlp, name)
    doc = nlp.make_doc(text)
    before = nlp.pipe_names[: nlp.pipe_names.index(pipe.name)]
    with nlp.select_pipes(enable=before):  # the encoder may read their annotation
        views = inspect(pipe, [nlp(doc)])
    if not views:
        raise InputError("TEXT: has no token; give a sentence")
    return views[0]


def _attentive_pipe(nlp: "Language", name: str | None) -> "TrainablePipe":
    """The component of a name, or the first one whose encoder has attention."""
    from spacy.pipeline import TrainablePipe

    from spacy_psa.analysis.attention import inspect

    pipes = {key: pipe for key, pipe in nlp.pipeline if isinstance(pipe, TrainablePipe)}
    if name is not None and name not in pipes:
        raise InputError(f"--pipe {name}: no such component; take {', '.join(pipes)}")
    reason = "the pipeline has no trained component; give another MODEL"
    for pipe in [pipes[name]] if name else pipes.values():
        try:
            inspect(pipe, [])
        except InputError as error:
            reason = str(error)
        else:
            return pipe
    raise InputError(reason)


def _predicted(nlp: "Language", data: Path) -> "list[Example]":
    """Gold documents beside what a pipeline predicts for them."""
    from spacy.training import Example

    from spacy_psa.scoring.result import read_examples

    examples = read_examples(nlp, data)
    docs = nlp.pipe(example.predicted for example in examples)
    return [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]


def _write(
    analysis: str,
    found: Any,
    figure: "Figure",
    output: Path,
    data: Sequence[Path] = (),
) -> None:
    """Write OUTPUT.json, OUTPUT.png and OUTPUT.svg, the pictures first."""
    from spacy_psa.analysis.figures import save_figure
    from spacy_psa.corpora.atomic import atomic_path
    from spacy_psa.scoring.provenance import provenance

    record = {"format": 1, "analysis": analysis, **provenance(data), "figures": found}
    paths = [output.with_name(f"{output.name}{ending}") for ending in (".json", ".png", ".svg")]
    for path in paths[1:]:
        save_figure(figure, path)
    with atomic_path(paths[0]) as temporary:
        temporary.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf8")
    typer.echo(f"Written: {', '.join(map(str, paths))}")
