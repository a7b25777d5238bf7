"""The page of the components: settings, annotation, attributes and scores."""

import inspect
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from spacy.language import Language
from spacy.tokens.underscore import Underscore
from thinc.api import Config

from docs.generate.docstrings import arguments, is_google, path, summary
from docs.generate.markdown import NOTE, embedded, kind, table, value
from docs.generate.registry import names
from spacy_psa.pipeline.chain.extensions import register
from spacy_psa.pipeline.parser.extensions import register_extensions

GROUP = "spacy_factories"


@dataclass(frozen=True)
class Entry:
    """What the code does not say of a component.

    Attributes:
        reads: what it learns from, in Markdown.
        writes: what it writes to a doc, in Markdown.
        evidence: what it keeps of the annotation that is there before, in Markdown.
    """

    reads: str
    writes: str
    evidence: str


SCORES = '`doc.spans[NAME]` with `attrs["scores"]`, NAME the component\'s'
GROUPS = "`doc.spans[required_spans_key]` and `doc.spans[forbidden_spans_key]`"
ENTRIES = {
    "crf_ner": Entry(
        "`doc.ents` of the training data; the loss marginalises over tokens without annotation. "
        "`doc.spans[incorrect_spans_key]`: spans that are known to be wrong.",
        f'`doc.ents`. With `confidence = true` or `decode = "mbr"`: {SCORES}. '
        "With `confidence = true`: `doc._.ner_uncertainty`. "
        'With `decode = "threshold"`: these spans in the place of `doc.ents`.',
        f"Entities and blocked tokens, unless `overwrite = true`; {GROUPS}.",
    ),
    "crf_tagger": Entry(
        "`token.tag_` of the training data; the loss marginalises over tokens without a tag.",
        "`token.tag_`. With `confidence = true`: `token._.tag_confidence`.",
        f"Tags, if `overwrite = false`; {GROUPS}, for their tokens.",
    ),
    "crf_chunker": Entry(
        "`doc.spans[spans_key]` of the training data; a doc without that key is left out.",
        f'`doc.spans[spans_key]`. With `confidence = true` or `decode = "mbr"`: {SCORES}. '
        'With `decode = "threshold"`: these spans in the place of the chunks.',
        f"The spans of `doc.spans[spans_key]`, unless `overwrite = true`; {GROUPS}.",
    ),
    "constituency_parser": Entry(
        '`doc.spans["constituents"]` of the training data, one sentence a doc (see '
        "[`spacy-psa.TreeCorpus.v1`](training.md#treecorpus)); `token.tag_` for a tag head.",
        '`doc.spans["constituents"]`, in preorder. With `confidence = true`: their posteriors '
        'in `attrs["scores"]`. With a tag head: `token.tag_`.',
        "The constituents in `doc.spans[spans_key]` that no parser has predicted, unless "
        f"`overwrite = true`; {GROUPS}.",
    ),
}

# (kind of object, attribute): what it is.
ATTRIBUTES = {
    ("Span", "confidence"): "The probability of the span with its label, of the first group of "
    "`doc.spans` that has it with a score; None if none has.",
    ("Doc", "confidence"): "The scores of each group of `doc.spans`, for `to_json` and "
    "`from_json`.",
    ("Doc", "ner_uncertainty"): "The entropy over the analyses of the doc, in nats.",
    ("Token", "tag_confidence"): "The probability of the token's tag.",
    ("Span", "labels"): "The labels over just these words, the outermost first.",
    ("Span", "parse_string"): "The subtree in brackets.",
    ("Span", "constituents"): "The nodes of the subtree in preorder, words too.",
    ("Span", "children"): "The nodes right below, from left to right.",
    ("Span", "parent"): "The node right above; None for a sentence.",
    (
        "Span",
        "head_token",
    ): "The head word of the constituent, by head rules; None for white space.",
    ("Span", "constituent_confidence"): "The posterior of the constituent; None without one.",
    ("Doc", "parse_trees"): "An `nltk.Tree` for each sentence that has words.",
}
TREE_ATTRIBUTES = ("labels", "parse_string", "constituents", "children", "parent")
ATTRIBUTES |= {
    ("Token", name): f"As of a span of this token: {ATTRIBUTES['Span', name][0].lower()}"
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
    "tree_f": "PARSEVAL F1 of labelled constituents, as EVALB with COLLINS.prm",
    "tree_p": "their precision",
    "tree_r": "their recall",
    "tree_exact": "share of sentences whose constituents are all right",
    "constituents_f": "PARSEVAL F1 of labelled constituents, as EVALB with COLLINS.prm",
    "constituents_p": "their precision",
    "constituents_r": "their recall",
    "constituents_exact": "share of sentences whose constituents are all right",
    "constituents_no_crossing": "share of sentences in which no bracket crosses a gold one",
    "constituents_tag_acc": "share of words with the right tag",
    "constituents_per_type": "precision, recall and F1 by label",
}


