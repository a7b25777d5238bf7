"""The tables on the page of this experiment."""

from statistics import mean, median
from typing import Any

from thinc.api import Config

from benchmarks.documents.train import CERTAIN
from benchmarks.record import FOLDER, read_record
from benchmarks.tables import (
    DECODERS,
    Records,
    best_dev,
    best_score,
    decoders,
    file_link,
    gap,
    percent,
    spread,
    table,
    test_f,
)
from spacy_psa.scoring.statistics import seed_p_value

SYSTEMS = {
    "best": "`best.cfg`",
    "no_memory_dropout": "`best.cfg` without memory dropout",
    **{name: f"`best.cfg`, `max_uncertainty` of {most}" for name, most in CERTAIN.items()},
    "label_smoothing": "`best.cfg` with label smoothing of 1%",
    "intnet": "`best.cfg` with IntNet and `mbr`",
    "memory_between": "`memory_between.cfg`",
    "context": "`context.cfg`",
    "memory": "`memory.cfg`",
    "passes_24": "`memory.cfg`, 24 passes, memory of content words",
    "bfloat16": "`memory.cfg` in bfloat16",
    "sentences": "`memory.cfg` in bfloat16, without its memory",
    "content_words": "`memory.cfg`, rate of 0.002, memory of content words",
}


ONTONOTES = {
    "ontonotes-no_memory_dropout": "`best.cfg` without memory dropout",
    "ontonotes-short_documents": "`best.cfg`, documents cut at 250 tokens",
    "ontonotes-smoothed": "`best.cfg` without memory dropout, label smoothing, `mbr`",
    "ontonotes-bfloat16": "`memory.cfg` in bfloat16",
}


def seeds_table(records: Records) -> str:
    return _by_seed(records, SYSTEMS)


def ontonotes_table(records: Records) -> str:
    return _by_seed(records, ONTONOTES)


def _by_seed(records: Records, systems: dict[str, str]) -> str:
    body = []
    for system, said in systems.items():
        body += [
            [said, str(record["seed"]), best_dev(record), percent(test_f(record)), file_link(name)]
            for name, record in _trained(records, system)
        ]
        if len(_dev(records, system)) > 1:
            means = spread(_dev(records, system)), spread(_test(records, system))
            body.append([said, "mean ± deviation", *means, ""])
    header = ["config", "seed", "dev F1 (best epoch of)", "test F1", "record"]
    return table(header, body)


def _trained(records: Records, system: str) -> list[tuple[str, Any]]:
    return [(name, records[name]) for name in sorted(records) if name.startswith(f"{system}-")]


def _dev(records: Records, system: str) -> list[float]:
    return [best_score(record) for _, record in _trained(records, system)]


def _test(records: Records, system: str) -> list[float]:
    return [test_f(record) for _, record in _trained(records, system)]


def memory_speed(speed: dict[str, Any]) -> float:
    """The words a second with the memory, as a share of those without."""
    return median(speed["results"]["memory"]) / median(speed["results"]["sentences"])


def gained_on_sentences(records: Records, part: str) -> float:
    """The points of F1 that memory dropout brings on single sentences, in the mean."""
    having, lacking = (
        mean(row[part]["sentences"] for row in _read_both_ways(records, system))
        for system in ("best", "no_memory_dropout")
    )
    return 100 * (having - lacking)


def _read_both_ways(
    records: Records, system: str, name: str = "single_sentences"
) -> list[dict[str, dict[str, float]]]:
    """The F1 of each seed of a system, by part of the corpus and by documents or sentences."""
    models = records[name]["results"]["models"]
    return [row for model, row in models.items() if model.startswith(f"{system}-")]


def on_ontonotes(records: Records, part: str) -> dict[str, list[float]]:
    """The F1 of each seed on OntoNotes, on whole documents and on each sentence by itself."""
    rows = _read_both_ways(records, "ontonotes-no_memory_dropout", "single_sentences-ontonotes")
    return {way: [row[part][way] for row in rows] for way in ("documents", "sentences")}


