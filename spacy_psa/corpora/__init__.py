"""Corpora: one reader a format, each giving one sentence a `Doc`, and the conversion to `.spacy`.

| module | what |
| --- | --- |
| `conll` | the four columns of CoNLL-2003, also as the reader `spacy-psa.Conll2003.v1` |
| `jsonl` | the layered JSON lines of the sample corpus |
| `sample`, `sample_grammar`, `sample_words` | the generator of the sample corpus |
| `glove` | pretrained vectors for `spacy init vectors` |
| `schemes`, `trees`, `lines` | tag schemes, bracketed trees and text lines, shared by the readers |
| `docbin`, `atomic` | writing: a file appears whole or not at all |

Whatever a user can mend is raised as `spacy_psa.errors.InputError`
"FILE:LINE: reason; what to do".
"""
