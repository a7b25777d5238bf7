"""Pages of the registered architectures: embedders, encoders and models."""

import inspect
import re
from collections.abc import Callable
from inspect import Parameter
from typing import Any, NamedTuple

from thinc.api import Model

from docs.generate.docstrings import arguments, is_google, path
from docs.generate.markdown import NOTE, embedded, parameter_row, table
from docs.generate.registry import anchor, heading, names, short

GROUP = "spacy_architectures"


class Entry(NamedTuple):
    """Facts about an architecture that are not in the code.

    Attributes:
        slot: its block in a config: "embed", "encode", "tok2vec" or "model".
        width: the width of its output as a formula of its arguments, or in words.
        paper: its source.
    """

    slot: str
    width: str
    paper: str = ""


ENTRIES = {
    "WordEmbed": Entry("embed", "width", "Wei2020, section 5.2"),
    "WordShape": Entry("embed", "4", "Li2019, section 3.1"),
    "BigramEmbed": Entry("embed", "width", "Yan2019, section 4.1"),
    "TagEmbed": Entry("embed", "width", "Kitaev2018, section 2.1"),
    "CharBiLSTM": Entry(
        "embed",
        "2 * hidden if project is None else project",
        "Wei2020, section 5.2; Yan2019, section 6.1",
    ),
    "CharCNN": Entry("embed", "project", "Yan2019, section 6.1"),
    "CharIntNet": Entry(
        "embed",
        "kernels + growth * blocks for each of its kernel_widths",
        "Xin et al. 2018 (IntNet)",
    ),
    "CharTransformer": Entry("embed", "project", "Yan2019, section 6.1"),
    "CharAdaTrans": Entry("embed", "project", "Yan2019, section 3.1"),
    "CharNgramCNN": Entry("embed", "kernels * longest", "Li2019, section 3.1"),
    "CharSentenceBiLSTM": Entry(
        "embed",
        "4 * hidden if project is None else project",
        "Bohnet et al. 2018 (Meta-BiLSTM), section 3.1",
    ),
    "CharConcat": Entry("embed", "2 * letters * width", "Kitaev2018, section 5"),
    "ConcatEmbed": Entry("embed", "the sum of its layers' widths"),
    "SumEmbed": Entry("embed", "the width of its layers", "Kitaev2018, section 2.2"),
    "SentenceDropout": Entry("embed", "the width of its layer", "Kitaev2018, the authors' code"),
    "Pretrained": Entry(
        "embed",
        "the width of the encoder for each mean of layers, or `project`",
        "Peters2018, Eq. 1 for the mean of layers",
    ),
    "BiLSTM": Entry("encode", "2 * hidden", "Wei2020, section 3"),
    "CrossBiLSTM": Entry("encode", "2 * hidden", "Li2019, section 6.2"),
    "SelfAttentiveBiLSTM": Entry("encode", "4 * hidden", "Li2019, sections 3.2 and 4"),
    "PSABiLSTM": Entry(
        "encode", "2 * hidden", 'Wei2020, section 4; Wei2019 with `version = "arxiv"`'
    ),
    "PSATransformer": Entry("encode", "heads * head_width", "Wei2020, section 5.3.2 and Table 10"),
    "TENER": Entry("encode", "heads * head_width", "Yan2019, section 3.2"),
    "Transformer": Entry("encode", "heads * head_width", "Yan2019, section 2.2"),
    "FactoredTransformer": Entry("encode", "width", "Kitaev2018, sections 2.2 to 4"),
    "IDCNN": Entry("encode", "kernels", "Yan2019, Table 7"),
    "DocumentMemory": Entry(
        "tok2vec", "the width of its tok2vec", "Wang et al. (GCDoc), the word-level module"
    ),
    "SentenceContext": Entry(
        "tok2vec",
        "the width of its tok2vec",
        "Wang et al. (GCDoc) and Liu et al. (GCDT), the sentence-level modules",
    ),
    "CRF": Entry("model", "a log potential for each pair of tags and token", "Wei2020, section 3"),
    "Softmax": Entry("model", "a log probability for each tag and token", "Wei2020, Table 9"),
    "Ensemble": Entry("model", "the mean of the log potentials of its models"),
    "ChartParser": Entry("model", "a score for each label and span", "Kitaev2018, section 2.3"),
    "SpanScorer": Entry("model", "a score for each label and span", "Yu et al. 2020, Eq. 1"),
}

