"""The units of which scores of a pipeline are made, their counts by sentence and by length."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from spacy.language import Language
from spacy.training import Example

from spacy_psa.analysis.figures import Figure, colours, new_figure
from spacy_psa.errors import InputError
from spacy_psa.pipeline.chain.chunker import score_chunks
from spacy_psa.scoring.evalb_params import Params
from spacy_psa.scoring.parseval_scorer import score_constituents, sentence_scores
from spacy_psa.scoring.sentence_counts import Bin, Count, entity_counts, span_counts, tag_counts
from spacy_psa.sentences import sentence_bounds

Counter = Callable[[Iterable[Example]], list[Count]]
OF_SCORE: dict[str, Counter] = {"ents_f": entity_counts, "tag_acc": tag_counts}


def counted_scores(nlp: Language) -> dict[str, Counter]:
    """The scores of a pipeline that are made of counts, and the functions that count their units.

    These are `ents_f` and `tag_acc` of all components, and the F1 of `crf_chunker` and
    `constituency_parser`. That of the parser has two names, as in its scores.
    """
    counters: dict[str, Counter] = {}
    for name, pipe in nlp.pipeline:
        weights = nlp.get_pipe_meta(name).default_score_weights or {}
        scorer = getattr(pipe, "scorer", None)
        counters |= {score: count for score, count in OF_SCORE.items() if score in weights}
        if isinstance(scorer, partial) and scorer.func is score_chunks:
            counters["chunks_f"] = partial(span_counts, key=_key(pipe, scorer))
        if isinstance(scorer, partial) and scorer.func is score_constituents:
            key = _key(pipe, scorer)
            brackets = partial(_bracket_counts, key=key, params=scorer.keywords["params"])
            counters |= {"tree_f": brackets, f"{key}_f": brackets}
    return counters


def counts_by_length(
    nlp: Language, examples: Iterable[Example], score: str | None = None
) -> tuple[str, list[tuple[int, Count]]]:
    """Count units in each sentence, with the number of its tokens.

    Args:
        nlp: the pipeline.
        examples: its predictions with their references.
        score: the score; None for the first of `counted_scores`.

    Returns:
        The score, and (tokens, counts) of each annotated sentence.

    Raises:
        InputError: if the pipeline has no such score.
    """
    known = counted_scores(nlp)
    if not known or (score is not None and score not in known):
        names = ", ".join(known) or "none"
        raise InputError(f"the pipeline has no {score or 'score'} that is counted; it has {names}")
    chosen = score or next(iter(known))
    counted = []
    for example in examples:
        counts = known[chosen]([example])
        if counts:
            lengths = [end - start for start, end in sentence_bounds(example.reference)]
            counted += list(zip(lengths, counts, strict=True))
    return chosen, counted


def draw_lengths(models: Mapping[str, Sequence[Bin]], score: str) -> Figure:
    """Draw the score of each model by length, over the number of sentences (Wei2020 Fig. 4)."""
    figure = new_figure(6.5, 4.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    lines = []
    for bins, colour in zip(models.values(), colours(len(models))):
        filled = [(place, each) for place, each in enumerate(bins) if each.units.gold]
        places = [place for place, _ in filled]
        values = [100 * each.units.f1 for _, each in filled]
        lines += above.plot(places, values, "o-", color=colour)
    first = next(iter(models.values()))
    names = [each.name for each in first]
    below.bar(range(len(first)), [each.sentences for each in first], color="#bbbbbb")
    below.set_xticks(range(len(first)), names)
    below.set(xlabel="tokens of a sentence", ylabel="sentences")
    above.set(ylabel=f"{score}, %")
    above.grid(alpha=0.3)
    # With handles, since of its own matplotlib leaves out names that begin with "_".
    above.legend(lines, models)
    return figure


def _key(pipe: Any, scorer: partial) -> str:
    """Find the span group that a scorer reads."""
    given = scorer.keywords["spans_key"]
    store = getattr(pipe, "store", pipe)  # a parser is its own
    key: str = store.spans_key if given is None else given
    return key


def _bracket_counts(examples: Iterable[Example], key: str, params: Params) -> list[Count]:
    scores = sentence_scores(examples, spans_key=key, params=params)
    return [Count(each.matched, each.test.total(), each.gold.total()) for each in scores]
