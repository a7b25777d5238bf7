"""Pages of the registered architectures: embedders, encoders and models."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from thinc.api import Model

from docs.generate.docstrings import arguments, is_google, path
from docs.generate.markdown import NOTE, embedded, kind, table, value
from docs.generate.registry import anchor, heading, names, short

GROUP = "spacy_architectures"


@dataclass(frozen=True)
class Entry:
    """What the code does not say of an architecture.

    Attributes:
        slot: where it stands in a config: "embed", "encode", "tok2vec" or "model".
        width: the width of its output as a formula of its arguments, or in words.
        paper: where it comes from, in Markdown.
    """

    slot: str
    width: str
    paper: str


def _cite(key: str, where: str = "") -> str:
    link = f"[{key}](../papers.md#{key.lower()})"
    return f"{link}, {where}" if where else link


ENTRIES = {
    "spacy-psa.WordEmbed.v1": Entry("embed", "width", _cite("Wei2020", "section 5.2")),
    "spacy-psa.WordShape.v1": Entry("embed", "4", _cite("Li2019", "section 3.1")),
    "spacy-psa.BigramEmbed.v1": Entry("embed", "width", _cite("Yan2019", "section 4.1")),
    "spacy-psa.TagEmbed.v1": Entry("embed", "width", _cite("Kitaev2018", "section 2.1")),
    "spacy-psa.CharBiLSTM.v1": Entry(
        "embed",
        "2 * hidden if project is None else project",
        f"{_cite('Wei2020', 'section 5.2')}; {_cite('Yan2019', 'section 6.1')}",
    ),
    "spacy-psa.CharCNN.v1": Entry("embed", "project", _cite("Yan2019", "section 6.1")),
    "spacy-psa.CharIntNet.v1": Entry(
        "embed",
        "kernels + growth * blocks for each of its kernel_widths",
        "Xin et al. 2018 (IntNet)",
    ),
    "spacy-psa.CharTransformer.v1": Entry("embed", "project", _cite("Yan2019", "section 6.1")),
    "spacy-psa.CharAdaTrans.v1": Entry("embed", "project", _cite("Yan2019", "section 3.1")),
    "spacy-psa.CharNgramCNN.v1": Entry(
        "embed", "kernels * longest", _cite("Li2019", "section 3.1")
    ),
    "spacy-psa.CharSentenceBiLSTM.v1": Entry(
        "embed",
        "4 * hidden if project is None else project",
        "Bohnet et al. 2018 (Meta-BiLSTM), section 3.1",
    ),
    "spacy-psa.CharConcat.v1": Entry(
        "embed", "2 * letters * width", _cite("Kitaev2018", "section 5")
    ),
    "spacy-psa.ConcatEmbed.v1": Entry("embed", "the sum of its layers' widths", ""),
    "spacy-psa.SumEmbed.v1": Entry(
        "embed", "the width of its layers", _cite("Kitaev2018", "section 2.2")
    ),
    "spacy-psa.SentenceDropout.v1": Entry(
        "embed", "the width of its layer", _cite("Kitaev2018", "the authors' code")
    ),
    "spacy-psa.BiLSTM.v1": Entry("encode", "2 * hidden", _cite("Wei2020", "section 3")),
    "spacy-psa.CrossBiLSTM.v1": Entry("encode", "2 * hidden", _cite("Li2019", "section 6.2")),
    "spacy-psa.SelfAttentiveBiLSTM.v1": Entry(
        "encode", "4 * hidden", _cite("Li2019", "sections 3.2 and 4")
    ),
    "spacy-psa.PSABiLSTM.v1": Entry(
        "encode",
        "2 * hidden",
        f'{_cite("Wei2020", "section 4")}; {_cite("Wei2019")} with `version = "arxiv"`',
    ),
    "spacy-psa.PSATransformer.v1": Entry(
        "encode", "heads * head_width", _cite("Wei2020", "section 5.3.2 and Table 10")
    ),
    "spacy-psa.TENER.v1": Entry("encode", "heads * head_width", _cite("Yan2019", "section 3.2")),
    "spacy-psa.Transformer.v1": Entry(
        "encode", "heads * head_width", _cite("Yan2019", "section 2.2")
    ),
    "spacy-psa.FactoredTransformer.v1": Entry(
        "encode", "width", _cite("Kitaev2018", "sections 2.2 to 4")
    ),
    "spacy-psa.IDCNN.v1": Entry("encode", "kernels", _cite("Yan2019", "Table 7")),
    "spacy-psa.DocumentMemory.v1": Entry(
        "tok2vec", "the width of its tok2vec", "Wang et al. (GCDoc), the word-level module"
    ),
    "spacy-psa.SentenceContext.v1": Entry(
        "tok2vec",
        "the width of its tok2vec",
        "Wang et al. (GCDoc) and Liu et al. (GCDT), the sentence-level modules",
    ),
    "spacy-psa.CRF.v1": Entry(
        "model", "a log potential for each pair of tags and token", _cite("Wei2020", "section 3")
    ),
    "spacy-psa.Softmax.v1": Entry(
        "model", "a log probability for each tag and token", _cite("Wei2020", "Table 9")
    ),
    "spacy-psa.Ensemble.v1": Entry("model", "the mean of the log potentials of its models", ""),
    "spacy-psa.ChartParser.v1": Entry(
        "model", "a score for each label and span", _cite("Kitaev2018", "section 2.3")
    ),
}

TITLES = {
    "embed": (
        "Embedders",
        "An embedder gives each token of a doc a vector that does not depend on its context. "
        "It stands in the block `[components.NAME.model.tok2vec.embed]` of a config, in "
        "`spacy.Tok2Vec.v2`. Its type is `Model[List[Doc], List[Floats2d]]`, so spaCy's own "
        "embedders can stand in its place, and it in theirs. "
        "[How the character embedders work](../explanation/models.md#characters) has a figure.",
    ),
    "encode": (
        "Encoders",
        "An encoder turns the vectors of a sentence into vectors that know their context. It "
        "stands in the block `[components.NAME.model.tok2vec.encode]` of a config, in "
        "`spacy.Tok2Vec.v2`. Its type is `Model[List[Floats2d], List[Floats2d]]`. It learns the "
        "width of its input when the pipeline is initialized. "
        "[The models](../explanation/models.md) has a figure of each.",
    ),
    "tok2vec": (
        "Documents",
        "These layers let a token see more than its sentence. They stand in the block "
        "`[components.NAME.model.tok2vec]` of a config, around another `tok2vec`. Their type is "
        "`Model[List[Doc], List[Floats2d]]`, with one array for each doc. "
        "[Whole documents](../how-to/documents.md) says how to train with them.",
    ),
    "model": (
        "Models",
        "A model puts a head over token vectors and works sentence by sentence. It stands in the "
        "block `[components.NAME.model]` of a config. Its type is "
        "`Model[List[Doc], List[Floats2d]]`, with one array for each sentence.",
    ),
}


def page(slot: str) -> str:
    """The page of the architectures of a slot."""
    title, text = TITLES[slot]
    found = {name: function for name, function in names(GROUP).items() if entry(name).slot == slot}
    parts = [NOTE, f"# {title}", text]
    parts.append(
        table(
            ("name", "output width", "paper"),
            [
                (
                    f"[`{short(name)}`](#{anchor(name)})",
                    _width(entry(name).width),
                    entry(name).paper,
                )
                for name in found
            ],
        )
    )
    parts += [_section(name, function) for name, function in found.items()]
    return "\n\n".join(parts) + "\n"


def entry(name: str) -> Entry:
    """What the code does not say of a name. KeyError where this file does not say it either."""
    if name not in ENTRIES:
        raise KeyError(f"{name}: give it an entry in docs/generate/architectures.py")
    return ENTRIES[name]


def documented(function: Callable[..., Any]) -> Any:
    """The object whose docstring describes an architecture: its module, or the function."""
    return getattr(function, "module", function)


def settings(function: Callable[..., Any]) -> list[Parameter]:
    """The arguments of an architecture, as a config has them."""
    return list(inspect.signature(function, eval_str=True).parameters.values())


def check_width(name: str, function: Callable[..., Any]) -> None:
    """ValueError where the formula of a name is not the width that its layer has."""
    formula = entry(name).width
    if " its " in formula or formula.startswith("a "):
        return
    defaults = {p.name: p.default for p in settings(function)}
    expected = eval(formula, {"__builtins__": {}}, defaults)
    layer = function()
    if not isinstance(layer, Model) or layer.get_dim("nO") != expected:
        raise ValueError(f"{name}: the output width is not {formula}, {expected}")


def _section(name: str, function: Callable[..., Any]) -> str:
    item = documented(function)
    check_width(name, function)
    meanings = arguments(function, item)
    former = _renamed(function)
    own = inspect.signature(item).parameters
    rows = []
    for parameter in settings(function):
        inside = former.get(parameter.name, parameter.name)
        meaning = meanings.get(parameter.name) or meanings.get(inside) or ""
        if inside not in own:
            meaning = meaning or MEANINGS[inside]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            rows.append((f"`*.{parameter.name.rstrip('s')}`", "models", "required", meaning))
            continue
        shown = parameter.annotation
        rows.append((f"`{parameter.name}`", kind(shown), value(parameter.default), meaning))
    parts = [
        heading(2, name),
        _facts(name, item),
        table(("argument", "type", "default", "meaning"), rows) or "It has no arguments.",
        embedded(path(item), show_docstring_parameters=not is_google(item), heading_level=3),
    ]
    return "\n\n".join(parts)


def _renamed(function: Callable[..., Any]) -> dict[str, str]:
    """Arguments of an architecture with another name in its module, by their own names."""
    found: dict[str, str] = inspect.getclosurevars(function).nonlocals.get("renamed", {})
    return found


def _facts(name: str, item: Any) -> str:
    about = entry(name)
    facts = [f"Output: {_width(about.width)}."]
    if about.paper:
        facts.append(f"Source: {about.paper}.")
    facts.append(f"Code: `{path(item)}`.")
    return " ".join(facts)


def _width(formula: str) -> str:
    if " its " in formula or formula.startswith(("a ", "the ")):
        return formula
    if " if " in formula:
        plain, project = formula.split(" if ")[0], formula.split(" else ")[1]
        return f"{_width(plain)}, or `{project}` where it is set"
    return f"`{formula}`" if "*" not in formula else f"`{formula.replace('*', '×')}`"


# Arguments that are the architecture's own, or are described once for several.
MEANINGS = {
    "rows": "capacity for distinct symbols of the training data; further ones are unknown.",
    "max_characters": "characters of a word that are read; longer words are cut at the right.",
    "zero_digits": "read every digit as 0.",
    "cache": "words whose vectors annotation on a CPU remembers; 0 for none.",
    "width": "width of the input, where a layer above must know it before initialization.",
}
