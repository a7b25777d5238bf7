"""One measured pipeline as a JSON object: the format of reports and of benchmarks/results.

The keys of format 1, which do not change:

- `format`: 1
- `date`: when the pipeline was measured, ISO 8601, UTC; `command`: of the process that did it
- `commit`: the commit of the git repository in the current folder, or null; `modified`: whether
  tracked files differed from it, or null
- `data`: {path: MD5}
- `machine`, `versions`: see `provenance`
- `model`: `path`, `lang`, `name`, `version`, `pipeline` (component names)
- `test`: `path`, `documents`, `words`
- `scores`: the scores of spaCy's scorers, by their names (`ents_p`, `ents_r`, `ents_f`,
  `ents_per_type` {label: {p, r, f}}, `tag_acc`, `spans_<key>_f`, …), as fractions of 1; scores
  that do not apply are left out
- `partial_credit`: {`ents`: scores in four schemes, `<span group>`: …}, of groups that the pipeline
  predicts and whose gold spans do not overlap; see `spacy_psa.scoring.partial_credit`
- `support`: {`ents`: {label: number of gold entities}, `<span group>`: {…}}
- `genres`: {genre: {`words`, `scores`}}, from `doc.user_data["genre"]` of the gold documents; empty
  if they name none
- `speed`: `words_per_second`, `words`, `seconds`, `batch_size`, `threads` of torch, `device`
  ("cpu" or "gpu"); measured in one pass over the test words, without tokenization and without
  the first pass, which is slower
- `seed`: the seed of the training, or null
- `dev`: an object for each evaluation during training: `epoch`, `step`, `score` and `scores` as
  fractions, and `losses`; empty without a training log
- `best`: the element of `dev` whose weights were saved, or null
- `config`: the pipeline's training config, nested
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy_psa.errors import InputError
from spacy_psa.scoring.provenance import provenance

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example


def measure(
    nlp: "Language", model: str, test: Path, data: Sequence[Path] = (), log: Path | None = None
) -> dict[str, Any]:
    """Evaluate a pipeline on a test set and collect the provenance; the module lists the keys.

    `model` is the path that `nlp` was loaded from, `test` a `.spacy` file or a folder of them, and
    `data` has further files or folders to compute checksums of. The log has the JSON lines that
    `spacy.ConsoleLogger.v3` wrote to its `output_file`.
    """
    # First the steps that fail at once.
    origin = provenance(dict.fromkeys([test, *data]))
    dev = read_log(log) if log else []
    examples = read_examples(nlp, test)
    scores = nlp.evaluate(examples)
    speed, docs = measure_speed(nlp, examples)
    config = nlp.config.interpolate()
    return {
        "format": 1,
        **origin,
        "model": {
            "path": model,
            **{key: nlp.meta[key] for key in ("lang", "name", "version", "pipeline")},
        },
        "test": {
            "path": test.as_posix(),
            "documents": len(examples),
            "words": sum(len(example.predicted) for example in examples),
        },
        "scores": _without_repeats(scores),
        "partial_credit": _partial_credit(examples, docs),
        "support": support(examples),
        "genres": score_genres(nlp, examples, docs),
        "speed": speed,
        "seed": config.get("training", {}).get("seed"),
        "dev": dev,
        "best": best(dev),
        "config": json.loads(json.dumps(config, default=str)),
    }


def score_genres(
    nlp: "Language", examples: "Iterable[Example]", docs: "Iterable[Doc]"
) -> dict[str, dict[str, Any]]:
    """Score annotated docs by genre; those whose gold documents name none are left out."""
    from spacy.scorer import Scorer
    from spacy.training import Example

    genres: dict[str, list[Example]] = {}
    for doc, example in zip(docs, examples):
        if (genre := example.reference.user_data.get("genre")) is not None:
            genres.setdefault(str(genre), []).append(Example(doc, example.reference))
    return {
        genre: {
            "words": sum(len(example.reference) for example in group),
            "scores": _without_repeats(Scorer(nlp).score(group)),
        }
        for genre, group in sorted(genres.items())
    }


def _without_repeats(scores: dict[str, Any]) -> dict[str, Any]:
    """Leave out speed, what is not scored, and the second name that scores of trees have."""
    from spacy_psa.scoring.parseval_scorer import USUAL_KEY

    usual = f"spans_{USUAL_KEY}_"
    twice = "tree_f" in scores and scores.get(f"{usual}f") == scores["tree_f"]
    return {
        key: value
        for key, value in scores.items()
        if value is not None and key != "speed" and not (twice and key.startswith(usual))
    }


def _partial_credit(examples: "Sequence[Example]", docs: "Sequence[Doc]") -> dict[str, Any]:
    from spacy.training import Example

    from spacy_psa.scoring.partial_credit import partial_credit
    from spacy_psa.scoring.sentence_counts import entity_units, span_units

    examples = [Example(doc, eg.reference) for doc, eg in zip(docs, examples, strict=True)]
    predicted = {key for doc in docs for key in doc.spans}
    entities = any(doc.has_annotation("ENT_IOB") for doc in docs)
    groups = {"ents": list(entity_units(examples))} if entities else {}
    groups |= {key: list(span_units(examples, key)) for key in sorted(predicted)}
    return {
        group: partial_credit((gold, given) for _, gold, given in units)
        for group, units in groups.items()
        if any(gold for _, gold, _ in units) and not any(_overlap(gold) for _, gold, _ in units)
    }


def _overlap(spans: "Iterable[tuple[int, int, str]]") -> bool:
    ordered = sorted(spans)
    return any(before[1] > after[0] for before, after in pairwise(ordered))


def read_examples(nlp: "Language", path: Path) -> "list[Example]":
    """Read gold documents as examples, as the pipeline's training read its development data.

    A pipeline whose config has no such reader reads them as `spacy evaluate` does: without known
    spaces, prediction starts from the gold words.
    """
    from spacy.util import registry

    try:
        block = registry.resolve({"reader": _dev_reader(nlp, path)})
        examples = list(block["reader"](nlp))
    except InputError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from error
    except Exception as error:  # zlib, msgpack and numpy raise different errors
        raise InputError(
            f"{path}: is not a .spacy file, or is broken ({error}); make it again"
        ) from error
    if not examples:
        raise InputError(f"{path}: no documents in it; use a .spacy file")
    return examples


def _dev_reader(nlp: "Language", path: Path) -> dict[str, Any]:
    """Return the config of a reader of the whole file, as the one of the development data."""
    dev = nlp.config.interpolate().get("corpora", {}).get("dev", {})
    if "@readers" not in dev or "path" not in dev:
        dev = {"@readers": "spacy.Corpus.v1"}
    return {**dev, "path": str(path), **({"limit": 0} if "limit" in dev else {})}


def support(examples: "Iterable[Example]") -> dict[str, dict[str, int]]:
    """Count the gold entities and gold spans by group and label, as {"ents": {"PER": 1}}."""
    counts: dict[str, Counter[str]] = {}
    for example in examples:
        groups = {"ents": example.reference.ents, **example.reference.spans}
        for group, spans in groups.items():
            counts.setdefault(group, Counter()).update(span.label_ for span in spans)
    return {group: dict(sorted(labels.items())) for group, labels in counts.items() if labels}


def measure_speed(
    nlp: "Language", examples: "Sequence[Example]"
) -> "tuple[dict[str, Any], list[Doc]]":
    """Time one pass over the tokenized documents: the keys of `speed`, and the predictions."""
    import torch
    from thinc.api import NumpyOps, get_current_ops

    docs = [example.predicted.copy() for example in examples]
    started = time.perf_counter()
    docs = list(nlp.pipe(docs))
    seconds = time.perf_counter() - started
    words = sum(len(doc) for doc in docs)
    speed = {
        "words_per_second": round(words / seconds, 1),
        "words": words,
        "seconds": round(seconds, 3),
        "batch_size": nlp.batch_size,
        "threads": torch.get_num_threads(),
        "device": "cpu" if isinstance(get_current_ops(), NumpyOps) else "gpu",
    }
    return speed, docs


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read the evaluations during training."""
    try:
        lines = path.read_text(encoding="utf8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: there is no training log to read ({error}); check the path"
        ) from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            # The logger writes `scores` in percent and `score` as a fraction.
            scores = {k: v if k == "speed" else v / 100 for k, v in row["scores"].items()}
            rows.append(
                {
                    "epoch": int(row["epoch"]),
                    "step": int(row["step"]),
                    "score": float(row["score"]),
                    "scores": scores,
                    "losses": dict(row["losses"]),
                }
            )
        except (ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path}:{number}: is not a line of spacy.ConsoleLogger.v3 ({error!r}); "
                "use a log of this logger"
            ) from error
    return rows


def best(dev: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the evaluation at which model-best was saved; None if there are none.

    spaCy saves again on a tie, so it is the last of equals.
    """
    return max(reversed(dev), key=lambda row: row["score"], default=None)