TITLES = {
    "embed": (
        "Embedders",
        "An embedder computes a vector for each token of a doc, independent of its context, except "
        "for `Pretrained.v1`. Use it in the block `[components.NAME.model.tok2vec.embed]` of a "
        "config, in `spacy.Tok2Vec.v2`. Its type is `Model[List[Doc], List[Floats2d]]`, so you can "
        "replace it by spaCy's own embedders, and also use it in their place. "
        "[How the character embedders work](../explanation/models.md#characters) has a figure.",
    ),
    "encode": (
        "Encoders",
        "An encoder turns the vectors of a sentence into vectors that depend on their context. Use "
        "it in the block `[components.NAME.model.tok2vec.encode]` of a config, in "
        "`spacy.Tok2Vec.v2`. Its type is `Model[List[Floats2d], List[Floats2d]]`. It learns the "
        "width of its input when the pipeline is initialized. "
        "[The models](../explanation/models.md) has a figure of each.",
    ),
    "tok2vec": (
        "Documents",
        "With these layers, a token sees more than its sentence. Use them in the block "
        "`[components.NAME.model.tok2vec]` of a config, around another `tok2vec`. Their type is "
        "`Model[List[Doc], List[Floats2d]]`, with one array for each doc. "
        "[Whole documents](../how-to/documents.md) shows how to train with them.",
    ),
    "model": (
        "Models",
        "A model puts a head on top of token vectors and processes each sentence separately. Use "
        "it in the block `[components.NAME.model]` of a config. Its type is "
        "`Model[List[Doc], List[Floats2d]]`, with one array for each sentence.",
    ),
}

# Arguments that only the architecture has, or that are described once for several of them.
MEANINGS = {
    "rows": "capacity for distinct symbols of the training data; further ones are unknown.",
    "max_characters": "characters of a word that are read; longer words are cut at the right.",
    "zero_digits": "read every digit as 0.",
    "cache": "words whose vectors annotation on a CPU remembers; 0 for none.",
    "width": "width of the input, where a layer above must know it before initialization.",
    "precision": 'of matrix products: "float32", "bfloat16", or "auto" for bfloat16 if the '
    "processor has instructions for it.",
}


def page(slot: str) -> str:
    """The page of the architectures of a slot."""
    functions = {
        name: function for name, function in names(GROUP).items() if entry(name).slot == slot
    }
    title, text = TITLES[slot]
    rows = [
        (f"[`{short(name)}`](#{anchor(name)})", _width(entry(name).width), _paper(name))
        for name in functions
    ]
    overview = table(("name", "output width", "paper"), rows)
    sections = [_section(name, function) for name, function in functions.items()]
    return "\n\n".join([NOTE, f"# {title}", text, overview, *sections]) + "\n"


def entry(name: str) -> Entry:
    """The entry of a registered name.

    Raises:
        KeyError: if this file does not have one.
    """
    if (key := short(name).removesuffix(".v1")) not in ENTRIES:
        raise KeyError(f"{name}: add an entry to docs/generate/architectures.py")
    return ENTRIES[key]


def settings(function: Callable[..., Any]) -> list[Parameter]:
    """The arguments of an architecture, as a config has them."""
    return list(inspect.signature(function, eval_str=True).parameters.values())


def check_width(name: str, function: Callable[..., Any]) -> None:
    """ValueError if the formula of a name is not the width of its layer."""
    formula = entry(name).width
    if _in_words(formula):
        return
    defaults = {p.name: p.default for p in settings(function)}
    expected = eval(formula, {"__builtins__": {}}, defaults)
    layer = function()
    if not isinstance(layer, Model) or layer.get_dim("nO") != expected:
        raise ValueError(f"{name}: the output width is not {formula}, {expected}")


def _section(name: str, function: Callable[..., Any]) -> str:
    check_width(name, function)
    item = getattr(function, "module", function)
    meanings, shared = arguments(item), arguments(*_related(item))
    renamed: dict[str, str] = inspect.getclosurevars(function).nonlocals.get("renamed", {})
    own = inspect.signature(item).parameters
    rows = []
    for parameter in settings(function):
        inside = renamed.get(parameter.name, parameter.name)
        meaning = meanings.get(parameter.name) or meanings.get(inside)
        if not meaning and inside in own:
            meaning = shared.get(inside)
        meaning = meaning or MEANINGS[inside]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            rows.append((f"`*.{parameter.name.rstrip('s')}`", "models", "required", meaning))
        else:
            rows.append(parameter_row(parameter, meaning))
    facts = [f"Output: {_width(entry(name).width)}.", f"Code: `{path(item)}`."]
    if source := _paper(name):
        facts.insert(1, f"Source: {source}.")
    parts = [
        heading(2, name),
        " ".join(facts),
        table(("argument", "type", "default", "meaning"), rows) or "It has no arguments.",
        embedded(path(item), show_docstring_parameters=not is_google(item), heading_level=3),
    ]
    return "\n\n".join(parts)


def _related(item: Any) -> list[type]:
    """The classes that a docstring names, whose arguments it need not describe again."""
    around = vars(inspect.getmodule(item))
    named = [around.get(name) for name in re.findall(r"`(\w+)`", inspect.getdoc(item) or "")]
    return [each for each in named if inspect.isclass(each)]


def _paper(name: str) -> str:
    """The source of an architecture, with links to the page of the papers."""
    keys = r"\b(Wei|Yan|Li|Kitaev)(20\d\d)\b"
    return re.sub(keys, lambda key: f"[{key[0]}](../papers.md#{key[0].lower()})", entry(name).paper)


def _in_words(formula: str) -> bool:
    return " its " in formula or formula.startswith(("a ", "the "))


def _width(formula: str) -> str:
    if _in_words(formula):
        return formula
    plain, _, condition = formula.partition(" if ")
    width = f"`{plain.replace('*', '×')}`"
    return f"{width}, or `{condition.split(' else ')[1]}` if it is set" if condition else width