def words_a_step(records: Records, name: str) -> float:
    """The words of a step in the mean, in a training that is evaluated after each pass."""
    corpus = Config().from_disk(FOLDER.parent / "configs" / "corpora" / "ontonotes.cfg")
    training = records[name]["config"]["training"]
    return float(corpus["corpus"]["words"] / training["eval_frequency"])


def single_sentences(records: Records) -> str:
    """The F1 of models on whole documents and on each sentence by itself."""
    columns = [(part, way) for part in ("dev", "test") for way in ("documents", "sentences")]
    body = []
    for system in ("best", "no_memory_dropout"):
        rows = _read_both_ways(records, system)
        f1 = [spread([row[part][way] for row in rows]) for part, way in columns]
        body.append([SYSTEMS[system], str(len(rows)), *f1])
    return table(["config", "seeds", *(f"{part} F1, {way}" for part, way in columns)], body)


def by_decoder(records: Records, name: str = "best") -> list[dict[str, Any]]:
    """The three models of a record of decoders with each of them, and the three joined."""
    models: list[dict[str, Any]] = records[f"decoders-{name}"]["results"]["models"]
    return models


def decoded(records: Records, decoder: str, part: str, name: str = "best") -> list[float]:
    """The F1 of the three models with a decoder."""
    return [model[decoder][part] for model in by_decoder(records, name)[:-1]]


def mbr_speed(records: Records) -> float:
    """How many times as many words a second `mbr` annotates as `viterbi`."""
    (model,) = records["decoders-speed"]["results"]["models"]
    return median(model["rates"]["mbr"]) / median(model["rates"]["viterbi"])


def decoders_table(records: Records) -> str:
    return decoders(by_decoder(records)[:-1])


def ontonotes_decoders(records: Records) -> str:
    return decoders(by_decoder(records, "ontonotes")[:-1])


TABLES = {
    "seeds": seeds_table,
    "decoders": decoders_table,
    "single_sentences": single_sentences,
    "ontonotes": ontonotes_table,
    "ontonotes_decoders": ontonotes_decoders,
}


def headline(records: Records) -> str:
    return f"test F1 {spread(_test(records, 'best'))}"


