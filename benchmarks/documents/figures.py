"""Functions for the figures on the page of this experiment."""

from benchmarks.lookup import Lookup, Values

_records = Lookup("documents")


def decoded(decoder: str, part: str, corpus: str = "best") -> Values:
    """The F1 of three models with a decoder."""
    return 100 * _records.get(f"decoders-{corpus}:models:*:{decoder}:{part}")[:3]


def joined(decoder: str, part: str, corpus: str = "best") -> Values:
    """The F1 of the three joined."""
    return 100 * _records.get(f"decoders-{corpus}:models:3:{decoder}:{part}")


def mbr_speed() -> float:
    """How many times as many words a second `mbr` annotates as `viterbi`."""
    return _records.ratio("decoders-speed:models:0:rates", "mbr", "viterbi")


def memory_speed(record: str) -> float:
    """The words a second with the memory, as a share of those without."""
    return _records.ratio(record, "memory", "sentences")


def on(unit: str, models: str, part: str, corpus: str = "") -> Values:
    """The F1 of models on whole documents or on single sentences (`unit`)."""
    return 100 * _records.get(f"single_sentences{corpus}:models:{models}:{part}:{unit}")


def by_memory_dropout(part: str) -> float:
    """The points of F1 that memory dropout brings on single sentences, in the mean."""
    models = on("sentences", "best-*", part), on("sentences", "no_memory_dropout-*", part)
    return float(models[0].mean() - models[1].mean())


def lost_on_ontonotes(part: str) -> Values:
    """The points of F1 that each seed loses on single sentences of OntoNotes."""
    documents, sentences = (
        on(unit, "ontonotes-no_memory_dropout-*", part, "-ontonotes")
        for unit in ("documents", "sentences")
    )
    return documents - sentences


def words_a_step(record: str) -> float:
    """The words of a step on OntoNotes, in a training that is evaluated after each pass."""
    return float(1_087_332 / _records.get(f"{record}:config:training:eval_frequency")[0])
