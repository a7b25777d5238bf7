"""Score perturbed trees by EVALB and by spacy_psa.scoring.parseval, side by side.

usage: python benchmarks/parseval_evalb.py EVALB EVALB_SPMRL TREES OUT.json [PRM ...]

EVALB and EVALB_SPMRL are the compiled programs (`gcc -w -O2 evalb.c`; of the sources that
nikitakit/self-attentive-parser keeps in EVALB/ and EVALB_SPMRL/), each beside its source and
.prm file. TREES is a .spacy file of gold trees. 2,000 of them, drawn by a seed, are perturbed:
constituents relabelled, dropped, added, moved, doubled; parts of speech changed, also to
and from punctuation; words changed or lost; parses missing. Every figure of both summaries
and every integer of every sentence's line is compared. PRM: more rules for EVALB.
"""

import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from spacy_psa.cli.evaluate_trees import summary
from spacy_psa.corpora.tag_schemes import Span
from spacy_psa.corpora.trees import Parsed, build_tree
from spacy_psa.scoring.evalb_params import Params, read_params
from spacy_psa.scoring.parseval import QUOTES, SentenceScore, score_pair, total
from spacy_psa.scoring.provenance import checksums, commit, machine, md5, versions
from spacy_psa.scoring.tree_files import read_scored_trees

SEED, SENTENCES = 0, 2000
LABELS = ("NP", "VP", "PP", "S", "ADVP", "PRT", "ADJP", "NP-SBJ", "NP=2", "PP-LOC-1", "X")
PUNCTUATION = (",", ":", "``", "''", ".", "-LRB-", "HYPH")
TAGS = ("NN", "NNS", "VB", "VBD", "JJ", "IN", "RB", "RP", "ADVP", "PRT", "POS", "''")
NAMES = {
    "Number of sentence": "Sentences",
    "Number of Error sentence": "Error sentences",
    "Number of Skip  sentence": "Skipped sentences",
    "Number of Valid sentence": "Valid sentences",
    "Bracketing Recall": "Bracketing recall",
    "Bracketing Precision": "Bracketing precision",
    "Bracketing FMeasure": "Bracketing F1",
    "Complete match": "Complete match",
    "Average crossing": "Average crossing",
    "No crossing": "No crossing",
    "2 or less crossing": "2 or less crossing",
    "Tagging accuracy": "Tagging accuracy",
}
STATUS = ("ok", "error", "skip")


def fits(tree: Parsed) -> bool:
    """Whether EVALB's fixed buffers hold the tree, and another one that is made of it."""
    short = max(map(len, tree.words), default=0) < 60 and len(bracketed(tree)) < 4000
    return 0 < len(tree.words) <= 150 and len(tree.constituents) <= 120 and short


def bracketed(tree: Parsed) -> str:
    """The tree on one line, under a root of its own."""
    if not tree.words:
        return "(())"
    built = build_tree(*tree)
    line = built.pformat(margin=10**9)
    return line if built.label() == "TOP" else f"(TOP {line})"


def perturb(tree: Parsed, rng: random.Random) -> Parsed:
    """Another tree over the same words, rarely over others."""
    words, tags, spans = list(tree.words), list(tree.tags), list(tree.constituents)
    for _ in range(rng.choice((0, 1, 1, 2, 4, 8))):
        rng.choice(CHANGES)(words, spans, rng)
    for i in range(len(tags)):
        if words[i] in QUOTES and rng.random() < 0.3:
            tags[i] = rng.choice(("POS", "''", "``"))
        elif rng.random() < 0.05:
            # Punctuation mostly stays so, as with a tagger; else the sentence is an error.
            stays = tags[i] in PUNCTUATION[:5] and rng.random() < 0.7
            tags[i] = rng.choice(PUNCTUATION[:5] if stays else TAGS)
        elif tags[i] not in PUNCTUATION and rng.random() < 0.003:
            tags[i] = rng.choice(PUNCTUATION)
    if rng.random() < 0.02:
        words[rng.randrange(len(words))] += "x"
    if rng.random() < 0.01:
        return Parsed([], [], [])
    if rng.random() < 0.01 and len(words) > 1:
        spans = [(s, min(e, len(words) - 1), label) for s, e, label in spans]
        spans = [span for span in spans if span[0] < span[1]]
        words.pop()
        tags.pop()
    return Parsed(words, tags, spans)