def ontonotes_claims(records: Records) -> list[str]:
    of_psa = [part(records, "ontonotes-no_memory_dropout") for part in (_dev, _test)]
    of_ontonotes = {
        part: decoded(records, "calibrated", part, "ontonotes") for part in ("dev", "test")
    }
    *ontonotes, joined_ontonotes = by_decoder(records, "ontonotes")
    for decoder in DECODERS:
        assert min(ontonotes, key=lambda row: row[decoder]["test"]) is ontonotes[2]
    apart, apart_test = (on_ontonotes(records, part) for part in ("dev", "test"))
    lost = {
        part: [100 * (a - b) for a, b in zip(f1["documents"], f1["sentences"], strict=True)]
        for part, f1 in (("dev", apart), ("test", apart_test))
    }
    assert all(min(of) == of[2] for of in lost.values())
    (conll,) = _read_both_ways(records, "no_memory_dropout")
    for part, of in lost.items():
        assert max(of) < 100 * (conll[part]["documents"] - conll[part]["sentences"])
    third = ontonotes[2]["viterbi"]["test"], _test(records, "ontonotes-no_memory_dropout")[2]
    assert third[1] - third[0] > 0.005
    (short,) = records["decoders-short_documents"]["results"]["models"]
    assert short["calibrated"]["test"] < max(of_ontonotes["test"])
    (cut,) = _read_both_ways(records, "ontonotes-short_documents", "single_sentences-ontonotes")
    assert all(abs(f1["documents"] - f1["sentences"]) < 0.001 for f1 in cut.values())
    words, words_before = (
        words_a_step(records, f"ontonotes-{name}-1")
        for name in ("short_documents", "no_memory_dropout")
    )
    smoothed, smoothed_test = (part(records, "ontonotes-smoothed") for part in (_dev, _test))
    (second,) = records["decoders-smoothed"]["results"]["models"]
    assert percent(second["calibrated"]["test"]) == percent(second["mbr"]["test"])
    temperature = mean(model["temperature"] for model in ontonotes)
    plan = read_record(FOLDER / "recipes" / "results" / "train_dev_ontonotes.json")
    with_dev = [scores["test"] for scores in plan["results"]["runs"]["best"].values()]
    p_values = [
        seed_p_value(own, decoded(records, "mbr", part, "ontonotes"))
        for own, part in ((smoothed, "dev"), (smoothed_test, "test"))
    ]
    return [
        f"seeds: p = {p_values[0]:.1f} for dev F1 and {p_values[1]:.1f} for test F1",
        f"dropout has a dev F1 of {percent(mean(smoothed))} and a test F1 of "
        f"{percent(mean(smoothed_test))} in the mean of {len(smoothed_test)} seeds",
        f"a temperature of {second['temperature']:.2f}, those three without label smoothing one of "
        f"{temperature:.2f} in the mean",
        f"the test F1 of seed 2 stays at {percent(second['calibrated']['test'])}",
        f"makes {words:.0f} words a step in place of {words_before:.0f}",
        f"`best.cfg` has a dev F1 of {percent(short['viterbi']['dev'])} and a test F1 of "
        f"{percent(short['viterbi']['test'])}, with one seed",
        f"calibrated, it has {percent(short['calibrated']['dev'])} and "
        f"{percent(short['calibrated']['test'])}",
        f"a dev F1 of {percent(cut['dev']['sentences'])} and a test F1 of "
        f"{percent(cut['test']['sentences'])}, as on documents but for noise",
        f"a dev F1 of {percent(mean(of_ontonotes['dev']))} and a test F1 of "
        f"{percent(mean(of_ontonotes['test']))} with `mbr`, calibrated",
        f"single sentences, the three have a dev F1 of {percent(mean(apart['sentences']))} and a "
        f"test F1 of {percent(mean(apart_test['sentences']))} in the mean, "
        f"{gap(mean(apart['documents']), mean(apart['sentences']), 1)} and "
        f"{gap(mean(apart_test['documents']), mean(apart_test['sentences']), 1)} points less than "
        "on documents",
        f"without its memory: {lost['dev'][2]:.2f} points of dev F1 and {lost['test'][2]:.2f} of "
        "test F1",
        f"the joined model has {percent(joined_ontonotes['viterbi']['dev'])} and "
        f"{percent(joined_ontonotes['viterbi']['test'])}",
        f"{percent(third[0])} with `viterbi`, where the former training of this seed had "
        f"{percent(third[1])}",
        f"joined and calibrated, have a dev F1 of {percent(joined_ontonotes['calibrated']['dev'])} "
        f"and a test F1 of {percent(joined_ontonotes['calibrated']['test'])}",
        f"{spread(of_ontonotes['test'])} with `mbr`, calibrated. Joined, the three have "
        f"{percent(joined_ontonotes['calibrated']['test'])}. With label smoothing and `mbr`, "
        f"{len(smoothed_test)} seeds have {spread(smoothed_test)} in the mean. "
        f"With the development data as training data, too, {len(with_dev)} seeds have "
        f"{percent(mean(with_dev))} in the mean",
        f"a dev F1 of {percent(mean(of_psa[0]))} and a test F1 of {percent(mean(of_psa[1]))} in "
        f"the mean of {len(of_psa[1])} seeds",
        f"88.3 on OntoNotes from the training data alone: {spread(of_psa[1])} in the mean of "
        f"{len(of_psa[1])} seeds with `viterbi`",
    ]


