"""Head words of constituents and dependencies, which head rules find in the trees of a doc.

They need parts of speech (`token.tag_`), as the rules do.
"""

from collections.abc import Iterable
from typing import Literal

from spacy.tokens import Doc, Span, Token

from spacy_psa.corpora.head_rules import Choose, collins, find_head, find_heads, universal
from spacy_psa.corpora.trees import Parsed
from spacy_psa.errors import check_choice
from spacy_psa.pipeline.parser.constituents import KEY, NO_TAG, word_sentences
from spacy_psa.pipeline.parser.sentence_tree import SentenceTree, in_order, node_and_tree

Rules = Literal["collins", "universal"]
RULES: dict[str, Choose] = {"collins": collins, "universal": universal}


def head_token(span: Span, key: str = KEY, rules: Rules | None = None) -> Token | None:
    """Find the head word of a constituent.

    Args:
        span: a constituent, a sentence or a word.
        key: the span group with the constituents.
        rules: "collins" for the labels of the Penn Treebank, "universal" for others; see
            `spacy_psa.corpora.head_rules`. By default "collins" for English.

    Returns:
        The word; None if the span has only white space.

    Raises:
        NonConstituentException: if the span has several words that are not a constituent.
        ValueError: if the doc has no trees, or there are no such rules.

    Examples:
        >>> import spacy
        >>> doc = Doc(spacy.blank("en").vocab, ["The", "cat", "left"], tags=["DT", "NN", "VBD"])
        >>> nodes = [(0, 3, "S"), (0, 2, "NP"), (2, 3, "VP")]
        >>> doc.spans["constituents"] = [Span(doc, *node) for node in nodes]
        >>> head_token(doc[:2]), head_token(doc[:])
        (cat, left)
    """
    node, tree = node_and_tree(span, key)
    if tree is None:
        return None
    words, parsed = _parsed(node, tree.below(node))
    return words[find_head(parsed, _choose(span.doc, rules))]


def dependencies(doc: Doc, key: str = KEY, rules: Rules | None = None) -> list[Token]:
    """Find the word that each token of a doc depends on.

    Args:
        doc: the doc, with trees.
        key: the span group with the constituents.
        rules: see `head_token`.

    Returns:
        A token for each token. The head of a sentence, and white space, depend on themselves.

    Raises:
        ValueError: if the doc has no trees, or there are no such rules.

    Examples:
        >>> import spacy
        >>> doc = Doc(spacy.blank("en").vocab, ["The", "cat", "left"], tags=["DT", "NN", "VBD"])
        >>> nodes = [(0, 3, "S"), (0, 2, "NP"), (2, 3, "VP")]
        >>> doc.spans["constituents"] = [Span(doc, *node) for node in nodes]
        >>> dependencies(doc)
        [cat, left, left]
    """
    in_order(doc, key)
    choose = _choose(doc, rules)
    heads = list(doc)
    for sentence in word_sentences(doc):
        if len(sentence.words):
            around = doc[int(sentence.words[0]) : int(sentence.words[-1]) + 1]
            words, parsed = _parsed(around, SentenceTree.around(around, key).spans)
            for word, head in zip(words, find_heads(parsed, choose).words):
                heads[word.i] = words[head]
    return heads


def _choose(doc: Doc, rules: Rules | None) -> Choose:
    if rules is None:
        rules = "collins" if doc.lang_ == "en" else "universal"
    check_choice("rules", rules, Rules)
    return RULES[rules]


def _parsed(node: Span, constituents: Iterable[Span]) -> tuple[list[Token], Parsed]:
    """Return the words of a node, and its subtree over them, without white space."""
    words = [token for token in node if token.text.strip()]
    place = {token.i: i for i, token in enumerate(words)}
    spans = [(place[c.start], place[c.end - 1] + 1, c.label_) for c in constituents]
    return words, Parsed([w.text for w in words], [w.tag_ or NO_TAG for w in words], spans)
