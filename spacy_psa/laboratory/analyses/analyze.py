"""Whole analyses: of the paths of pipelines and data to figures and a picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.training import Example

from spacy_psa.analysis.attention import View, inspect
from spacy_psa.analysis.figures import Figure, save_figure
from spacy_psa.corpora.atomic import write_json
from spacy_psa.corpora.tree_corpus import read_tree_corpus
from spacy_psa.errors import InputError
from spacy_psa.laboratory.analyses import heat_maps, parser_ablation, position_encodings
from spacy_psa.laboratory.analyses.ablation import check_encoder, recalls, unknown_labels
from spacy_psa.laboratory.analyses.convergence import convergence as curve
from spacy_psa.laboratory.analyses.convergence import draw_convergence
from spacy_psa.laboratory.analyses.counted_scores import counts_by_length, draw_lengths
from spacy_psa.loading import find_pipe, load_pipeline
from spacy_psa.pipeline.chain.labeler import ChainLabeler
from spacy_psa.pipeline.parser.parser import ConstituencyParser
from spacy_psa.pipeline.upstream import with_upstream
from spacy_psa.scoring.provenance import provenance
from spacy_psa.scoring.result import read_examples, read_log
from spacy_psa.scoring.sentence_counts import EDGES, by_length
from spacy_psa.scoring.token_recall import chunk_class, type_class


@dataclass(frozen=True)
class Analysis:
    """The figures of an analysis, and their picture."""

    name: str
    figures: Any
    picture: Figure
    data: Sequence[Path] = ()
    """The files of data, for the provenance."""
    messages: Sequence[str] = ()
    """Lines to print."""

    def write(self, output: Path) -> list[Path]:
        """Write OUTPUT.json, OUTPUT.png and OUTPUT.svg, the pictures first."""
        record = {"format": 1, "analysis": self.name, **provenance(self.data)}
        paths = [output.with_name(f"{output.name}{end}") for end in (".json", ".png", ".svg")]
        for path in paths[1:]:
            save_figure(self.picture, path)
        write_json(paths[0], {**record, "figures": self.figures}, indent=None)
        return paths


def attention(model: str, text: str, word: str | None, pipe: str | None) -> Analysis:
    """Analyse the attention over a sentence, or only that of a word; see `attention_figures`."""
    figures = heat_maps.attention_figures(_view(model, text, pipe), word)
    return Analysis("attention", figures, heat_maps.draw_attention(figures))


def gates(model: str, text: str, pipe: str | None) -> Analysis:
    """Analyse the gates over a sentence; see `gate_figures`."""
    figures = heat_maps.gate_figures(_view(model, text, pipe))
    rows = zip(figures["words"], *figures["layers"])
    lines = ["\t".join([row[0], *(f"{gate:.3f}" for gate in row[1:])]) for row in rows]
    return Analysis("gates", figures, heat_maps.draw_gates(figures), messages=lines)


def lengths(
    data: Path, models: Mapping[str, str], edges: Sequence[int] | None, score: str | None
) -> Analysis:
    """Analyse the score of pipelines, {name: folder or package}, by the length of sentences.

    `edges` are the least tokens of each bin but the first; None for `EDGES`. The score is None for
    the first that the first pipeline has.
    """
    edges = [*(edges or EDGES)]
    if edges != sorted({*edges}) or edges[0] < 2:
        raise InputError(
            f"--edge: {', '.join(map(str, edges))}: use numbers from 2 on, each larger than the "
            "one before"
        )
    bins = {}
    for row, path in models.items():
        nlp = load_pipeline(path)
        try:
            score, counts = counts_by_length(nlp, _predicted(nlp, data), score)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        if not any(count.gold for _, count in counts):
            raise InputError(
                f"{data}: has no gold annotation for {score}; use annotated documents, or another "
                "--score"
            )
        bins[row] = by_length(counts, edges)
    assert score is not None
    figures = {
        row: [
            {"tokens": each.name, "sentences": each.sentences, **each.units._asdict()}
            | {"f1": each.units.f1 if each.units.gold else None}
            for each in parts
        ]
        for row, parts in bins.items()
    }
    record = {"score": score, "models": figures}
    return Analysis("lengths", record, draw_lengths(bins, score), [data])


def convergence(logs: Mapping[str, str]) -> Analysis:
    """Analyse the development scores in {name: log of a training}; see `convergence`."""
    figures, lines = {}, []
    for name, path in logs.items():
        figures[name] = each = curve(read_log(Path(path)))
        if not each["scores"]:
            raise InputError(f"{path}: has no evaluation; use the log of a training")
        near = ", ".join(f"{share}% in epoch {at:g}" for share, at in each["reached"].items())
        lines.append(f"{name}: best {100 * each['best']:.2f}; {near}")
    files = [Path(path) for path in logs.values()]
    return Analysis("convergence", figures, draw_convergence(figures), files, lines)


def blocks(model: str, data: Path, pipe: str | None) -> Analysis:
    """Analyse the recalls of a labeler without states or heads; see `ablation.recalls`."""
    nlp = load_pipeline(model)
    labelers = {name: each for name, each in nlp.pipeline if isinstance(each, ChainLabeler)}
    if not labelers or (pipe is not None and pipe not in labelers):
        raise InputError(
            f"{pipe or model}: is not a crf_ner, crf_chunker or crf_tagger; the pipeline has "
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
                f"{model} lacks; leave the document out, or use another model"
            )
    kinds = {"chunk": chunk_class, "type": type_class}
    tables = {kind: recalls(labeler, examples, project) for kind, project in kinds.items()}
    if not tables["chunk"]["HC"]:
        raise InputError(f"{data}: has no gold annotation for '{name}'; use annotated documents")
    figures = {
        kind: {
            setup: {label: {**each._asdict(), "recall": each.rate} for label, each in row.items()}
            for setup, row in table.items()
        }
        for kind, table in tables.items()
    }
    return Analysis("blocks", figures, heat_maps.draw_recalls(tables), [data])


def parser(
    model: str, data: Path, gold_tags: bool, windows: Sequence[int] | None, pipe: str | None
) -> Analysis:
    """Analyse a parser without content or position, and in windows; see `ablate`."""
    nlp = load_pipeline(model)
    component = find_pipe(nlp, pipe, ConstituencyParser, "constituency_parser")
    encoder = parser_ablation.encoder(nlp, component)
    limits = parser_ablation.setups(encoder, windows or parser_ablation.WINDOWS)
    examples = list(read_tree_corpus(data, gold_tags=gold_tags)(nlp))
    rows = list(parser_ablation.ablate(nlp, examples, limits, component))
    record = parser_ablation.record(rows)
    figures = {"gold_tags": gold_tags, "sentences": len(examples), "rows": record}
    table = parser_ablation.markdown(rows)
    return Analysis("parser", figures, parser_ablation.draw(rows), [data], [table])


def positions(widths: Sequence[int], distance: int) -> Analysis:
    """Analyse the products of position encodings of several widths; see `compare_encodings`."""
    figures = position_encodings.compare_encodings(widths, distance)
    return Analysis("positions", figures, position_encodings.draw_encodings(figures))


def _view(model: str, text: str, name: str | None) -> View:
    """Return the attention over the first sentence of a text."""
    nlp = load_pipeline(model)
    pipe = _attentive_pipe(nlp, name)
    doc = nlp.make_doc(text)
    before = nlp.pipe_names[: nlp.pipe_names.index(pipe.name)]
    with nlp.select_pipes(enable=before):  # the encoder may read their annotation
        views = inspect(pipe, [nlp(doc)])
    if not views:
        raise InputError("TEXT: has no token; write a sentence")
    return views[0]


def _attentive_pipe(nlp: Language, name: str | None) -> TrainablePipe:
    """Return the component of a name, or the first one whose encoder has attention."""
    pipes = {key: pipe for key, pipe in nlp.pipeline if isinstance(pipe, TrainablePipe)}
    if name is not None and name not in pipes:
        raise InputError(f"--pipe {name}: no such component; choose {', '.join(pipes)}")
    reason = "the pipeline has no trained component; choose another MODEL"
    for pipe in [pipes[name]] if name else pipes.values():
        try:
            inspect(pipe, [])
        except InputError as error:
            reason = str(error)
        else:
            return pipe
    raise InputError(reason)


def _predicted(nlp: Language, data: Path) -> list[Example]:
    """Return gold documents with the predictions of a pipeline."""
    examples = read_examples(nlp, data)
    docs = nlp.pipe(example.predicted for example in examples)
    return [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]
