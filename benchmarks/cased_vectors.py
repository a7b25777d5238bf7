"""Word vectors as spaCy's own components need them.

spaCy looks a vector up by the exact text of a token. GloVe's words are in lower case, so that a
name would have no vector. Our word embedder looks for the lower-cased word: it needs none of this.
"""

from pathlib import Path

import spacy

from spacy_psa.corpora.atomic import atomic_folder


def cased_vectors(uncased: Path, target: Path) -> Path:
    """Write a pipeline of vectors in which "london" also is the vector of "London" and "LONDON".

    Args:
        uncased: a pipeline with vectors of lower-cased words.
        target: the folder to write. If it is there, it stays as it is.

    Returns:
        `target`.
    """
    if not target.exists():
        nlp = spacy.load(uncased)
        vectors, strings = nlp.vocab.vectors, nlp.vocab.strings
        for key, row in list(vectors.key2row.items()):
            word = strings[key]
            for form in (word.capitalize(), word.title(), word.upper()):
                if strings.add(form) not in vectors:
                    vectors.add(form, row=row)
        with atomic_folder(target) as path:
            nlp.to_disk(path)
    return target
