"""Word vectors for spaCy's own components.

spaCy looks up a vector by the exact text of a token. The words of GloVe are in lower case, so names
would not have a vector. Our word embedder also looks up the lower-cased word.
"""

from pathlib import Path

import spacy

from spacy_psa.corpora.atomic import atomic_folder


def cased_vectors(uncased: Path, target: Path) -> Path:
    """Write a pipeline of vectors in which "london" also is the vector of "London" and "LONDON".

    A folder that exists already stays as it is.

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
