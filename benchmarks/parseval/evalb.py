"""Compare the scores of perturbed trees by EVALB and by spacy_psa.scoring.parseval.

EVALB and EVALB_SPMRL are compiled programs (`gcc -w -O2 evalb.c`, from the sources in EVALB/ and
EVALB_SPMRL/ of nikitakit/self-attentive-parser). Each is next to its source and its .prm file.
TREES is a .spacy file of gold trees. The script draws 2,000 of them by a seed and perturbs them: it
relabels, drops, adds, moves and doubles constituents; it changes parts of speech, also to and from
punctuation; it changes or removes words; it leaves out parses. It compares every figure of both
summaries, and every integer in the line of every sentence.

Results (kind "figures"): `trees`, `changed` (how many differ from the gold tree), and
`comparisons` {name of the .prm file: {`source_md5` and `prm_md5` of EVALB, `left_out` (sentences),
`evalb` and `spacy_psa` (both summaries), `figures_compared`, `figures_that_differ`,
`sentences_compared`, `sentences_that_differ`}}.
"""

import json
import random
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.corpora.assets import md5
from spacy_psa.corpora.tag_schemes import Span
from spacy_psa.corpora.trees import Parsed, build_tree
from spacy_psa.scoring.evalb_params import Params, read_params
from spacy_psa.scoring.parseval import QUOTES, SentenceScore, score_pair, total
from spacy_psa.scoring.parseval_files import summary
from spacy_psa.scoring.parseval_scorer import read_scored_trees

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
    """Whether the fixed buffers of EVALB hold the tree and a perturbed copy of it."""
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
    """A changed tree over the same words, or rarely over other words."""
    words, tags, spans = list(tree.words), list(tree.tags), list(tree.constituents)
    for _ in range(rng.choice((0, 1, 1, 2, 4, 8))):
        rng.choice(CHANGES)(words, spans, rng)
    for i in range(len(tags)):
        if words[i] in QUOTES and rng.random() < 0.3:
            tags[i] = rng.choice(("POS", "''", "``"))
        elif rng.random() < 0.05:
            # Punctuation mostly stays punctuation, as with a tagger; else the sentence is an error.
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
    """Shift a bracket, so that it crosses its old place, and drop all others that it crosses."""
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
    """The two summaries of EVALB, by our names, and its integers for each sentence."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("gold", "test")]
        for path, trees in zip(paths, (gold, test), strict=True):
            path.write_text("".join(bracketed(tree) + "\n" for tree in trees), encoding="utf8")
        command = [program.resolve(), "-p", prm.resolve(), "-e", "1000000", "-c", str(cutoff)]
        # In that folder, since the build for SPMRL writes a file into the current one.
        done = subprocess.run(
            [*map(str, command), *map(str, paths)],
            cwd=folder,
            capture_output=True,
            check=True,
            encoding="latin1",
        )
    return parse_evalb(done.stdout)


def parse_evalb(output: str) -> tuple[list[dict[str, str]], list[tuple[Any, ...]]]:
    """Read the output of EVALB; see `run_evalb`."""
    head, _, tail = output.partition("=== Summary ===")
    rows = []
    for line in head.splitlines():
        cells = line.split()
        if len(cells) == 12 and cells[0].isdigit():
            _, length, status, _, _, *counts, _ = cells
            rows.append((int(length), STATUS[int(status)], *map(int, counts)))
    summaries = [
        {
            NAMES[name.strip()]: value.strip().replace("-nan", "0.00").replace("nan", "0.00")
            for name, value in re.findall(r"^(.+?)\s*=\s*(\S+)$", part, re.MULTILINE)
        }
        for part in re.split(r"-- len<=.*--", tail)
    ]
    return summaries, rows


def row(score: SentenceScore) -> tuple[Any, ...]:
    """The integers of a sentence, in the order in which EVALB prints them."""
    return (
        *(score.length, score.status, score.matched),
        *(score.gold.total(), score.test.total(), score.crossing, score.words, score.tags),
    )


def compare(
    program: Path, prm: Path, params: Params, gold: list[Parsed], test: list[Parsed]
) -> dict[str, Any]:
    """The figures of EVALB, our figures, and where they differ."""
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
    """Draw gold trees, with repetition if there are too few, and perturb each of them."""
    rng = random.Random(seed)
    trees = [tree for tree in trees if fits(tree)]
    gold = rng.sample(trees, count) if count <= len(trees) else rng.choices(trees, k=count)
    return gold, [perturb(tree, rng) for tree in gold]


def main() -> None:
    options = script_parser(globals(), "EVALB", "EVALB_SPMRL", "TREES.spacy", "OUT.json")
    options.add_argument("prms", type=Path, nargs="*", metavar="PRM", help="more rules for EVALB")
    given = options.parse_args()
    evalb, evalb_spmrl, source = given.evalb, given.evalb_spmrl, given.trees
    gold, test = draw([tree for _, tree in read_scored_trees(source).trees], SENTENCES, SEED)
    setups = [
        (evalb, evalb.parent / "COLLINS.prm", False),
        (evalb_spmrl, evalb_spmrl.parent / "spmrl.prm", True),
        *((evalb, prm, False) for prm in given.prms),
    ]
    comparisons = {}
    for program, prm, keep in setups:
        params = replace(read_params(prm, keep_words=keep), cutoff=40)
        pairs = [
            (tree, changed)
            for tree, changed in zip(gold, test, strict=True)
            # The build for SPMRL does not mark these as errors. It counts the sentence as one
            # without words and without brackets, and its two trees as equal.
            if not (keep and changed.words and len(tree.words) != len(changed.words))
        ]
        comparison = comparisons[prm.name] = {
            "source_md5": md5(program.with_name("evalb.c")),
            "prm_md5": md5(prm),
            "left_out": len(gold) - len(pairs),
            **compare(program, prm, params, *map(list, zip(*pairs, strict=True))),
        }
        print(prm.name, json.dumps(comparison["spacy_psa"], indent=2))
        for key in ("figures_that_differ", "sentences_that_differ"):
            print(f"{key}: {len(comparison[key])}", *comparison[key][:10], sep="\n  ")
    different = sum(a != b for a, b in zip(gold, test, strict=True))
    figures = {"comparisons": comparisons, "trees": len(gold), "changed": different}
    write_record(given.out, "parseval", figures, data=[source], seed=SEED)


if __name__ == "__main__":
    main()