def _relabel(words: list[str], spans: list[Span], rng: random.Random) -> None:
    if spans:
        i = rng.randrange(len(spans))
        start, end, label = spans[i]
        swap = {"ADVP": "PRT", "PRT": "ADVP"}
        spans[i] = (start, end, swap.get(label, rng.choice(LABELS)))


def _drop(words: list[str], spans: list[Span], rng: random.Random) -> None:
    if spans:
        del spans[rng.randrange(len(spans))]


def _add(words: list[str], spans: list[Span], rng: random.Random) -> None:
    for _ in range(20):
        start, end = sorted(rng.sample(range(len(words) + 1), 2))
        if not any(_cross(span, start, end) for span in spans):
            _insert(spans, start, end, rng.choice(LABELS))
            return


def _move(words: list[str], spans: list[Span], rng: random.Random) -> None:
    """Shift a bracket, so that it crosses where it was, and drop what it crosses then."""
    if not spans:
        return
    start, end, label = spans.pop(rng.randrange(len(spans)))
    step = rng.choice((-2, -1, 1, 2))
    start, end = max(0, start + step), min(len(words), end + step)
    if start < end:
        spans[:] = [x for x in spans if not _cross(x, start, end)]
        _insert(spans, start, end, label)


def _double(words: list[str], spans: list[Span], rng: random.Random) -> None:
    if spans:
        i = rng.randrange(len(spans))
        spans.insert(i, spans[i])


def _cross(span: Span, start: int, end: int) -> bool:
    return span[0] < start < span[1] < end or start < span[0] < end < span[1]


def _insert(spans: list[Span], start: int, end: int, label: str) -> None:
    # In preorder: after those that begin before it or hold it.
    place = sum(s < start or (s == start and e >= end) for s, e, _ in spans)
    spans.insert(place, (start, end, label))


CHANGES: tuple[Callable[[list[str], list[Span], random.Random], None], ...]
CHANGES = (_relabel, _relabel, _drop, _add, _move, _move, _double)