def page() -> str:
    """The page of all components."""
    found = names(GROUP)
    parts = [
        NOTE,
        "# Components",
        "A component stands in `[components.NAME]` of a config, under `factory`. NAME is yours. "
        "`nlp.add_pipe(FACTORY, name=NAME, config={...})` makes one from Python.",
        table(
            ("factory", "class", "predicts"),
            [
                (f"[`{name}`](#{name})", f"`{_class(name).__name__}`", summary(_class(name)))
                for name in found
            ],
        ),
    ]
    parts += [_section(name) for name in found]
    parts.append(_attributes())
    return "\n\n".join(parts) + "\n"


def entry(name: str) -> Entry:
    """What the code does not say of a factory. KeyError where this file does not either."""
    if name not in ENTRIES:
        raise KeyError(f"{name}: give it an entry in docs/generate/components.py")
    return ENTRIES[name]


def _class(name: str) -> Any:
    """The class of a factory's components."""
    return inspect.signature(names(GROUP)[name]).return_annotation


def _section(name: str) -> str:
    meta, component, about = Language.get_factory_meta(name), _class(name), entry(name)
    constructor = inspect.signature(component, eval_str=True).parameters.values()
    settings = [p for p in constructor if p.kind is Parameter.KEYWORD_ONLY and p.name != "scorer"]
    meanings = arguments(component)
    rows = [
        (f"`{p.name}`", kind(p.annotation), value(p.default), meanings.get(p.name, ""))
        for p in settings
    ]
    default = {"model": meta.default_config["model"]}
    scorer = meta.default_config["scorer"]
    parts = [
        f"## `{name}` {{ #{name} }}",
        embedded(
            path(component), show_docstring_parameters=not is_google(component), heading_level=3
        ),
        f"### Settings of `{name}`",
        table(("setting", "type", "default", "meaning"), rows),
        "`model`: a block of a config, see [Models](models.md). `scorer`: a block, by default "
        f"`{value(scorer).strip('`')}`.",
        _details("The default model", f"```ini\n{Config(default).to_str().strip()}\n```"),
        f"### Annotation by `{name}`",
        table(
            ("", ""),
            [
                ("learns from", about.reads),
                ("writes", about.writes),
                ("keeps as evidence", about.evidence),
                ("assigns, as spaCy lists it", ", ".join(f"`{a}`" for a in meta.assigns)),
            ],
        ),
        f"### Scores of `{name}`",
        table(
            ("score", "default weight", "meaning"),
            [
                (f"`{key}`", value(weight), SCORE_MEANINGS[key])
                for key, weight in meta.default_score_weights.items()
            ],
        ),
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
    rows = []
    for owner, name in ATTRIBUTES:
        rows.append((f"`{owner}._.{name}`", ATTRIBUTES[owner, name]))
    return "\n\n".join(
        [
            "## Custom attributes",
            "Components add these attributes when they are made. To read saved docs without a "
            "component, call `spacy_psa.pipeline.chain.extensions.register()` for the first four, "
            "and `spacy_psa.pipeline.parser.extensions.register_extensions()` for the others. A "
            "span that is no constituent raises `NonConstituentException`.",
            table(("attribute", "meaning"), rows),
        ]
    )
