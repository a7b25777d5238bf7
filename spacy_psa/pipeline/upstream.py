"""Examples as a component of a pipeline sees them: annotated by the components before it."""

from collections.abc import Collection, Iterable

from spacy.language import Language
from spacy.training import Example


def with_upstream(
    nlp: Language, name: str, examples: Iterable[Example], without: Collection[str] = ()
) -> list[Example]:
    """Annotate copies of examples by the components before one.

    Args:
        nlp: the pipeline.
        name: the name of the component.
        examples: the examples; they stay as they are.
        without: names of components that are left out.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> _ = nlp.add_pipe("sentencizer"), nlp.add_pipe("crf_ner")
        >>> doc = nlp.make_doc("Go. Stop.")
        >>> (example,) = with_upstream(nlp, "crf_ner", [Example(doc, doc)])
        >>> len(list(example.predicted.sents)), doc.has_annotation("SENT_START")
        (2, False)
    """
    examples = list(examples)
    before = nlp.pipe_names[: nlp.pipe_names.index(name)]
    with nlp.select_pipes(enable=[one for one in before if one not in without]):
        docs = list(nlp.pipe(example.predicted.copy() for example in examples))
    return [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]
