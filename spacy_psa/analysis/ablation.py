"""What the parts of a self-attentive BiLSTM do (Li2019 section 5.4.1, Tables 3 and 4).

Its output H || C1 || … || Cm goes to a linear classifier, H Wc[:d_h] + Σ_i Ci Wc[…] + b:
with blocks of it zeroed, their terms fall out of the scores.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy
from spacy.pipeline import TrainablePipe
from spacy.training import Example
from thinc.util import to_numpy

from spacy_psa.errors import InputError
from spacy_psa.modules.self_attentive import SelfAttentiveBiLSTM
from spacy_psa.pipeline.chain.sequence_labeler import SequenceLabeler
from spacy_psa.pipeline.chain.span_tags import MISSING
from spacy_psa.scoring.token_recall import Recall, chunk_class, token_recall
from spacy_psa.sentences import sentence_bounds


def blocks(pipe: TrainablePipe) -> tuple[str, ...]:
    """What can be zeroed in a component: "H", "C1", …, "Cm".

    Errors: InputError where it holds no SelfAttentiveBiLSTM.v1 of its own.
    """
    return tuple(_module(pipe).blocks)


@contextmanager
def zeroed(pipe: TrainablePipe, names: Iterable[str]) -> Iterator[None]:
    """Within the context, replace blocks of the encoder's output with zeros.

    pipe: the component that holds the encoder, e.g. a `crf_ner` or a `tok2vec`.

    Errors: InputError for a name that is not among `blocks`, or where there are none.
    """
    module = _module(pipe)
    silent = frozenset(names)
    if unknown := sorted(silent - module.blocks.keys()):
        raise InputError(
            f"Component '{pipe.name}' has no block {', '.join(unknown)}: "
            f"take from {', '.join(module.blocks)}"
        )
    before, module.zeroed = module.zeroed, silent
    try:
        yield
    finally:
        module.zeroed = before


def setups(names: Sequence[str]) -> dict[str, frozenset[str]]:
    """The columns of Li2019 Table 3: what is zeroed for each, of the blocks `names`.

    "HC" is the whole model, "C" the attention alone; the others are one block alone.
    """
    every = frozenset(names)
    heads = {name: every - {name} for name in names if name != "H"}
    return {"HC": frozenset(), "H": every - {"H"}, "C": frozenset({"H"}), **heads}


def recalls(
    pipe: SequenceLabeler,
    examples: Iterable[Example],
    project: Callable[[str], str] = chunk_class,
) -> dict[str, dict[str, Recall]]:
    """Token recall by class under each of the `setups`: Li2019 Table 3, and with `type_class`
    Table 4 (`differences` gives their numbers).

    Under a softmax head each token gets its most probable tag, whatever its neighbours
    have, as in Li2019; under a CRF the best sequence is taken.
    """
    examples = [example for example in examples if len(example.predicted)]
    gold = [_gold(pipe, example) for example in examples]
    found = {}
    for name, silent in setups(blocks(pipe)).items():
        with zeroed(pipe, silent):
            found[name] = token_recall(gold, (_predict(pipe, e) for e in examples), project)
    return found


def _module(pipe: TrainablePipe) -> SelfAttentiveBiLSTM:
    for node in pipe.model.walk():
        for shim in node.shims:
            module = getattr(shim, "_model", None)
            if isinstance(module, SelfAttentiveBiLSTM):
                return module
    raise InputError(
        f"Component '{pipe.name}' has no trained SelfAttentiveBiLSTM.v1 of its own: "
        "give the component that holds the encoder, e.g. 'tok2vec'"
    )


def _gold(pipe: SequenceLabeler, example: Example) -> list[str | None]:
    tags = numpy.concatenate(pipe.gold_tags(example, sentence_bounds(example.predicted)))
    return [None if tag == MISSING else pipe.tags[tag] for tag in tags.tolist()]


def _predict(pipe: SequenceLabeler, example: Example) -> list[str]:
    doc = example.predicted
    scores = numpy.concatenate([to_numpy(array) for array in pipe.model.predict([doc])])
    if scores.shape[1] == len(pipe.tags):
        tags = scores.argmax(1).tolist()
    else:
        (parts,) = pipe.infer([doc], lambda chain: chain.argmax)
        tags = [tag for _, part in parts for tag in part.tolist()]
    return [pipe.tags[tag] for tag in tags]
