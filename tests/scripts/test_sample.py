"""The generator of the sample corpus."""

import hashlib
import os
import subprocess
from collections import Counter
from itertools import pairwise

import pytest

from scripts.sample.generator import LONGEST, SIZES, Generator, generate, lexicon
from scripts.sample.grammar import PRODUCTIONS
from scripts.sample.words import WORDS
from spacy_psa.corpora.trees import build_tree
from tests.helpers.paths import ROOT, SAMPLE
from tests.helpers.quick_python import PYTHON
from tests.helpers.trees import parse_tree


@pytest.fixture(scope="module")
def corpus():
    return dict(generate(0))


def entities(record):
    return [(" ".join(record["words"][a:b]), label) for a, b, label in record["ents"]]


def test_the_assets_are_what_the_generator_gives_in_another_process(tmp_path):
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [PYTHON, "-m", "scripts.sample.generator", str(tmp_path), "--seed", "0"]
    subprocess.run(command, check=True, env=environment, cwd=ROOT)
    for split in SIZES:
        made, kept = ((f / f"{split}.jsonl").read_bytes() for f in (tmp_path, SAMPLE))
        assert hashlib.sha256(made).digest() == hashlib.sha256(kept).digest()


def test_another_seed_gives_another_corpus():
    assert next(Generator(1, "train")) != next(Generator(0, "train"))


def test_sizes_and_lengths(corpus):
    assert {split: len(records) for split, records in corpus.items()} == SIZES
    lengths = [len(record["words"]) for records in corpus.values() for record in records]
    assert max(lengths) <= LONGEST
    assert 10 <= sum(lengths) / len(lengths) <= 16


def test_no_sentence_comes_twice(corpus):
    texts = [" ".join(r["words"]) for records in corpus.values() for r in records]
    assert len(set(texts)) == len(texts)


def test_layers_agree_with_each_other(corpus):
    for record in corpus["dev"]:
        parsed = parse_tree(record["tree"])
        assert parsed.words == record["words"]
        assert parsed.tags == record["tags"]
        assert len(record["spaces"]) == len(record["words"])
        assert str(build_tree(*parsed)).split() == record["tree"].split()
        for layer in ("chunks", "ents"):
            ends = [0] + [end for _, end, _ in record[layer]]
            starts = [start for start, _, _ in record[layer]]
            assert all(e <= s < n for e, s, n in zip(ends, starts, ends[1:], strict=False))


def test_no_constituent_repeats_itself_as_its_only_child(corpus):
    for record in corpus["train"]:
        spans = parse_tree(record["tree"]).constituents
        assert all(a != b for a, b in pairwise(spans)), record["tree"]


def test_chunks_follow_conll2000(corpus):
    record = next(
        r for records in corpus.values() for r in records
        if "'s" in r["words"] and "wanted to" in " ".join(r["words"])
    )  # fmt: skip
    chunks = {(" ".join(record["words"][a:b]), label) for a, b, label in record["chunks"]}
    words = record["words"]
    assert any(text.startswith("'s ") and label == "NP" for text, label in chunks)
    i = words.index("wanted")
    assert (" ".join(words[i : i + 3]), "VP") in chunks


def test_chunks_do_not_cross_constituents_of_other_phrases(corpus):
    for record in corpus["test"]:
        covered = [i for a, b, _ in record["chunks"] for i in range(a, b)]
        outside = set(range(len(record["words"]))) - set(covered)
        marks = {",", ".", "``", "''", "CC", "-LRB-", "-RRB-"}
        assert {record["tags"][i] for i in outside} <= marks


def test_titles_and_names_make_an_exclusive_or(corpus):
    art, other = Counter(), Counter()
    for record in corpus["train"]:
        pair = " ".join(record["words"][:3])
        (art if (pair, "WORK_OF_ART") in entities(record) else other)[pair] += 1
    for title in ("Key and Peele", "You and I", "Rose and Reed", "May and Hunt"):
        assert art[title] > 3
        assert other[title] == 0
    for pair in ("Key and I", "You and Peele", "Rose and Hunt", "May and Reed"):
        assert other[pair] > 3
        assert art[pair] == 0


def test_one_name_has_several_types_and_is_a_common_word_elsewhere(corpus):
    types: dict[str, set[str]] = {}
    plain = set()
    for record in corpus["train"]:
        for name, label in entities(record):
            types.setdefault(name, set()).add(label)
        inside = {i for a, b, _ in record["ents"] for i in range(a, b)}
        plain |= {word for i, word in enumerate(record["words"]) if i not in inside}
    assert {"PER", "LOC", "ORG"} <= types["Jordan"]
    assert {"LOC", "ORG"} <= types["Reading"]
    assert {"May", "Orange", "Brown", "Nice", "Bath", "Mobile"} <= plain & set(types)


def test_capitals_do_not_give_names_away(corpus):
    records = corpus["train"]
    names = [name for record in records for name, _ in entities(record)]
    assert any(name.islower() for name in names)
    assert any(record["tree"].isupper() for record in records)
    assert any(" ".join(record["words"]).islower() and record["ents"] for record in records)


def test_each_split_has_names_of_its_own(corpus):
    words = {
        split: {word.lower() for r in records for name, _ in entities(r) for word in name.split()}
        for split, records in corpus.items()
    }
    for split in ("dev", "test"):
        unseen = words[split] - words["train"]
        assert 0.15 < len(unseen) / len(words[split]) < 0.6
    own = [set(lexicon(0, split)["last"]) for split in SIZES]
    shared = set.intersection(*own)
    assert len(shared) > 10
    assert all((own[i] & own[j]) == shared for i, j in ((0, 1), (0, 2), (1, 2)))


def test_a_model_of_either_kind_has_a_bound(corpus):
    """Names in S.either have a random type: no context tells the three apart."""
    seen: dict[str, set[str]] = {}
    for record in corpus["train"]:
        words = record["words"]
        if record["ents"] and words[-3:-2] in (["chose"], ["picked"], ["preferred"]):
            start, end, label = record["ents"][-1]
            if (start, end) == (len(words) - 2, len(words) - 1):
                seen.setdefault(words[start], set()).add(label)
    assert sum(len(labels) > 1 for labels in seen.values()) >= 3


def test_every_symbol_and_word_list_of_the_grammar_is_used():
    lines = [x.split() for x in PRODUCTIONS.splitlines() if x and not x.startswith("#")]
    left = {line[0] for line in lines}
    right = [symbol for line in lines for symbol in line[3:] if "/" not in symbol]
    nodes = {s.partition("=")[0] for s in right if ":" not in s}
    assert nodes == left - {"_start"}
    assert {s.partition(":")[2] for s in right if ":" in s} == set(WORDS)
