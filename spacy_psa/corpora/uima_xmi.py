"""UIMA CAS XMI, as INCEpTION, WebAnno and DKPro write it: a text with annotation by offsets.

    <type5:NamedEntity xmi:id="9" sofa="1" begin="0" end="3" value="PER"/>
    <cas:Sofa xmi:id="1" sofaID="_InitialView" sofaString="Ada left"/>

Named entities are read, with the tokens, sentences and parts of speech of DKPro if there are some.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from spacy_psa.corpora.lines import file_lines
from spacy_psa.corpora.marked_text import Mark, MarkedText, utf16_offsets
from spacy_psa.errors import InputError

KEY = "{http://www.omg.org/XMI}id"
CAS = "{http:///uima/cas.ecore}"
"""The namespace of what holds texts, views and lists."""
OTHERS = "annotation(s) of other layers or texts, left out"
EMPTY = "token(s) without characters, left out"
WITHOUT_LAYER = {"DocumentAnnotation", "DocumentMetaData", "TagsetDescription", "TagDescription"}
Annotations = list[tuple[int, int, ElementTree.Element]]


def read_texts(path: Path, repairs: Counter[str]) -> Iterator[MarkedText]:
    """Yield the text of a file with its named entities; offsets count UTF-16, as in Java."""
    root = _root(path)
    sofas = [each for each in root if _name(each) == "Sofa" and "sofaString" in each.attrib]
    if len(sofas) != 1:
        raise InputError(f"{path}: has {len(sofas)} texts (sofas); export a file for each text")
    text, sofa = sofas[0].attrib["sofaString"], sofas[0].get(KEY)
    places = {unit: i for i, unit in enumerate(utf16_offsets(text))}
    layers: dict[str, Annotations] = {}
    for element in root:
        if element.tag.startswith(CAS) or _name(element) in WITHOUT_LAYER:
            continue
        if "begin" not in element.attrib or element.get("sofa") != sofa:
            repairs[OTHERS] += 1
            continue
        try:
            start, end = (places[int(element.attrib[name])] for name in ("begin", "end"))
        except (KeyError, ValueError):
            raise InputError(
                f"{path}: {_name(element)} {element.get(KEY)} has no begin and end in the text "
                f"of {len(text)} characters; export the file again"
            ) from None
        layer = "NamedEntity" if _is_entity(element) else _name(element)
        layers.setdefault(layer, []).append((start, end, element))
    entities = layers.pop("NamedEntity", [])
    written = sorted(layers.pop("Token", []), key=lambda token: token[:2])
    tokens = [token for token in written if token[0] < token[1]]
    repairs.update({EMPTY: len(written) - len(tokens)} if len(tokens) < len(written) else {})
    sentences = layers.pop("Sentence", [])
    own = sorted(name for name, each in layers.items() if "/custom.ecore}" in each[0][2].tag)
    if own and not entities:
        raise InputError(
            f"{path}: has no NamedEntity, only layers of its own ({', '.join(own)}); put the "
            "entities into the layer NamedEntity, or convert the file to spaCy JSONL"
        )
    others = [element for each in layers.values() for *_, element in each]
    by_key = {element.get(KEY): element.get("PosValue") for element in others}
    tags = [by_key.get(element.get("pos")) or "" for *_, element in tokens]
    used = {element.get("pos") for *_, element in tokens}
    left = sum(element.get(KEY) not in used for element in others)
    repairs.update({OTHERS: left} if left else {})
    yield MarkedText(
        str(path),
        text,
        [
            Mark(start, end, element.get("value", ""), place=f"{path}: {element.get(KEY)}")
            for start, end, element in entities
        ],
        tokens=[(start, end) for start, end, _ in tokens] or None,
        tags=tags if any(tags) else None,
        sentences={start for start, *_ in sentences} or None,
    )


def _root(path: Path) -> ElementTree.Element:
    try:
        packed = path.suffix == ".gz"
        content = b"".join(file_lines(path)) if packed else path.read_bytes()
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, OSError) as error:
        raise InputError(f"{path}: is not XML ({error}); export the file again") from error
    if _name(root) != "XMI":
        raise InputError(f"{path}: is not XMI, its element is {_name(root)}; export UIMA CAS XMI")
    return root


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _is_entity(element: ElementTree.Element) -> bool:
    """Whether an element is a named entity; DKPro also has types such as Person."""
    return _name(element) == "NamedEntity" or "/ner/type.ecore}" in element.tag
