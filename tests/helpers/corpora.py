"""What tests of readers and converters share: errors that name a place, a text of OntoNotes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spacy_psa.errors import InputError

# One sentence of OntoNotes, as the shared task of 2012 writes it.
ONTONOTES = """#begin document (nw/wsj/02/wsj_0203); part 000
nw/wsj/02/wsj_0203 0 0 Rome NNP (TOP(S(NP*) - - - - (GPE) (ARG0*) -
nw/wsj/02/wsj_0203 0 1 fell VBD (VP*))) - - - - * (V*) -

#end document
"""


@contextmanager
def input_error_at(path: Path, line: int, reason: str) -> Iterator[None]:
    """What is done inside is an InputError of one line, which names a file, a line and why."""
    with pytest.raises(InputError) as caught:
        yield
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert reason in message
    assert "\n" not in message


def conllu(*rows, document="", header=True, fields="eid-etype-infstat-link"):
    """A sentence of CoNLL-U: a word, its part of speech and, if there is one, its last column."""
    head = ([f"# newdoc id = {document}"] if document else []) + [f"# global.Entity = {fields}"]
    lines = head if header else []
    for i, (word, tag, *misc) in enumerate(rows, 1):
        lines.append(
            "\t".join([str(i), word, "_", "X", tag, "_", str(i - 1), "_", "_", *(misc or "_")])
        )
    return "\n".join([*lines, "", ""])


def write_gum(folder: Path) -> Path:
    """A corpus of the form of GUM: a document of Reddit without words, and three others."""
    rome = [("Rome", "NNP", "Entity=(1-person(2-place|SpaceAfter=No"), ("'s", "POS", "Entity=2)"),
            ("mayor", "NN", "Entity=1)"), ("fell", "VBD", "SpaceAfter=No"), (".", ".")]  # fmt: skip
    tree = "(ROOT (S (NP-SBJ (NP (NNP Rome) (POS 's)) (NN mayor)) (VP (VBD fell)) (. .)))\n"
    yes, short = conllu(("Yes", "UH")), "(ROOT\n  (INTJ (UH Yes)))\n"
    files = {
        "GUM_news_rome": (conllu(*rome) + conllu(("Yes", "UH"), header=False), tree + short),
        "GUM_news_yes": (yes, short),
        "GENTLE_poetry_yes": (yes, short),
        "GUM_reddit_a": (conllu(("____", "UH")), short),
    }
    splits = "## dev\n\n  * GUM_news_yes\n## test\n  * GUM_news_yes\n## test2\n"
    splits += "  * GENTLE_poetry_yes\n## train\n  * GUM_reddit_a\n  * GUM_news_rome\n"
    texts = {"splits.md": splits}
    for name, (sentences, trees) in files.items():
        texts |= {f"dep/{name}.conllu": sentences, f"const/{name}.ptb": trees}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf8")
    return folder
