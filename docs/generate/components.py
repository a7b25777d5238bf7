"""The page of the components: settings, annotation, attributes and scores."""

import inspect
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens.underscore import Underscore
from thinc.api import Config

from docs.generate.docstrings import arguments, is_google, path, summary
from docs.generate.markdown import NOTE, embedded, parameter_row, table, value
from docs.generate.registry import names
from spacy_psa.pipeline.chain.chunker import ChunkStore
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.chain.ner import EntityStore
from spacy_psa.pipeline.parser.extensions import register_extensions

GROUP = "spacy_factories"


class Entry(NamedTuple):
    """Facts about a component that are not in the code, in Markdown.

    Attributes:
        reads: the annotation that it learns from.
        writes: the annotation that it sets on a doc.
        evidence: the existing annotation that it keeps.
    """

    reads: str
    writes: str
    evidence: str


SCORES = '`doc.spans[NAME]` with `attrs["scores"]`, NAME the component\'s'
GROUPS = "`doc.spans[required_spans_key]` and `doc.spans[forbidden_spans_key]`"
ENTRIES = {
    "crf_ner": Entry(
        "`doc.ents` of the training data; the loss sums over tokens without annotation. "
        "`doc.spans[incorrect_spans_key]`: wrong spans.",
        f'`doc.ents`. With `confidence = true` or `decode = "mbr"`: {SCORES}. '
        "With `confidence = true`: `doc._.ner_uncertainty`. "
        'With `decode = "threshold"`: these spans instead of `doc.ents`.',
        f"Entities and blocked tokens, unless `overwrite = true`; {GROUPS}.",
    ),
    "crf_tagger": Entry(
        "`token.tag_` of the training data; the loss sums over tokens without a tag.",
        "`token.tag_`. With `confidence = true`: `token._.tag_confidence`.",
        f"Tags, if `overwrite = false`; {GROUPS}, for their tokens.",
    ),
    "crf_chunker": Entry(
        "`doc.spans[spans_key]` of the training data; docs without this key are skipped.",
        f'`doc.spans[spans_key]`. With `confidence = true` or `decode = "mbr"`: {SCORES}. '
        'With `decode = "threshold"`: these spans instead of the chunks.',
        f"The spans of `doc.spans[spans_key]`, unless `overwrite = true`; {GROUPS}.",
    ),
    "crf_spans": Entry(
        "`doc.spans[spans_key]` of the training data; docs without this key are skipped, and the "
        "loss sums over spans that touch `doc.spans[missing_spans_key]`. "
        "`doc.spans[incorrect_spans_key]`: wrong spans.",
        '`doc.spans[spans_key]`, with `attrs["scores"]` if `confidence = true` or `decode` is '
        '"mbr" or "threshold".',
        f"The spans of `doc.spans[spans_key]`, unless `overwrite = true`; {GROUPS}.",
    ),
    "constituency_parser": Entry(
        '`doc.spans["constituents"]` of the training data (see '
        "[`spacy-psa.TreeCorpus.v1`](training.md#treecorpus)); `token.tag_` for a tag head.",
        '`doc.spans["constituents"]`, in preorder. With `confidence = true`: their posteriors '
        'in `attrs["scores"]`. With a tag head: `token.tag_`.',
        "The constituents in `doc.spans[spans_key]` that were not predicted by a parser, unless "
        f"`overwrite = true`; {GROUPS}.",
    ),
}

# The meaning of each attribute, by the kind of object and its name.
ATTRIBUTES = {
    ("Span", "confidence"): "The probability of the span with its label, from the first group of "
    "`doc.spans` that has it with a score, or else None.",
    ("Doc", "confidence"): "The scores of each group of `doc.spans`, for `to_json` and "
    "`from_json`.",
    ("Doc", "ner_uncertainty"): "The entropy over the analyses of the doc, in nats.",
    ("Token", "tag_confidence"): "The probability of the token's tag.",
    ("Span", "labels"): "The labels over exactly these words, the outermost first.",
    ("Span", "parse_string"): "The subtree in brackets.",
    ("Span", "constituents"): "The nodes of the subtree in preorder, including words.",
    ("Span", "children"): "The child nodes, from left to right.",
    ("Span", "parent"): "The parent node; None for a sentence.",
    ("Span", "head_token"): "The head word, by head rules; None for white space.",
    ("Span", "constituent_confidence"): "The posterior of the constituent; None without one.",
    ("Doc", "parse_trees"): "An `nltk.Tree` for each sentence with words.",
    ("Doc", "noun_chunks"): "The base noun phrases, as a list of spans.",
}
TREE_ATTRIBUTES = ("labels", "parse_string", "constituents", "children", "parent")
ATTRIBUTES |= {
    ("Token", name): f"The same for a span of this token: {ATTRIBUTES['Span', name][0].lower()}"
    f"{ATTRIBUTES['Span', name][1:]}"
    for name in (*TREE_ATTRIBUTES, "constituent_confidence", "head_token")
}

