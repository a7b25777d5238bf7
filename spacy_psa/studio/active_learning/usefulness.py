"""How much a model has to learn from a text: entropy, or the errors that it expects to make."""

from typing import Any

import numpy

from spacy_psa.pipeline.chain.doc_analyses import DocAnalyses, SentenceAnalyses
from spacy_psa.studio.active_learning.order import Order


def usefulness(analyses: DocAnalyses, order: Order) -> float:
    """Compute how useful it is to annotate a text, exactly, given what is known of it.

    - entropy: the entropy over the analyses of the text, in nats, by its number of tokens.
    - errors: the expected number of wrong and missed spans in the best analysis. With P(s) the
      probability of a span, it is the sum of 1 - P(s) over the spans of the best analysis, and the
      sum of P(s) over all others.

    Args:
        analyses: the analyses of the text by a component of spans.
        order: what counts; not random.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> ner = nlp.add_pipe(
        ...     "crf_ner", config={"model": {"tok2vec": {"encode": {"hidden": 20}}}}
        ... )
        >>> ner.add_label("PER")
        1
        >>> optimizer = nlp.initialize()
        >>> analyses = ner.analyses(nlp.make_doc("Ada met Bob"))
        >>> usefulness(analyses, Order.errors) > 0
        True
        >>> known = analyses.given(allow=dict.fromkeys(range(3), "O"))
        >>> abs(round(usefulness(known, Order.errors), 9))
        0.0
    """
    if order is Order.entropy:
        tokens = sum(len(sentence.marginals) for sentence in analyses.sentences)
        return analyses.entropy / max(1, tokens)
    return sum(
        _expected_errors(sentence, analyses.pipe, start)
        for sentence, start in zip(analyses.sentences, analyses.starts)
    )


def _expected_errors(sentence: SentenceAnalyses, pipe: Any, start: int) -> float:
    begins = numpy.union1d(pipe.scheme.columns("B"), pipe.scheme.columns("S"))
    expected = float(sentence.marginals[:, begins].sum())
    posterior = sentence.posterior(pipe.scheme)
    ((_, tags),) = sentence.kbest(1)
    found = [posterior(s - start, e - start, label) for s, e, label in pipe.named(tags, start)]
    return len(found) + expected - 2 * sum(found)