def uncertainty_claims(records: Records) -> list[str]:
    bounded = [[*_dev(records, name), *_test(records, name)] for name in CERTAIN]
    (half, half_test), (less, less_test) = bounded
    dev, test = (part(records, "best") for part in (_dev, _test))
    assert max(half, less) < min(dev)
    return [
        f"With a bound of 0.5, `best.cfg` has a dev F1 of {percent(half)} and a test F1 of "
        f"{percent(half_test)}; with 0.3, it has {percent(less)} and {percent(less_test)}. Without "
        f"a bound, it has {percent(mean(dev))} and {percent(mean(test))} in the mean",
    ]


def claims(records: Records) -> list[str]:
    scores, memory = _test(records, "best"), _test(records, "memory")
    for_documents = _test(records, "no_memory_dropout")
    joined = records["joined-content_words"]["results"]
    order = "above" if min(scores + for_documents) > max(memory) else "not above"
    p_value = seed_p_value(scores + for_documents, memory)
    of_best, of_documents = (
        records[f"joined-{name}"]["results"] for name in ("best", "no_memory_dropout")
    )
    former, between = records["ensemble"]["results"], records["joined-memory_between"]["results"]
    distilled = records["distilled-1"]
    without_dev, without_test = (part(records, "sentences") for part in (_dev, _test))
    gained, gained_test = (gained_on_sentences(records, part) for part in ("dev", "test"))
    (intnet,) = records["decoders"]["results"]["models"]
    (smoothed,) = records["decoders-label_smoothing"]["results"]["models"]
    viterbi, calibrated = smoothed["viterbi"], smoothed["calibrated"]
    assert percent(mean(_dev(records, "label_smoothing"))) == percent(viterbi["dev"])
    for decoder in DECODERS:
        assert smoothed[decoder]["dev"] < min(decoded(records, decoder, "dev"))
    again = records["decoders-no_memory_dropout"]["results"]["models"]
    rise = {
        part: [mean(row[way][part] for row in again) for way in ("viterbi", "calibrated")]
        for part in ("dev", "test")
    }
    earlier = {percent(f1) for f1 in _dev(records, "no_memory_dropout")}
    for row in again:
        assert percent(row["viterbi"]["dev"]) not in earlier
        assert all(row["viterbi"][part] < row["calibrated"][part] for part in rise)
    of_mbr = by_decoder(records)[-1]["calibrated"]
    best = mean(decoded(records, "calibrated", "test"))
    for row in by_decoder(records)[:-1]:
        assert row["viterbi"]["test"] < row["mbr"]["test"] < row["calibrated"]["test"]
    return [
        *ontonotes_claims(records),
        *uncertainty_claims(records),
        f"one of them annotates {mbr_speed(records):.2f} × the words a second of `viterbi`",
        f"test F1 rises from {percent(mean(decoded(records, 'viterbi', 'test')))} to "
        f"{percent(best)} in the mean",
        f"dev F1 from {percent(mean(decoded(records, 'viterbi', 'dev')))} to "
        f"{percent(mean(decoded(records, 'calibrated', 'dev')))}",
        f"joined and calibrated likewise, have a dev F1 of {percent(of_mbr['dev'])} and a test F1 "
        f"of {percent(of_mbr['test'])}",
        f"with `mbr`, calibrated, the dev F1 rises from {percent(rise['dev'][0])} to "
        f"{percent(rise['dev'][1])}, and the test F1 from {percent(rise['test'][0])} to "
        f"{percent(rise['test'][1])} in the mean",
        f"`best.cfg` has {percent(best)} in the mean of 3 seeds, which is {percent(best, 1)} with "
        f"one digit. Without memory dropout, it has {percent(rise['test'][1])} in the mean of "
        f"{len(again)} seeds",
        f"test F1 of {percent(intnet['viterbi']['test'])} with `viterbi` and of "
        f"{percent(intnet['mbr']['test'])} with `mbr`",
        f"the dev F1 is {percent(intnet['viterbi']['dev'])} without `mbr`, and "
        f"{percent(mean(_dev(records, 'best')))} without IntNet in the mean",
        f"of 1% brings nothing either, with one seed: the dev F1 is {percent(viterbi['dev'])}, and "
        f"{percent(calibrated['dev'])} with `mbr`, calibrated, where `best.cfg` has "
        f"{percent(mean(_dev(records, 'best')))} and "
        f"{percent(mean(decoded(records, 'calibrated', 'dev')))} in the mean. The test F1 is "
        f"{percent(viterbi['test'])} and {percent(calibrated['test'])}",
        f"memory dropout brings {gained:.1f} points of dev F1 and {gained_test:.1f} of test F1",
        f"{of_best['models']} models of `best.cfg` reach a dev F1 of "
        f"{percent(of_best['dev'])} and a test F1 of {percent(of_best['test'])}",
        f"The {joined['models']} models of content words reach {percent(joined['dev'])} and "
        f"{percent(joined['test'])}",
        f"{len(former['seeds'])} models of `memory.cfg` reach {percent(former['dev'])} and "
        f"{percent(former['test'])}",
        f"`memory_between.cfg` reach {percent(between['dev'])} and {percent(between['test'])}",
        f"has a dev F1 of {percent(best_score(distilled))} and a test F1 of "
        f"{percent(test_f(distilled))}",
        f"Without its memory, `memory.cfg` has a dev F1 of {percent(mean(without_dev))} and a test "
        f"F1 of {percent(mean(without_test))} in the mean",
        f"dev F1 falls to {percent(mean(_dev(records, 'content_words')))} in the mean",
        f"annotates {memory_speed(records['speed-content_words']):.2f} × the words a second with a "
        "memory of content words",
        f"test F1 of `best.cfg` is {percent(mean(scores))} in the mean of {len(scores)} seeds, "
        f"that of `memory_between.cfg` {percent(mean(_test(records, 'memory_between')))}, and that "
        f"of `memory.cfg` {percent(mean(memory))}",
        f"The dev F1 of `best.cfg`, {percent(mean(_dev(records, 'best')))} in the mean, is that of "
        f"`memory.cfg`, {percent(mean(_dev(records, 'memory')))}, but for noise",
        f"each seed of `best.cfg`, with memory dropout or without, is {order} each of `memory.cfg`",
        f"{gap(of_documents['test'], 0.9222)} points above the 92.22 that Wang",
        f"permutation over the seeds of test F1: p = {p_value:.2f}",
        f"Without memory dropout, it is {percent(mean(for_documents))} in the mean of "
        f"{len(for_documents)} seeds, and dev F1 "
        f"{percent(mean(_dev(records, 'no_memory_dropout')))}",
        f"{of_documents['models']} models without memory dropout (seeds 2 to 4) reach "
        f"{percent(of_documents['dev'])} and {percent(of_documents['test'])}",
        f"dev F1 of {percent(best_score(records['context-1']))} and a test F1 of "
        f"{percent(test_f(records['context-1']))}, below",
        f"dev F1 of `memory_between.cfg` is {percent(mean(_dev(records, 'memory_between')))}",
        f"a dev F1 of {percent(mean(_dev(records, 'passes_24')))} and a test F1 of "
        f"{percent(mean(_test(records, 'passes_24')))} in the mean of "
        f"{len(_test(records, 'passes_24'))} seeds",
        f"`best.cfg` annotates {memory_speed(records['speed-best']):.2f} × the words a second",
        f"`memory_between.cfg` annotates {memory_speed(records['speed-memory_between']):.2f} × the "
        "words a second",
        f"`memory.cfg` annotates {memory_speed(records['speed']):.2f} × the words a second",
        f"and {memory_speed(records['speed-bfloat16']):.2f} × in bfloat16",
        f"in bfloat16, dev F1 is {percent(mean(_dev(records, 'bfloat16')))} and test F1 "
        f"{percent(mean(_test(records, 'bfloat16')))} in the mean",
    ]