SCORE_MEANINGS = {
    "ents_f": "F1 of entities: same offsets and same label",
    "ents_p": "their precision",
    "ents_r": "their recall",
    "ents_per_type": "the three by label",
    "tag_acc": "share of tokens with the right tag",
    "chunks_f": "F1 of chunks, as conlleval counts them",
    "chunks_p": "their precision",
    "chunks_r": "their recall",
    "chunks_per_type": "the three by label",
    "spans_sc_f": "F1 of spans: same offsets and same label",
    "spans_sc_p": "their precision",
    "spans_sc_r": "their recall",
    "spans_sc_per_type": "the three by label",
    "tree_f": "PARSEVAL F1 of labelled constituents, as EVALB with COLLINS.prm",
    "tree_p": "their precision",
    "tree_r": "their recall",
    "tree_exact": "share of sentences whose constituents are all right",
    "constituents_no_crossing": "share of sentences in which no bracket crosses a gold one",
    "constituents_tag_acc": "share of words with the right tag",
    "constituents_per_type": "precision, recall and F1 by label",
}
SCORE_MEANINGS |= {
    f"constituents_{score}": SCORE_MEANINGS[f"tree_{score}"] for score in ("f", "p", "r", "exact")
}


def page() -> str:
    """The page of all components."""
    classes = {name: _described(name) for name in names(GROUP)}
    parts = [
        NOTE,
        "# Components",
        "Use a component in `[components.NAME]` of a config, under `factory`. You choose NAME. "
        "`nlp.add_pipe(FACTORY, name=NAME, config={...})` creates one in Python.",
        table(
            ("factory", "class", "predicts"),
            [
                (f"[`{name}`](#{name})", f"`{_class(name).__name__}`", summary(described))
                for name, described in classes.items()
            ],
        ),
        *(_section(name) for name in classes),
        _attributes(),
    ]
    return "\n\n".join(parts) + "\n"


def entry(name: str) -> Entry:
    """The entry of a factory.

    Raises:
        KeyError: if this file does not have one.
    """
    if name not in ENTRIES:
        raise KeyError(f"{name}: add an entry to docs/generate/components.py")
    return ENTRIES[name]


def _class(name: str) -> Any:
    """The class of a factory's components."""
    return inspect.signature(names(GROUP)[name]).return_annotation


def _described(name: str) -> Any:
    """The class whose docstring describes a component: its store, or its own."""
    return {"crf_ner": EntityStore, "crf_chunker": ChunkStore}.get(name, _class(name))


def _section(name: str) -> str:
    meta, component, about = Language.get_factory_meta(name), _described(name), entry(name)
    meanings = arguments(component, _class(name))
    own = ("nlp", "name", "model", "scorer")
    settings = [
        parameter_row(
            parameter.replace(default=meta.default_config[parameter.name]),
            meanings.get(parameter.name, ""),
        )
        for parameter in inspect.signature(names(GROUP)[name]).parameters.values()
        if parameter.name not in own
    ]
    annotation = [
        ("learns from", about.reads),
        ("writes", about.writes),
        ("keeps as evidence", about.evidence),
        ("`assigns` in spaCy", ", ".join(f"`{assigned}`" for assigned in meta.assigns)),
    ]
    scores = [
        (f"`{key}`", value(weight), SCORE_MEANINGS[key])
        for key, weight in meta.default_score_weights.items()
    ]
    model = Config({"model": meta.default_config["model"]}).to_str().strip()
    scorer = value(meta.default_config["scorer"]).strip("`")
    parts = [
        f"## `{name}` {{ #{name} }}",
        embedded(
            path(component), show_docstring_parameters=not is_google(component), heading_level=3
        ),
        f"### Settings of `{name}`",
        table(("setting", "type", "default", "meaning"), settings),
        f"`model`: a block of a config, see [Models](models.md). `scorer`: a block, by default "
        f"`{scorer}`.",
        _details("The default model", f"```ini\n{model}\n```"),
        f"### Annotation by `{name}`",
        table(("", ""), annotation),
        f"### Scores of `{name}`",
        table(("score", "default weight", "meaning"), scores),
    ]
    return "\n\n".join(parts)


def _details(title: str, text: str) -> str:
    inside = "\n".join(f"    {line}" if line else "" for line in text.splitlines())
    return f'??? note "{title}"\n\n{inside}'


def registered_attributes() -> set[tuple[str, str]]:
    """The custom attributes that the components add, as (kind of object, attribute)."""
    kinds = ("Doc", "Span", "Token")
    places = [f"{kind.lower()}_extensions" for kind in kinds]
    before = {place: getattr(Underscore, place) for place in places}
    try:
        for place in places:
            setattr(Underscore, place, {})
        register()
        register_extensions()
        return {
            (kind, name)
            for kind, place in zip(kinds, places)
            for name in getattr(Underscore, place)
        }
    finally:
        for place, extensions in before.items():
            setattr(Underscore, place, extensions)


def _attributes() -> str:
    rows = [(f"`{owner}._.{name}`", meaning) for (owner, name), meaning in ATTRIBUTES.items()]
    text = (
        "Components add these attributes when they are created. To read saved docs without a "
        "component, call `spacy_psa.pipeline.chain.extensions.register()` for the first four, and "
        "`spacy_psa.pipeline.parser.extensions.register_extensions()` for the others. If a span is "
        "not a constituent, the attributes of trees raise `NonConstituentException`."
    )
    return "\n\n".join(["## Custom attributes", text, table(("attribute", "meaning"), rows)])
