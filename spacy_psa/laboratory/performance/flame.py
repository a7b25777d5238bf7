"""Profiles of a pipeline in files: tables, flame graphs, and stacks for other tools."""

from html import escape
from pathlib import Path
from typing import Any

from spacy_psa.analysis.figures import PALETTE
from spacy_psa.corpora.atomic import write_json, write_text
from spacy_psa.laboratory.performance.pipelines import open_pipeline, read_words
from spacy_psa.laboratory.performance.profile import (
    Profile,
    markdown,
    profile_annotation,
    profile_training,
)
from spacy_psa.laboratory.performance.rooms import ROOMS
from spacy_psa.laboratory.performance.sections import Plan, record
from spacy_psa.laboratory.performance.timing import pin_threads
from spacy_psa.scoring.provenance import command

WIDTH, ROW, LETTER = 1200.0, 18, 6.6  # pixels
LEAST = 0.5  # narrower rectangles are left out


class Node:
    """A function with the functions that it calls."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls: dict[str, Node] = {}

    def add(self, names: list[str], seconds: float) -> None:
        """Add the seconds of a stack, whose outermost name comes first."""
        node = self
        node.seconds += seconds
        for name in names:
            node = node.calls.setdefault(name, Node())
            node.seconds += seconds


def flame_graph(title: str, profile: Profile) -> str:
    """Draw a flame graph as SVG.

    The widths are processor time. Below a room are the functions that run in it, each below the one
    that calls it. The text of a rectangle is shown in full where the pointer rests on it.
    """
    root = Node()
    for place, seconds in profile.seconds.items():
        root.add([place.room, *place.functions], seconds)
    rows: list[str] = []
    depth = 1
    todo: list[tuple[str, Node, int, float, str]] = [(title, root, 0, 0.0, "#718096")]
    colours = dict(zip(ROOMS, PALETTE, strict=True))
    scale = WIDTH / (root.seconds or 1.0)
    while todo:
        name, node, level, left, colour = todo.pop()
        if node.seconds * scale < LEAST:
            continue
        depth = max(depth, level + 1)
        rows.append(_rectangle(name, node, level, left, colour, profile, scale))
        order = list(ROOMS) if not level else sorted(node.calls)
        for called in (call for call in order if call in node.calls):
            child = node.calls[called]
            todo.append((called, child, level + 1, left, colours.get(called, colour)))
            left += child.seconds * scale
    height = depth * ROW + 2
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:.0f}" height="{height}" '
            f'viewBox="0 0 {WIDTH:.0f} {height}" font-family="monospace" font-size="11">',
            f"<title>{escape(title)}</title>",
            *rows,
            "</svg>\n",
        ]
    )


def _rectangle(
    name: str, node: Node, level: int, left: float, colour: str, profile: Profile, scale: float
) -> str:
    width = node.seconds * scale
    share = node.seconds / (profile.total or 1.0)
    full = f"{name}: {share:.1%}, {1e6 * node.seconds / profile.amount:,.2f} µs a {profile.unit}"
    room = int((width - 6) / LETTER)
    short = name.removeprefix("spacy_psa.") if level > 1 else full
    shown = short if len(short) <= room else short[-room:] if level > 1 else short[:room]
    text = (
        f'<text x="{left + 3:.1f}" y="{level * ROW + 13}" fill="#fff">{escape(shown)}</text>'
        if room >= 3
        else ""
    )
    opacity = 1.0 if level < 2 else 0.85 if level % 2 else 0.7
    return (
        f'<g><title>{escape(full)}</title><rect x="{left:.1f}" y="{level * ROW}" '
        f'width="{width:.1f}" height="{ROW - 1}" fill="{colour}" fill-opacity="{opacity}" '
        f'stroke="#fff" stroke-width="0.5"/>{text}</g>'
    )


def folded(profile: Profile) -> str:
    """Write the stacks as lines "outer;inner MICROSECONDS".

    speedscope, inferno and flamegraph.pl read this format.
    """
    stacks: Any = sorted(profile.seconds.items())
    return "".join(
        f"{';'.join([place.room, *place.functions])} {round(1e6 * seconds)}\n"
        for place, seconds in stacks
    )


def write_profiles(model: str, plan: Plan, output: Path) -> tuple[str, list[str]]:
    """Profile the annotation and, with training data, the training of a pipeline.

    The model is the folder or package of the pipeline, or a training config. `output` is the path
    of the files, without their endings. Returns tables in Markdown, and the names of the files.
    """
    pin_threads(plan.threads)
    sentences = read_words(plan.data, plan.words)
    nlp = open_pipeline(model, plan.train, plan.vectors)
    profiles = {"Annotation": profile_annotation(nlp, sentences, plan.repeats)}
    if plan.train is not None:
        training = profile_training(nlp, plan.train, plan.steps, plan.batch, plan.repeats)
        profiles["Training"] = training
    settings = {"threads": plan.threads, "repeats": plan.repeats, "batch": plan.batch}
    sections = {title.lower(): profile.to_dict() for title, profile in profiles.items()}
    product = record(command(), settings, {model: model}, plan.files, sections)
    write_json(output.with_name(f"{output.name}.json"), product, indent=1)
    texts = {".md": markdown(profiles)}
    for title, profile in profiles.items():
        texts[f"-{title.lower()}.svg"] = flame_graph(title, profile)
        texts[f"-{title.lower()}.folded"] = folded(profile)
    for ending, text in texts.items():
        write_text(output.with_name(f"{output.name}{ending}"), text)
    return texts[".md"], [f"{output}{ending}" for ending in (".json", *texts)]