def run_evalb(
    program: Path, prm: Path, gold: Iterable[Parsed], test: Iterable[Parsed], cutoff: int
) -> tuple[list[dict[str, str]], list[tuple[Any, ...]]]:
    """EVALB's two summaries, by our names, and each sentence's integers."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("gold", "test")]
        for path, trees in zip(paths, (gold, test), strict=True):
            path.write_text("".join(bracketed(tree) + "\n" for tree in trees), encoding="utf8")
        command = [program.resolve(), "-p", prm.resolve(), "-e", "1000000", "-c", str(cutoff)]
        # In the folder, since the build for SPMRL writes a file where it is run.
        done = subprocess.run(
            [*map(str, command), *map(str, paths)],
            cwd=folder,
            capture_output=True,
            check=True,
            encoding="latin1",
        )
    return parse_evalb(done.stdout)


def parse_evalb(output: str) -> tuple[list[dict[str, str]], list[tuple[Any, ...]]]:
    """As `run_evalb`, of what it prints."""
    head, _, tail = output.partition("=== Summary ===")
    rows = []
    for line in head.splitlines():
        cells = line.split()
        if len(cells) == 12 and cells[0].isdigit():
            _, length, status, _, _, *counts, _ = cells
            rows.append((int(length), STATUS[int(status)], *map(int, counts)))
    parts = re.split(r"-- len<=.*--", tail)
    found = [
        {
            NAMES[name.strip()]: value.strip().replace("-nan", "0.00").replace("nan", "0.00")
            for name, value in re.findall(r"^(.+?)\s*=\s*(\S+)$", part, re.MULTILINE)
        }
        for part in parts
    ]
    return found, rows


def row(score: SentenceScore) -> tuple[Any, ...]:
    """A sentence's integers in the order of EVALB's line."""
    return (
        *(score.length, score.status, score.matched),
        *(score.gold.total(), score.test.total(), score.crossing, score.words, score.tags),
    )


def compare(
    program: Path, prm: Path, params: Params, gold: list[Parsed], test: list[Parsed]
) -> dict[str, Any]:
    """What EVALB says, what we say, and where they differ."""
    columns, rows = run_evalb(program, prm, gold, test, params.cutoff)
    scores = [score_pair(ours, theirs, params) for ours, theirs in zip(gold, test, strict=True)]
    totals = (total(scores), total(scores, params.cutoff))
    ours = [summary(figures) for figures in totals]
    names = ("all", f"up to {params.cutoff} words")
    differing = [
        f"{name}: {key}: EVALB {theirs[key]}, spacy-psa {mine.get(key)}"
        for name, theirs, mine in zip(names, columns, ours, strict=True)
        for key in theirs
        if theirs[key] != mine.get(key)
    ]
    sentences = [
        number
        for number, (theirs, score) in enumerate(zip(rows, scores, strict=True), 1)
        if theirs != row(score)
    ]
    return {
        "evalb": dict(zip(names, columns, strict=True)),
        "spacy_psa": dict(zip(names, ours, strict=True)),
        "figures_compared": sum(map(len, columns)),
        "figures_that_differ": differing,
        "sentences_compared": len(rows),
        "sentences_that_differ": sentences,
    }


def draw(trees: list[Parsed], count: int, seed: int) -> tuple[list[Parsed], list[Parsed]]:
    """`count` gold trees (again and again, if there are fewer) and what became of each."""
    rng = random.Random(seed)
    trees = [tree for tree in trees if fits(tree)]
    gold = rng.sample(trees, count) if count <= len(trees) else rng.choices(trees, k=count)
    return gold, [perturb(tree, rng) for tree in gold]


def main(evalb: Path, evalb_spmrl: Path, source: Path, target: Path, *prms: Path) -> None:
    gold, test = draw([tree for _, tree in read_scored_trees(source)], SENTENCES, SEED)
    setups = [
        (evalb, evalb.parent / "COLLINS.prm", False),
        (evalb_spmrl, evalb_spmrl.parent / "spmrl.prm", True),
        *((evalb, prm, False) for prm in prms),
    ]
    found = {}
    for program, prm, keep in setups:
        params = replace(read_params(prm, keep_words=keep), cutoff=40)
        pairs = [
            (one, other)
            for one, other in zip(gold, test, strict=True)
            # The build for SPMRL forgets to mark these as errors, and counts a sentence
            # without words and brackets, its trees the same.
            if not (keep and other.words and len(one.words) != len(other.words))
        ]
        found[prm.name] = {
            "source_md5": md5(program.with_name("evalb.c")),
            "prm_md5": md5(prm),
            "left_out": len(gold) - len(pairs),
            **compare(program, prm, params, *map(list, zip(*pairs, strict=True))),
        }
        print(prm.name, json.dumps(found[prm.name]["spacy_psa"], indent=2))
        for key in ("figures_that_differ", "sentences_that_differ"):
            print(f"{key}: {len(found[prm.name][key])}", *found[prm.name][key][:10], sep="\n  ")
    record = {
        "comparisons": found,
        "seed": SEED,
        "trees": len(gold),
        "changed": sum(one != other for one, other in zip(gold, test, strict=True)),
        "data": checksums([source]),
        "versions": versions(),
        "machine": machine(),
        **dict(zip(("commit", "modified"), commit(), strict=True)),
    }
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf8")


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
